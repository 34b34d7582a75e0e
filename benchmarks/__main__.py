"""`make bench`: run every benchmark, print the tables as they come, and keep them in benchmarks/results.md.

python -m benchmarks                    all of them
python -m benchmarks kernels memory     some of them
python -m benchmarks gpu                on a machine with a GPU; its tables are copied into results.md, and kept there
"""

import platform
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path

RESULTS = Path(__file__).with_name("results.md")
BENCHMARKS = (
    "reading", "kernels", "iterations", "ordinal", "rounding", "uncoupled", "rank_search", "large", "out_of_core",
    "scaling", "memory", "rank_one", "imputing", "sampling", "startup", "serving", "libraries", "ranking",
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
        for line in chain((f"## {module.__doc__.splitlines()[0]}", ""), module.run(), ("",)):
            print(line, flush=True)
            lines.append(line)
    if not names:
        _, heading, of_gpu = RESULTS.read_text(encoding="utf-8").partition("\n## On a GPU")
        RESULTS.write_text("\n".join(lines) + heading + of_gpu, encoding="utf-8")


main(sys.argv[1:])
