"""The top of the demo's report of film ratings, as a picture for the README: python docs/pictures/report.py.

Needs playwright and a Chromium. What it shows is whatever the demo makes.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

PLACE = Path(__file__).with_name("report.png")
WIDTH, HEIGHT, SCALE = 1100, 900, 0.8


def draw() -> None:
    """Run the demo in a folder that goes, and photograph its page."""
    with TemporaryDirectory() as folder, sync_playwright() as tools:
        demo = [sys.executable, "-c", "from halfseen.cli import main; main()", "demo", "-q", "-o", f"{folder}/demo"]
        subprocess.run(demo, check=True)
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE)
        page.goto(f"file://{folder}/demo/films.html")
        page.screenshot(path=PLACE)
        browser.close()


if __name__ == "__main__":
    draw()
