"""halfseen uncouple: from three lists, collected apart, to a table of who answered what."""

import csv
import os
import re
import signal
from itertools import combinations

import numpy as np
import pytest

import halfseen as hs
from halfseen.sampling.coupling_chain import CouplingChain
from tests.cli.program import halfseen as run
from tests.cli.program import misused, names_in, refused, refused_for_room

QUESTIONS = ("rent", "food", "books", "travel", "gifts", "sport")
PEOPLE = ("ann", "bob", "cid", "dora", "eve", "fay", "gus")
#: Everything that the program says of the lists and of the fit goes to stderr.
LONG_HEADER = ["question", "respondent", "value", "low", "high", "asked", "likeliest answer", "probability"]
FAST = ("--sweeps", 60, "--burn", 20)
#: Comparisons that are never wrong.
SURE = (*FAST, "--trust", 100)


def truth():
    """Different answers in every row; NaN where nobody was asked. The first question was asked of all, in order."""
    random = np.random.default_rng(7)
    values = np.round(np.outer(random.uniform(1, 3, 6), random.uniform(2, 9, 7)) + random.random((6, 7)), 4)
    row, column = np.indices(values.shape)
    values[((row + 2 * column) % 5 == 0) & (row > 0)] = np.nan
    assert all(np.unique(row[~np.isnan(row)]).size == np.sum(~np.isnan(row)) for row in values)
    return values


TRUTH = truth()
ASKED = ~np.isnan(TRUTH)


def asked_lines():
    return [f"{QUESTIONS[i]},{PEOPLE[j]}" for i, j in zip(*np.nonzero(ASKED), strict=True)]


def answer_lines():
    """In rising order: nobody can tell whose they are."""
    return [f"{question},{x}" for question, row in zip(QUESTIONS, TRUTH, strict=True) for x in np.sort(row) if x == x]


def comparison_lines(every=1):
    """All pairs of those asked, or every so many of them."""
    lines = []
    for i, question in enumerate(QUESTIONS):
        pairs = combinations(np.flatnonzero(ASKED[i]), 2)
        ordered = [sorted(pair, key=lambda j: -TRUTH[i, j]) for pair in pairs]
        lines += [f"{question},{PEOPLE[high]},{PEOPLE[low]}" for high, low in ordered[::every]]
    return lines


def write_lists(folder, asked="item,user", answers="item,score", comparisons="item,higher,lower", every=1):
    contents = {
        "asked.csv": (asked, asked_lines()),
        "answers.csv": (answers, answer_lines()),
        "comparisons.csv": (comparisons, comparison_lines(every)),
    }
    for name, (header, lines) in contents.items():
        (folder / name).write_text("\n".join([*([header] if header else []), *lines]) + "\n")
    return words_for(folder)


def words_for(folder):
    return [word for what in ("asked", "answers", "comparisons") for word in (f"--{what}", folder / f"{what}.csv")]


def filled(*words):
    """The lines that the command tells of its work."""
    result = run("uncouple", *words)
    assert (result.exit_code, result.stdout) == (0, "")
    return [line for line in result.stderr.splitlines() if not line.startswith("note: ")]


