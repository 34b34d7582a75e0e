"""Who may import whom."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import halfseen

SOURCE = Path(halfseen.__file__).parent

#: Packages and modules with their layers; those of a line belong together.
LAYERS = {
    ("cli",): 15,
    ("studies",): 14,
    ("serving",): 14,
    ("plots", "report", "selection", "datasets", "data"): 13,
    ("metrics", "rank", "roundrank", "uncoupled"): 12,
    ("estimators",): 11,
    ("archive", "archive_v1", "blending", "checkpoint", "fitting", "geometry", "graphs", "sampling"): 10,
    ("model", "ranking"): 9,
    ("folding", "held_out", "rankone"): 8,
    ("solvers",): 7,
    ("engines", "encoders"): 6,
    ("likelihoods",): 5,
    ("imputation",): 4,
    ("io",): 3,
    ("observed", "labels"): 2,
    ("kernels", "array_files"): 1,
    ("arrays", "validation", "docstrings", "errors"): 0,
}
NUMBER = {name: number for names, number in LAYERS.items() for name in names}
TOGETHER = {name: names for names in LAYERS for name in names}

FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.name != "__init__.py")
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))


def package_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    """The full names of all modules that a file imports, anywhere in it."""
    package = ["halfseen", *path.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = ".".join([*package[: len(package) - node.level + 1], *([module] if module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names) if module == "halfseen" else [module]


def imported_packages(path):
    """The packages of halfseen that a file imports; a public name stands for its own, and `__version__` for none."""
    names = (name.split(".") for name in imported(path))
    insides = {name[1] for name in names if name[0] == "halfseen" and len(name) > 1} - {"__version__"}
    return {halfseen._MODULE_OF.get(name, name) for name in insides}


def test_every_package_has_a_layer():
    assert {package_of(path) for path in FILES} <= set(NUMBER)


@every_file
def test_imports_point_downwards(path):
    here = package_of(path)
    wrong = {
        there
        for there in imported_packages(path)
        if TOGETHER[there] != TOGETHER[here] and NUMBER[there] >= NUMBER[here]
    }
    assert not wrong, f"{here} ({NUMBER[here]}) imports {', '.join(f'{name} ({NUMBER[name]})' for name in wrong)}"


@every_file
def test_only_upper_layers_import_halfseen_itself(path):
    """`import halfseen` would be a way around the law."""
    assert NUMBER[package_of(path)] >= 8 or "halfseen" not in imported(path)


@every_file
def test_only_kernels_import_numba_and_only_packages_that_compute_import_kernels(path):
    if package_of(path) != "kernels":
        assert not [name for name in imported(path) if name.split(".")[0] in ("numba", "llvmlite")]
    computing = {
        "kernels",
        "observed",
        "labels",
        "imputation",
        "engines",
        "graphs",
        "rankone",
        "roundrank",
        "sampling",
        "uncoupled",
    }
    if package_of(path) not in computing:
        assert "kernels" not in imported_packages(path)


@every_file
def test_only_the_command_line_prints(path):
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    prints = [call for call in calls if isinstance(call, ast.Name) and call.id == "print"]
    assert package_of(path) == "cli" or not prints


@every_file
def test_nothing_is_asserted_at_users(path):
    assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]


@every_file
def test_no_name_of_a_module_is_given_twice(path):
    """A constant that is defined again further down holds for the functions above it, too."""
    names = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    assert sorted(names) == sorted(set(names))


def modules_after(code):
    """What is loaded in a fresh interpreter after `code`."""
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        env={"PYTHONPATH": str(SOURCE.parent), "PATH": ""}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(answer.stdout.split())


def test_importing_halfseen_loads_nothing_heavy():
    loaded = modules_after("import halfseen, halfseen.data; dir(halfseen); halfseen.__version__")
    assert "halfseen" in loaded
    assert not loaded & {"numba", "sklearn", "pandas", "polars", "pyarrow", "scipy", "numpy", "rich", "narwhals"}


def test_recommending_from_a_file_loads_nothing_that_it_does_not_need(tmp_path):
    """Neither scikit-learn nor compiled code, for the lists of one user and for what is similar."""
    X = numpy.random.default_rng(0).integers(0, 5, (9, 7))
    halfseen.SquaredOrdNMF(2, max_iter=3, tol=0, random_state=0).fit(X).save(tmp_path / "model.hs")
    for words in (["recommend", "--user", "3"], ["recommend", "--user", "99", "--json"], ["similar", "--item", "2"]):
        command = [words[0], str(tmp_path / "model.hs"), *words[1:]]
        start = "import sys; from halfseen.cli import main; sys.stdout = sys.stderr"
        loaded = modules_after(f"{start}; main({command!r}, standalone_mode=False); sys.stdout = sys.__stdout__")
        assert "scipy.special" in loaded  # links of likelihoods
        heavy = {"numba", "sklearn", "pandas", "polars", "pyarrow", "narwhals", "joblib", "rich", "scipy.optimize"}
        assert not loaded & heavy


def test_compiled_code_is_loaded_by_a_fit_and_not_before():
    make = "import halfseen; model = halfseen.WeightedNMF(1, max_iter=1, tol=0)"
    assert "numba" not in modules_after(make)
    assert "numba" in modules_after(f"{make}; model.fit([[1.0, 2.0], [3.0, 4.0]])")


def test_every_public_name_is_there():
    for name in halfseen.__all__:
        assert getattr(halfseen, name) is not None
    assert set(halfseen.__all__) < set(dir(halfseen))
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        halfseen.Nonsense  # noqa: B018


def code_size():
    """The script that counts, docs/building/code_size.py."""
    path = Path(__file__).parents[2] / "docs" / "building" / "code_size.py"
    spec = importlib.util.spec_from_file_location("code_size", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["code_size"] = module
    spec.loader.exec_module(module)
    return module


def test_the_code_is_divided_into_few_pieces():
    tool = code_size()
    files = tool.read_all(SOURCE)
    sizes = tool.sizes(files)
    assert sizes["files"] <= 203
    assert sizes["files_per_1000_lines"] <= 6
    assert sizes["private_module_functions"] <= 360
    assert sizes["type_ignores"] <= 15
    assert sizes["base_names_twice"] == ["base", "ranking"]


def test_a_fit_passes_through_few_files():
    walked = code_size().walk_of_a_fit()
    assert len(walked) <= 29, walked
