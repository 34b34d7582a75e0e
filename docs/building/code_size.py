"""Count the size of the code: files, lines, functions, private helpers, by package and in all.

    python docs/building/code_size.py            # a table
    python docs/building/code_size.py --json     # the same as JSON
    python docs/building/code_size.py --walk     # the files that OrdNMF().fit(frame) passes through

Counted by Python's syntax tree. A body is a function's lines after its signature and docstring. A private module
function begins with an underscore and stands at the top level of a file; it is "called once" if the file uses its name
in one place. The core is everything but what `OUTSIDE` lists.
"""

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: What is not the core: by the first parts of a path in src/halfseen.
OUTSIDE = (
    "studies", "cli", "report", "rank", "roundrank", "rankone", "uncoupled", "data/uncoupled", "coupling",
    "estimators/uncoupled", "datasets",
)  # fmt: skip
PUBLIC_MODULES = ("data", "datasets", "errors", "geometry", "metrics", "plots", "rank")


@dataclass(frozen=True)
class Function:
    """One function or method."""

    name: str
    body: int
    arguments: int
    any_arguments: int
    is_private_helper: bool
    uses: int


@dataclass(frozen=True)
class File:
    """What is counted in one file."""

    path: Path
    lines: int
    code: int
    functions: list[Function]
    classes: int
    ignores: int

    @property
    def package(self) -> str:
        """The folder below the package, or "top level"."""
        return self.path.parts[0] if len(self.path.parts) > 1 else "top level"

    @property
    def is_core(self) -> bool:
        """Whether the file belongs to the core."""
        parts = self.path.with_suffix("").as_posix()
        return not any(parts == outside or parts.startswith(f"{outside}/") for outside in OUTSIDE)