def records(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def column(table, name):
    place = table[0].index(name)
    return [record[place] for record in table[1:]]


@pytest.fixture
def lists(tmp_path):
    return write_lists(tmp_path)


@pytest.fixture
def few(tmp_path):
    """Only a third of the pairs compared."""
    return write_lists(tmp_path, every=3)


# The table.


def test_with_all_pairs_compared_every_answer_finds_its_owner(lists, tmp_path):
    filled(*lists, *SURE, "-o", tmp_path / "out.csv")
    table = records(tmp_path / "out.csv")
    assert table[0] == LONG_HEADER
    assert [tuple(record[:2]) for record in table[1:]] == [(q, p) for q in QUESTIONS for p in PEOPLE]
    assert column(table, "asked") == ["yes" if asked else "no" for asked in ASKED.reshape(-1)]
    expected = [str(x) if x == x else "" for x in TRUTH.reshape(-1)]
    assert column(table, "likeliest answer") == expected
    assert column(table, "probability") == ["1.0" if x else "" for x in expected]
    for name in ("value", "low", "high"):
        at_asked = [field for field, answer in zip(column(table, name), expected, strict=True) if answer]
        assert at_asked == [answer for answer in expected if answer]


def test_the_table_and_the_summary_are_of_the_model(few, tmp_path):
    place, path = tmp_path / "out.csv", tmp_path / "model.hs"
    lines = filled(*few, *FAST, "--seed", 3, "--level", 0.5, "-o", place, "--model", path)
    table, model = records(place), hs.load(path)
    pairs = column(table, "question"), column(table, "respondent")
    low, high = model.predict_interval(*pairs, level=0.5)
    for name, expected in (("value", model.predict(*pairs)), ("low", low), ("high", high)):
        np.testing.assert_allclose(np.array(column(table, name), float), expected, rtol=0, atol=1e-9)
    coupling, risk = model.coupling(), model.disclosure_risk()
    asked = [record for record in table[1:] if record[5] == "yes"]
    assert [tuple(record[:2]) for record in asked] == list(zip(coupling.row, coupling.column, strict=True))
    np.testing.assert_allclose([float(record[6]) for record in asked], coupling.answer)
    np.testing.assert_allclose([float(record[7]) for record in asked], risk)
    wanted = {"method": "gibbs", "n_components": 5, "n_sweeps": 60, "n_burn": 20, "random_state": 3}
    assert wanted.items() <= model.get_params().items()
    assert [line.split(":")[0] for line in lines[:3]] == [f"Read {path}" for path in few[1::2]]
    assert lines[3].startswith(f"6 questions, 7 respondents, {ASKED.sum()} asked cells, ")
    assert lines[4].startswith("UncoupledNMF: 5 components, method gibbs, ")
    assert lines[5].startswith(f"{model.status_.name} after {model.n_iter_} sweeps in ")
    assert "n_sweeps" not in lines[5]
    assert lines[6].split() == ["mean", "R-hat", "effective", "draws"]
    for line, (name, mixing) in zip(lines[7:], model.diagnostics_.items(), strict=False):
        mean, r_hat, effective = line.removeprefix(name).split()
        assert (mean, r_hat, effective) == (f"{mixing.mean:.5g}", f"{mixing.r_hat:.3f}", f"{mixing.effective:,.0f}")
    numbers = (f"Of {ASKED.sum()} ", f" {np.sum(risk >= 0.9)} can", f" {100 * risk.mean():.0f} %")
    assert all(number in lines[-3] for number in numbers)
    assert [line.split(" (")[0] for line in lines[-2:]] == [f"Saved {place}", f"Saved {path}"]
    assert len(lines) == 7 + len(model.diagnostics_) + 3
    assert filled(*few, *FAST, "-q", "-o", place) == []


@pytest.mark.parametrize(
    ("questions_are", "corner", "rows", "columns"),
    [("rows", "question", QUESTIONS, PEOPLE), ("columns", "respondent", PEOPLE, QUESTIONS)],
)
def test_a_matrix_and_only_those_asked(few, tmp_path, questions_are, corner, rows, columns):
    words = (*few, *FAST, "--questions-are", questions_are)
    for name, options in (("long", ()), ("some", ("--only-asked",)), ("wide", ("--wide",))):
        filled(*words, *options, "-o", tmp_path / f"{name}.csv")
    everything, asked, wide = (records(tmp_path / f"{name}.csv") for name in ("long", "some", "wide"))
    assert asked == [everything[0], *(record for record in everything if record[5] == "yes")]
    assert [",".join(record[:2]) for record in asked[1:]] == asked_lines()
    values = {tuple(record[:2]): record[2] for record in everything[1:]}
    assert wide[0] == [corner, *columns]
    assert [record[0] for record in wide[1:]] == list(rows)
    for record in wide[1:]:
        pairs = [(record[0], name) if questions_are == "rows" else (name, record[0]) for name in columns]
        assert record[1:] == [values[pair] for pair in pairs]


def test_a_matrix_of_those_asked_alone_is_empty_elsewhere(lists, tmp_path):
    filled(*lists, *SURE, "--wide", "--only-asked", "-o", tmp_path / "out.csv")
    found = [record[1:] for record in records(tmp_path / "out.csv")[1:]]
    assert found == [[str(x) if x == x else "" for x in row] for row in TRUTH]


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ("unmf --loss kullback-leibler --balance half", {"loss": "kullback-leibler", "balance": "half"}),
        ("bayes -k 3 --max-iter 5 --n-jobs 1", {"n_components": 3, "max_iter": 5, "n_jobs": 1}),
        ("decode -k 2", {"n_components": 2}),
        ("gibbs --sweeps 60 --burn 20 --trust 3 --scale question", {"n_burn": 20, "trust": 3.0, "scale": "question"}),
        ("gibbs --sweeps 30 --burn 10 --chains 3", {"n_sweeps": 30, "n_chains": 3}),
    ],
)
def test_options_are_parameters_and_methods_that_do_not_sample_give_values_alone(few, tmp_path, words, parameters):
    told = filled(*few, "--method", *words.split(), "-o", tmp_path / "out.csv", "--model", tmp_path / "model.hs")
    model, table = hs.load(tmp_path / "model.hs"), records(tmp_path / "out.csv")
    bounds = getattr(model, "error_bounds_", None)
    assert (bounds is not None) == (model.method in ("unmf", "bayes"))
    assert any("uniformly distributed" in line for line in told) == (bounds is not None)
    if bounds is not None:
        (line,) = (line for line in told if "uniformly distributed" in line)
        assert f"median {np.median(bounds):.3g}" in line
        assert f"largest {bounds.max():.3g} for question {str(model.row_labels_[bounds.argmax()])!r}" in line
    assert (parameters | {"method": words.split()[0]}).items() <= model.get_params().items()
    if model.method != "gibbs":
        assert table[0] == ["question", "respondent", "value", "asked"]
        values = np.array(column(table, "value"), float)
        np.testing.assert_allclose(values, (model.W_ @ model.H_.T).reshape(-1), atol=1e-9)


