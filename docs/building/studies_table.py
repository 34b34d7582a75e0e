"""The table of docs/studies.md: the state of every study, from the records of whole runs in docs/reproduced.

python docs/building/studies_table.py            # print the table
"""

import json
from pathlib import Path

from halfseen.studies import NAMES

RECORDS = Path(__file__).parent.parent / "reproduced"


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
    print("\n".join(table()))
