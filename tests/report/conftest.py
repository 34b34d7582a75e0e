"""A real browser, and pages to open in it."""

import shutil

import numpy as np
import pytest

import halfseen as hs
from tests.report.models import NASTY, quiet, survey, table

#: Levels that the alphabet, and rules for whole numbers in texts, would bring into another order.
LEVELS = [-1, -0.5, 0, 0.5, 1.25, 1.5, 10]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: Nothing that a browser does by itself on the network, and no sandbox, which root can't have.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium with a new, empty profile."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright, which drives a browser, is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser on the PATH: {', '.join(BROWSERS)}")
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except api.Error as error:
            pytest.skip(f"{path} does not start: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def models():
    """By name: a model, what it was fitted on, and what was held out."""
    stars = table(60, 9, whole=True)
    stars.index = [f"user {row}" for row in range(59)] + [NASTY[0]]
    train, test = hs.data.split_cells(stars, 0.2, random_state=0, unseen="zero")
    amounts = table(40, 9, seed=2)
    known, held = hs.data.split_cells(amounts, 0.2, random_state=0)
    asked = survey()
    random = np.random.default_rng(0)
    ordered = np.where(random.random((30, 6)) < 0.7, random.choice(LEVELS, (30, 6)), np.nan)
    with quiet():
        return {
            "levels": (hs.OrdinalMF(1, random_state=0).fit(ordered), ordered, None),
            "ratings": (hs.OrdNMF(4, random_state=0).fit(train), train, test),
            "table": (hs.WeightedNMF(3, random_state=0).fit(known), known, held),
            "survey": (hs.UncoupledNMF(2, n_sweeps=200, n_burn=50, random_state=0).fit(asked), asked, None),
        }


@pytest.fixture(scope="session")
def pages(models, tmp_path_factory):
    """The files of their reports, by name."""
    folder = tmp_path_factory.mktemp("pages")
    with quiet():
        for name, (model, train, test) in models.items():
            hs.make_report(model, train, test, title=f"A report of a {name}").save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in models}


@pytest.fixture
def opened(browser, pages):
    """Opens a page: `opened("ratings", color_scheme="dark")`; what went wrong in it is in `.troubles`."""
    contexts = []

    def opener(name, *, path=None, **how):
        contexts.append(browser.new_context(viewport={"width": 1200, "height": 800}, **how))
        return _opened(contexts[-1], pages[name] if path is None else path)

    yield opener
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def looked_at(browser, pages):
    """Pages that are opened once, to be looked at and left as they are."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    yield {name: _opened(context, path) for name, path in pages.items()}
    context.close()


def _opened(context, path):
    page = context.new_page()
    page.set_default_timeout(5000)
    page.troubles = []
    page.on("console", lambda message: page.troubles.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: page.troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (page.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    address = path.as_uri()
    page.on("request", lambda request: request.url != address and page.troubles.append(f"asked: {request.url}"))
    page.goto(address)
    return page


@pytest.fixture
def undrawn(monkeypatch):
    """Pages whose words alone are read: nothing is painted, which would take most of the time."""
    nothing = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    canvas = "matplotlib.backends.backend_svg.FigureCanvasSVG.print_svg"
    monkeypatch.setattr(canvas, lambda _, file, **__: file.write(nothing))