def test_the_number_of_components_is_chosen_and_told(lists, tmp_path):
    told = filled(*lists, *FAST, "-k", "auto", "-o", tmp_path / "out.csv", "--model", tmp_path / "model.hs")
    model = hs.load(tmp_path / "model.hs")
    assert (model.n_components, model.n_components_) == ("auto", model.W_.shape[1])
    assert any(f"UncoupledNMF: {model.n_components_} component" in line for line in told)


# The lists. How they are read is tested in tests/uncoupled.


@pytest.mark.parametrize(
    ("headers", "words", "columns"),
    [
        (
            {"asked": "A,B", "answers": "A,C", "comparisons": "A,D,E"},
            ("--question", "A", "--respondent", "B", "--value", "C", "--higher", "D", "--lower", "E"),
            "'A' 'B' 'A' 'C' 'A' 'D' 'E'",
        ),
        ({"asked": "", "answers": "", "comparisons": ""}, ("--question", 0, "--higher", 1), "1 2 1 2 1 2 3"),
    ],
)
def test_the_summary_says_what_was_recognised(tmp_path, headers, words, columns):
    lists = write_lists(tmp_path, **headers)
    lines = filled(*lists, *SURE, *words, "-o", tmp_path / "out.csv")
    roles = ("question", "respondent", "question", "value", "question", "higher", "lower")
    parts = [f"{role} from column {column}" for role, column in zip(roles, columns.split(), strict=True)]
    for line, path, named in zip(lines, lists[1::2], (parts[:2], parts[2:4], parts[4:]), strict=False):
        assert line == f"Read {path}: {', '.join(named)}."
    answers = column(records(tmp_path / "out.csv"), "likeliest answer")
    assert answers == [str(x) if x == x else "" for x in TRUTH.reshape(-1)]


