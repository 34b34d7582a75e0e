"""The table of docs/studies.md: the state of every study, from the records of whole runs in docs/reproduced.

python docs/building/studies_table.py            # print the table
python docs/building/studies_table.py --write    # and put it into the page
"""

import json
import re
import sys
from pathlib import Path

from halfseen.studies import NAMES

DOCS = Path(__file__).parent.parent
RECORDS = DOCS / "reproduced"
#: Stands above the table.
MARK = "<!-- python docs/building/studies_table.py --write -->\n"


def table() -> list[str]:
    """Lines in Markdown: a row per study."""
    lines = ["| study | state | seconds | machine | command | date |", "| --- | --- | ---: | --- | --- | --- |"]
    for name in NAMES:
        known = json.loads((RECORDS / f"{name.replace('/', '-')}.json").read_text("utf-8"))
        if known["terms"]["quick"]:
            raise SystemExit(f"{name}: the record must be of a whole run. Run it without --quick.")
        run = known["record"]
        link = f"[{name}](reproduced/studies.md#{name.replace('/', '-').replace('.', '-')})"
        state = known["verdict"] or "no goals"
        lines.append(
            f"| {link} | {state} | {known['seconds']:,.0f} | {run['machine']} | `{run['command']}` | {run['date']} |"
        )
    return lines


if __name__ == "__main__":
    text = "\n".join(table())
    print(text)
    if "--write" in sys.argv:
        page = DOCS / "studies.md"
        written = re.sub(rf"{re.escape(MARK)}\n(\|.*\n)*", lambda _: f"{MARK}\n{text}\n", page.read_text("utf-8"))
        page.write_text(written, "utf-8")