def read(path: Path, folder: Path) -> File:
    """Count one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    helpers = {node for node in tree.body if isinstance(node, ast.FunctionDef) and re.match(r"_(?!_)", node.name)}
    nodes = list(ast.walk(tree))
    defined = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    return File(
        path=path.relative_to(folder),
        lines=len(text.splitlines()),
        code=len(_code_lines(text, nodes)),
        functions=[_function(node, node in helpers, uses[node.name]) for node in defined],
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        ignores=len(re.findall(r"# type: ignore", text)),
    )


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, is_helper: bool, uses: int) -> Function:
    statements = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    last = node.end_lineno or node.lineno
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments = [argument for argument in every if argument.arg not in ("self", "cls")]
    is_any = [isinstance(one.annotation, ast.Name) and one.annotation.id == "Any" for one in arguments]
    body = last - statements[0].lineno + 1 if statements else 0
    return Function(node.name, body, len(arguments), sum(is_any), is_helper, uses)


def _code_lines(text: str, nodes: list[ast.AST]) -> set[int]:
    """The lines that hold more than blanks, comments and docstrings."""
    lines: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def read_all(folder: Path) -> list[File]:
    """Count every Python file below a folder."""
    return [read(path, folder) for path in sorted(folder.rglob("*.py"))]


def sizes(files: list[File]) -> dict[str, Any]:
    """The numbers of some files."""
    functions = [function for file in files for function in file.functions]
    bodies = sorted(function.body for function in functions) or [0]
    helpers = [function for function in functions if function.is_private_helper]
    lines, arguments = sum(file.lines for file in files), sum(function.arguments for function in functions)
    longest = max(files, key=lambda file: file.lines)
    repeated = Counter(file.path.stem for file in files if file.path.stem not in ("__init__", "__main__"))
    return {
        "files": len(files),
        "lines": lines,
        "code_lines": sum(file.code for file in files),
        "median_file": median(file.lines for file in files),
        "longest_file": longest.lines,
        "longest_file_path": longest.path.as_posix(),
        "files_per_1000_lines": 1000 * len(files) / lines,
        "functions": len(functions),
        "functions_per_1000_lines": 1000 * len(functions) / lines,
        "body_median": median(bodies),
        "body_p90": bodies[int(0.9 * (len(bodies) - 1))],
        "body_longest": bodies[-1],
        "classes": sum(file.classes for file in files),
        "private_module_functions": len(helpers),
        "private_called_once": sum(helper.uses == 1 for helper in helpers),
        "base_names_twice": sorted(name for name, count in repeated.items() if count > 1),
        "type_ignores": sum(file.ignores for file in files),
        "any_arguments": sum(function.any_arguments for function in functions),
        "any_share": sum(function.any_arguments for function in functions) / max(1, arguments),
    }


def report(root: Path = ROOT) -> dict[str, Any]:
    """All numbers: by package, of the core, of all, and of the tests."""
    files = read_all(root / "src" / "halfseen")
    packages = sorted({file.package for file in files})
    numbers = {name: sizes([file for file in files if file.package == name]) for name in packages}
    numbers["core"] = sizes([file for file in files if file.is_core])
    numbers["all"] = sizes(files)
    tests = read_all(root / "tests")
    of_tests = {
        "files": len(tests),
        "lines": sum(file.lines for file in tests),
        "functions": sum(function.name.startswith("test_") for file in tests for function in file.functions),
    }
    return {"packages": numbers, "tests": of_tests, "public_names": public_names(root / "src" / "halfseen")}


def public_names(package: Path) -> dict[str, int]:
    """How many names `halfseen` lists, and how many with its public modules."""
    listed = dict.fromkeys(PUBLIC_MODULES, 0)
    sys.path.insert(0, str(package.parent))
    try:
        import halfseen

        for name in PUBLIC_MODULES:
            module = getattr(halfseen, name)
            listed[name] = len(getattr(module, "__all__", None) or _defined_in(module))
        top = len(halfseen.__all__)
    finally:
        sys.path.remove(str(package.parent))
    return {"halfseen": top, "with_modules": top + sum(listed.values())}


def _defined_in(module: Any) -> list[str]:
    own = (name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__)
    return [name for name in own if not name.startswith("_")]


# --- the files that a call passes through -----------------------------------------------------------------------------


def files_walked(call: Callable[[], Any], package: Path | None = None) -> list[str]:
    """The files of halfseen whose functions `call` enters, in the order in which it first does.

    Compiled kernels count, because numba reports their calls; other threads don't, nor do modules that are imported on
    the way. Call once before, so that nothing is left to import.
    """
    if package is None:
        import halfseen

        package = Path(halfseen.__file__).parent
    prefix = f"{package}/"
    walked: dict[str, None] = {}

    def profile(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(prefix) and frame.f_code.co_name != "<module>":
            walked.setdefault(name.removeprefix(prefix))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(walked)


def walk_of_a_fit() -> list[str]:
    """The files that `OrdNMF().fit(frame)` passes through, for a small long frame, the second time it is called."""
    import pandas as pd

    from halfseen import OrdNMF

    films = {"user": ["ann", "ann", "bob", "bob"], "item": ["Alien", "Brazil", "Alien", "Clue"], "rating": [5, 4, 4, 1]}
    frame = pd.DataFrame(films)
    OrdNMF().fit(frame)
    return files_walked(lambda: OrdNMF().fit(frame))


# --- showing ----------------------------------------------------------------------------------------------------------


def table(numbers: dict[str, Any]) -> Iterator[str]:
    """The report as lines of text."""
    head = ("package", "files", "lines", "code", "file med/max", "/1000", "functions", "/1000", "body med/p90/max")
    yield "{:<12} {:>5} {:>6} {:>6} {:>12} {:>6} {:>9} {:>6} {:>16} {:>7} {:>8} {:>5} {:>6} {:>5}".format(
        *head, "classes", "private", "once", "ignore", "Any"
    )
    for name, one in numbers["packages"].items():
        yield (
            f"{name:<12} {one['files']:>5} {one['lines']:>6,} {one['code_lines']:>6,} "
            f"{one['median_file']:>7g}/{one['longest_file']:<4} {one['files_per_1000_lines']:>6.1f} "
            f"{one['functions']:>9,} {one['functions_per_1000_lines']:>6.0f} "
            f"{one['body_median']:>8g}/{one['body_p90']}/{one['body_longest']:<4} {one['classes']:>7} "
            f"{one['private_module_functions']:>8} {one['private_called_once']:>5} {one['type_ignores']:>6} "
            f"{one['any_share']:>5.0%}"
        )
    for name in ("core", "all"):
        one = numbers["packages"][name]
        twice = one["base_names_twice"]
        yield f"{name}: longest file {one['longest_file_path']}; {one['any_arguments']:,} arguments are Any"
        yield f"{name}: {len(twice)} base names twice or oftener: {', '.join(twice)}"
    tests, names = numbers["tests"], numbers["public_names"]
    yield f"tests: {tests['files']} files, {tests['lines']:,} lines, {tests['functions']:,} test functions"
    yield f"public names: {names['halfseen']} in halfseen, {names['with_modules']} with its public modules"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", type=Path, nargs="?", default=ROOT, help="the root of the repository")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--walk", action="store_true", help="the files that OrdNMF().fit(frame) passes through")
    options = parser.parse_args()
    if options.walk:
        sys.path.insert(0, str(options.root / "src"))
        walked = walk_of_a_fit()
        print(json.dumps(walked) if options.json else "\n".join([*walked, f"{len(walked)} files"]))
        return
    numbers = report(options.root)
    print(json.dumps(numbers, indent=1) if options.json else "\n".join(table(numbers)))


if __name__ == "__main__":
    main()