def test_without_comparisons_there_is_a_note(tmp_path):
    result = run("uncouple", *write_lists(tmp_path)[:4], "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert result.stderr.startswith("note: ")
    chances = [1 / row.sum() for row in ASKED for asked in row if asked]  # all answers differ
    found = [float(field) for field in column(records(tmp_path / "out.csv"), "probability") if field]
    np.testing.assert_allclose(found, chances)


def test_faults_are_noted_or_refused(lists, tmp_path):
    path = tmp_path / "comparisons.csv"
    path.write_text(path.read_text() + "rent,ann,zoe\nrent,gus,gus\n")
    result = run("uncouple", *lists, *FAST, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert re.match("note: .*--faults refuse", result.stderr)
    (tmp_path / "out.csv").unlink()
    line = refused("uncouple", *lists, *FAST, "--faults", "refuse", "-o", tmp_path / "out.csv")
    assert "--faults report" in line
    assert not (tmp_path / "out.csv").exists()


# Refusals; more of them in test_refusals.py and test_messages.py.


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--method", "unmf", "--trust", 3], "--trust belongs to --method gibbs;"),
        (["--balance", "half"], "--balance belongs to --method unmf and bayes;"),
        (["--sweep", 3], "'--sweeps'?"),
        (["-k", "auto:1,2"], "no list"),
    ],
)
def test_options_that_do_not_go_together(lists, tmp_path, words, named):
    assert named in misused("uncouple", *lists, *words, "-o", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_table_that_is_too_large_is_refused_before_the_fit(lists, tmp_path, monkeypatch):
    monkeypatch.setattr("halfseen.cli.uncouple.MAX_CELLS", TRUTH.size - 1)
    monkeypatch.setattr(hs.UncoupledNMF, "fit", lambda *_: pytest.fail("The refusal came only after the work."))
    assert "--only-asked" in refused("uncouple", *lists, "-o", tmp_path / "out.csv")


def test_a_full_disk_leaves_what_was_there(lists, tmp_path, full_disk):
    (tmp_path / "out.csv").write_text("before\n")
    refused_for_room(full_disk, "uncouple", *lists, "--method", "decode", "-k", 1, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "before\n"
    assert names_in(tmp_path) == ["answers.csv", "asked.csv", "comparisons.csv", "out.csv"]


def test_ctrl_c_before_anything_was_drawn(lists, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(hs.UncoupledNMF, "fit", interrupted)
    result = run("uncouple", *lists, "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stderr) == (130, "Interrupted; nothing was saved.\n")
    assert not (tmp_path / "out.csv").exists()


def test_the_same_command_resumes_after_sigterm(lists, tmp_path, monkeypatch):
    sweep, left, before = CouplingChain.sweep, [22], signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def terminated(chain, proposals):  # one after another: five sweeps each to warm up, then side by side
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        sweep(chain, proposals)

    def command(name, *words):
        words = (*lists, *FAST, "--n-jobs", 1, "--model", tmp_path / f"{name}.hs", *words)
        return run("uncouple", *words, "-o", tmp_path / f"{name}.csv")

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(CouplingChain, "sweep", terminated)
        try:
            first = command("out", "--checkpoint", "run")
        finally:
            signal.signal(signal.SIGTERM, before)
    assert (first.exit_code, first.stdout) == (143, "")
    assert first.stderr == "Saved iteration 6 in run; the same command resumes.\n"
    assert "out.csv" not in names_in(tmp_path)
    second, whole = command("out", "--checkpoint", "run"), command("whole")
    assert (second.exit_code, whole.exit_code) == (0, 0)
    assert second.stderr.startswith("Resuming from iteration 6 of run.\n")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    one, other = (hs.load(tmp_path / f"{name}.hs") for name in ("out", "whole"))
    np.testing.assert_array_equal(one.posterior_.draws.coupling, other.posterior_.draws.coupling)
    np.testing.assert_array_equal(one.W_, other.W_)


# The model, in the other commands.


@pytest.mark.parametrize("questions_are", ["rows", "columns"])
def test_predict_knows_questions_and_respondents_by_their_headers(lists, tmp_path, questions_are):
    """In files of either order, the command's own table among them, and in single cells."""
    path = tmp_path / "model.hs"
    filled(*lists, *SURE, "--questions-are", questions_are, "-o", tmp_path / "out.csv", "--model", path)
    cells = np.argwhere(ASKED)[[4, 9]]
    lines = [f"{PEOPLE[j]},{QUESTIONS[i]}" for i, j in cells]
    (tmp_path / "cells.csv").write_text("\n".join(["user,item", *lines]) + "\n")
    run("predict", path, "--cells", tmp_path / "cells.csv", "-o", tmp_path / "predicted.csv")
    found = np.array(column(records(tmp_path / "predicted.csv"), "prediction"), float)
    np.testing.assert_allclose(found, TRUTH[tuple(cells.T)])
    run("predict", path, "--cells", tmp_path / "out.csv", "-o", tmp_path / "again.csv")
    values, again = (np.array(column(records(tmp_path / "again.csv"), name), float) for name in ("value", "prediction"))
    np.testing.assert_allclose(again, values, atol=1e-9)
    names = (QUESTIONS[cells[0, 0]], PEOPLE[cells[0, 1]])
    row, col = names if questions_are == "rows" else names[::-1]
    assert run("predict", path, "--row", row, "--col", col).stdout == f"{row}\t{col}\t{found[0]:.6g}\n"
    for words in (("recommend", path, "--user", "ann"), ("evaluate", path, "--test", tmp_path / "out.csv")):
        assert "halfseen predict" in refused(*words)
    assert "--level" in refused("predict", path, "--row", row, "--col", col, "--level")
