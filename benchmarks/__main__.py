"""`make bench`: run every benchmark, print the tables as they come, and keep them in benchmarks/results.md.

python -m benchmarks                    all of them
python -m benchmarks kernels memory     some of them
"""

import platform
import sys
from importlib import import_module
from pathlib import Path

BENCHMARKS = (
    "reading", "kernels", "iterations", "ordinal", "rounding", "uncoupled", "rank_search", "large", "scaling", "memory",
    "rank_one", "startup", "libraries",
)  # fmt: skip


def main(names: list[str]) -> None:
    import joblib

    lines = [
        "# Benchmarks",
        "",
        f"`make bench` on {joblib.cpu_count()} processors ({platform.machine()}, Python {platform.python_version()}), "
        "2 threads. Ratios are within one run; absolute times are this machine's.",
        "",
    ]
    for name in names or BENCHMARKS:
        module = import_module(f"benchmarks.{name}")
        table = [f"## {module.__doc__.splitlines()[0]}", "", *module.run(), ""]
        print("\n".join(table), flush=True)
        lines += table
    if not names:
        Path(__file__).with_name("results.md").write_text("\n".join(lines), encoding="utf-8")


main(sys.argv[1:])
