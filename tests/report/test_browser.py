"""The report in a real browser: it opens in silence, sorts, filters, tells values, and can be read by everybody."""

from itertools import pairwise

import numpy as np
import pytest

from halfseen.report import Report
from tests.report.conftest import LEVELS
from tests.report.models import NASTY

PAGES = ("ratings", "table", "survey")
every_page = pytest.mark.parametrize("name", PAGES)

CONTRASTS = """() => {
  const channels = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = (colour) => {
    const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.slice(0, 3).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = channels(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return channels(getComputedStyle(document.body).backgroundColor);
  };
  const tint = document.createElement("i");
  tint.style.color = "var(--tint)";
  document.body.append(tint);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, title, option, #tip")) continue;
    const style = getComputedStyle(element);
    const colour = channels(element.closest("svg") ? style.fill : style.color);
    const backs = [behind(element), ...(element.closest(".bar") ? [channels(getComputedStyle(tint).color)] : [])];
    for (const back of backs) {
      const [low, high] = [light(colour), light(back)].sort((a, b) => a - b);
      found.push([(high + 0.05) / (low + 0.05), element.tagName, walker.currentNode.data.trim()]);
    }
  }
  return found;
}"""


@every_page
def test_it_opens_in_silence_asks_nothing_of_the_network_and_labels_stay_text(looked_at, name):
    page = looked_at[name]
    page.wait_for_load_state("load")
    assert page.title() == f"A report of a {name}"
    assert page.locator("script").count() == 1
    assert page.locator("body img, body iframe, body b").count() == 0
    whole = page.locator("main").text_content()
    for label in (NASTY[0], NASTY[1], NASTY[3], NASTY[4], *(["{{ 7 * 7 }}"] if name != "survey" else [])):
        assert label in whole
    assert NASTY[0] in page.locator("main").inner_text()
    assert page.troubles == []


def column(table, place):
    return table.locator(f"tbody tr > :nth-child({place + 1})").all_inner_texts()


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_tables_sort_by_numbers_and_by_words_and_rows_stay_whole(opened, how):
    page = opened("ratings")
    table = page.locator("#components table").first
    button = table.get_by_role("button", name="Size")
    head = table.locator("th", has=page.get_by_role("button", name="Size"))
    before = column(table, 1)
    for order in ("descending", "ascending"):  # of numbers, one wants the largest first
        button.click() if how == "click" else button.press(how)
        assert head.get_attribute("aria-sort") == order
        assert column(table, 1) == sorted(before, key=float, reverse=order == "descending")
    table.get_by_role("button", name="Component").click()
    assert head.get_attribute("aria-sort") is None
    assert column(table, 0) == ["3", "2", "1", "0"]
    table = opened("survey").locator("#coupling table").first
    rows = {tuple(row.locator("td, th").all_inner_texts()) for row in table.locator("tbody tr").all()}
    table.get_by_role("button", name="Row").click()
    names = column(table, 0)
    assert names == sorted(names)
    assert len(set(names)) > 1
    assert {tuple(row.locator("td, th").all_inner_texts()) for row in table.locator("tbody tr").all()} == rows
    assert table.page.locator("#announcement").inner_text().endswith("sorted by Row, rising")


def test_tables_sort_by_levels_and_values_in_their_order(opened):
    page = opened("levels")
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    names = [f"{level:g}" for level in LEVELS]
    for caption, head, expected in (
        ("Numbers of cells by value", "Value", names),
        ("Thresholds, in units of the product", "Level", names[1:]),
        ("Cells by level", "Level", names),
    ):
        table = page.get_by_role("table", name=caption, exact=True)
        for rising in (True, False, True):
            table.get_by_role("button", name=head).click()
            assert column(table, 0) == (expected if rising else expected[::-1])
    holes = page.get_by_role("table", name="Predictions of some missing cells")
    for head, place in (("Level", 3), ("90% from", 4)):
        holes.get_by_role("button", name=head).click()
        found = column(holes, place)
        assert found == sorted(found, key=float)
        assert len(set(found)) > 1
    holes.get_by_role("button", name="Row").click()
    assert column(holes, 0) == sorted(column(holes, 0), key=float)


def test_a_component_can_be_chosen_and_a_name_found(opened):
    page = opened("ratings")
    components = page.locator("#components .components")
    assert components.locator("article:visible").count() == 4
    components.get_by_label("Show").select_option(label="Component 2")
    assert components.locator("article:visible h3").all_inner_texts() == ["Component 2"]
    assert components.locator(".count").inner_text() == "1 of 4 shown"
    components.get_by_label("Show").select_option(label="all")
    assert components.locator("article:visible").count() == 4
    search = components.get_by_label("Find a name")
    search.press_sequentially("USER 5")
    names = components.locator("tbody tr:visible > th").all_inner_texts()
    assert names
    assert all("user 5" in name for name in names)
    search.fill("nobody is called so")
    assert components.locator(".count").inner_text() == "0 of 4 shown"


@every_page
def test_pictures_have_a_size_and_words(looked_at, name):
    page = looked_at[name]
    drawings = page.get_by_role("img")
    assert drawings.count() >= 3
    for drawing in drawings.all():
        box = drawing.locator("svg").bounding_box()
        assert box["width"] > 200
        assert box["height"] > 120
        assert len(drawing.get_attribute("aria-label")) > 40
        inked = drawing.locator("svg path, svg image, svg use").count()
        assert inked > 10
    assert page.locator("svg[role], svg:not([aria-hidden])").count() == 0  # the words are told once


