"use strict";
// Sorting of tables, selection of components, and values of points on hover. The page has the same content without scripts.
const announcement = document.getElementById("announcement");
const tip = document.getElementById("tip");

function keys(cells) {
  const values = cells.map((cell) => cell.dataset.value);
  const texts = cells.map((cell) => cell.textContent.trim());
  const areNumbers = cells.every((_, at) => values[at] !== undefined || (texts[at] !== "" && !isNaN(texts[at])));
  if (!areNumbers) return texts;
  return values.map((value, at) => (value === "" ? NaN : Number(value ?? texts[at])));
}

function compare(one, other, rises) {
  if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other); // these come last
  const order = typeof one === "number" ? one - other : one.localeCompare(other, undefined, { numeric: true });
  return rises ? order : -order;
}

function sort(table, head) {
  const column = head.cellIndex;
  const isNumber = head.classList.contains("number");
  const before = head.getAttribute("aria-sort");
  const rises = before === null ? !isNumber : before === "descending";
  const rows = Array.from(table.tBodies[0].rows);
  const key = keys(rows.map((row) => row.cells[column]));
  const order = rows.map((_, at) => at).sort((one, other) => compare(key[one], key[other], rises));
  table.tBodies[0].append(...order.map((at) => rows[at]));
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rises ? "ascending" : "descending");
  announcement.textContent = `${table.caption.textContent}: sorted by ${head.textContent}, ${rises ? "rising" : "falling"}`;
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length < 2) continue;
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, head));
    head.append(button);
  }
}

function choose(box) {
  const part = box.querySelector("select").value;
  const wanted = box.querySelector("input").value.trim().toLocaleLowerCase();
  let shown = 0;
  const articles = box.querySelectorAll("article");
  for (const article of articles) {
    const inName = article.querySelector("h3").textContent.toLocaleLowerCase().includes(wanted);
    let found = inName;
    for (const row of article.querySelectorAll("tbody tr")) {
      const has = inName || row.cells[0].textContent.toLocaleLowerCase().includes(wanted);
      row.hidden = !has;
      found = found || has;
    }
    article.hidden = !found || (part !== "" && article.dataset.part !== part);
    shown += article.hidden ? 0 : 1;
  }
  box.querySelector(".count").textContent = `${shown} of ${articles.length} shown`;
}

for (const controls of document.querySelectorAll(".controls")) {
  controls.hidden = false;
  controls.addEventListener("input", () => choose(controls.parentNode));
}

function showTip(point) {
  for (const other of document.querySelectorAll(".point.at")) other.classList.remove("at");
  tip.hidden = !point;
  if (!point) return;
  point.classList.add("at");
  tip.textContent = point.dataset.tip;
  const place = point.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(place.right + 6, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.max(4, place.top - tip.offsetHeight - 6)}px`;
}

for (const drawing of document.querySelectorAll(".drawing")) {
  const points = Array.from(drawing.querySelectorAll(".point"));
  if (!points.length) continue;
  for (const point of points) {
    point.dataset.tip = point.textContent;
    point.replaceChildren();
    point.addEventListener("pointerenter", () => showTip(point));
    point.addEventListener("pointerleave", () => showTip(null));
  }
  let at = -1;
  drawing.tabIndex = 0;
  drawing.addEventListener("blur", () => showTip(null));
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") showTip(null);
    if (!step) return;
    event.preventDefault();
    at = at < 0 ? (step > 0 ? 0 : points.length - 1) : Math.max(0, Math.min(points.length - 1, at + step));
    showTip(points[at]);
    announcement.textContent = points[at].dataset.tip;
  });
}

// Tables are stops of the keyboard only where there is something to scroll.
const scrolls = new ResizeObserver((boxes) => {
  for (const { target } of boxes) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll(".scroll")) scrolls.observe(box);

// The frame of a notebook has the notebook's address: there a link would lead out of the page.
if (location.protocol === "about:") {
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const target = document.getElementById(link.getAttribute("href").slice(1));
      target.tabIndex = -1;
      target.scrollIntoView();
      target.focus({ preventScroll: true });
    });
  }
}