def test_points_tell_their_values(opened, models):
    """Of the histogram of stars: as many cells as were counted."""
    page = opened("ratings")
    drawing = page.get_by_role("img", name="Histogram of")
    stars, counts = np.unique(models["ratings"][1].values, return_counts=True)
    told = [f"value {star:g}: cells {count}" for star, count in zip(stars, counts, strict=True)]
    tip = page.locator("#tip")
    assert tip.is_hidden()
    for point, words in zip(drawing.locator(".point").all(), told, strict=True):
        point.hover()
        assert tip.inner_text() == words
    drawing.focus()
    for words in told:
        page.keyboard.press("ArrowRight")
        assert tip.inner_text() == words
        assert page.locator("#announcement").inner_text() == words
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_points_stand_where_things_are_drawn(looked_at):
    """Every bar of a histogram has its point in the middle of its top."""
    page = looked_at["ratings"]
    drawing = page.get_by_role("img", name="Histogram of")
    bars = [bar.bounding_box() for bar in drawing.locator("svg [id*='patch_'] path[style*='--blue']").all()]
    points = [point.bounding_box() for point in drawing.locator(".point").all()]
    assert len(bars) == len(points) == 5
    for bar, point in zip(bars, points, strict=True):
        assert abs(bar["x"] + bar["width"] / 2 - point["x"] - point["width"] / 2) < 2
        assert abs(bar["y"] - point["y"] - point["height"] / 2) < 2


@every_page
def test_nothing_sticks_out_at_the_side(opened, name):
    page = opened(name)
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    for width in (320, 360, 768):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for caption in page.locator(".scroll caption:visible").all():
            box = caption.bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width


@every_page
@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_all_text_can_be_told_from_what_is_behind_it(opened, name, color_scheme):
    """WCAG 2.2 AA, 1.4.3: a contrast of 4.5 at least."""
    page = opened(name, color_scheme=color_scheme)
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    found = page.evaluate(CONTRASTS)
    assert len(found) > 200
    assert sum(tag == "text" for _, tag, _ in found) > 20  # those in pictures, too
    assert [one for one in found if one[0] < 4.5] == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, dark[4:-1].split(","))) < 128) == (color_scheme == "dark")
    assert page.troubles == []


@every_page
def test_it_is_made_for_screen_readers(looked_at, name):
    page = looked_at[name]
    levels = [int(tag[1]) for tag in page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(one => one.tagName)")]
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after <= before + 1 for before, after in pairwise(levels))
    titles = page.locator("h2").all_inner_texts()
    assert page.locator("nav a").all_inner_texts() == titles
    for link, title in zip(page.locator("nav a").all(), titles, strict=True):
        assert page.locator(link.get_attribute("href")).locator("h2").inner_text() == title
    assert page.locator("html").get_attribute("lang") == "en"
    for table in page.locator("table").all():
        assert table.locator("caption").text_content().strip()
        assert table.locator("th:not([scope])").count() == 0
    ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    unnamed = "all => all.filter(one => !one.labels.length).map(one => one.outerHTML)"
    assert page.eval_on_selector_all("input, select", unnamed) == []


def test_the_keyboard_reaches_everything_and_shows_where_it_is(opened):
    page = opened("table")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"


def test_tables_stop_the_keyboard_only_where_they_scroll(opened):
    page = opened("ratings")
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    for width, are_stops in ((1200, False), (320, True)):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_timeout(100)
        boxes = page.eval_on_selector_all(".scroll", "all => all.map(b => [b.scrollWidth > b.clientWidth, b.tabIndex])")
        assert len(boxes) > 10
        assert all((stop == 0) == scrolls for scrolls, stop in boxes)
        assert any(stop == 0 for _, stop in boxes) == are_stops


def test_a_notebook_stays_where_it_is(browser, pages):
    """The frame of a report takes what it holds and no more, and its links lead into itself."""
    frame = Report("A report of a table", pages["table"].read_text(encoding="utf-8"))._repr_html_()
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(5000)
    address = "http://notebook.test/nb.html"
    shown = f"<!DOCTYPE html><title>notebook</title><h1>notebook</h1>{frame}<p id='after'>the next cell</p>"
    page.route("**/*", lambda route: route.fulfill(body=shown, content_type="text/html"))
    page.goto(address)
    assert page.locator("#after").is_visible()
    inside = page.frame_locator("iframe")
    for anchor in ("quality", "fit", "main"):
        link = inside.locator(f"a[href='#{anchor}']").first
        link.click() if anchor != "main" else link.press("Enter")
        assert [frame.url for frame in page.frames] == [address, "about:srcdoc"]
        assert inside.locator(f"#{anchor}").evaluate("one => document.activeElement === one")
        top = inside.locator(f"#{anchor}").evaluate("one => one.getBoundingClientRect().top")
        assert abs(top) < 40 or anchor == "main"
    assert inside.locator("h1").inner_text() == "A report of a table"
    context.close()


def test_without_scripts_the_page_says_the_same(opened):
    page = opened("ratings", java_script_enabled=False)
    assert page.locator("#components article:visible").count() == 4
    assert page.locator(".controls:visible").count() == 0
    assert page.locator("th button").count() == 0
    assert page.locator("#components table").first.locator("tbody tr").count() == 4
    assert page.get_by_role("img", name="Histogram of").locator("title").first.text_content().startswith("value 1: ")


def test_no_other_script_may_run(opened, pages, tmp_path):
    """If text ever became a script, the page itself would forbid it."""
    html = pages["table"].read_text(encoding="utf-8")
    (tmp_path / "changed.html").write_text(html.replace("</main>", "<script>alert(3)</script></main>"))
    page = opened("table", path=tmp_path / "changed.html")
    assert len(page.troubles) == 1
    assert "Content Security Policy" in page.troubles[0]
