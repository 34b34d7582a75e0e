"""halfseen impute: a table with its holes filled."""

import csv
import gzip
import io
import re

import numpy as np
import pytest

from halfseen import OrdinalMF, RoundMF, WeightedNMF
from halfseen.estimators import base
from tests.cli.program import check_refusal, done, misused, names_in, program, refused, refused_for_room, remarked
from tests.cli.program import halfseen as run
from tests.rank_one import oracle

#: Numbers as people write them: with signs, zeros, exponents and marks of what is missing.
TABLE = """id,city,price,size,"note, if any",rooms
007,Rome,1.50,NA,"say ""b"" twice",3
012,Oslo,,3e2,,2
013,"Rome, It",2.,+70,x,?
014,Bonn,4.125,0700,,4.0
015,Kyiv,0.50,1e2,y,1
"""
HEADER = ["id", "city", "price", "size", "note, if any", "rooms"]
QUOTED = '"say ""b"" twice"'
VALUES = np.array([[1.5, np.nan, 3], [np.nan, 300, 2], [2, 70, np.nan], [4.125, 700, 4], [0.5, 100, 1]])
NUMERIC = [2, 3, 5]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def records(text, delimiter=","):
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


def model_of(values, k, **options):
    """What the model says about every cell of a table whose columns are brought to mean 1, computed here."""
    means = np.nanmean(values, axis=0)
    if k == 1:  # the best there is
        return np.outer(*oracle.best(values / means)) * means
    model = WeightedNMF(k, random_state=0, **options).fit(values / means)
    return model.W_ @ model.H_.T * means


def assert_filled(new, old, values, expected):
    """What was seen stands there byte for byte, the holes hold the expected numbers."""
    found = np.array([[record[column] for column in NUMERIC] for record in new[1:]])
    written = np.array([[record[column] for column in NUMERIC] for record in old[1:]])
    holes = np.isnan(values)
    assert found[~holes].tolist() == written[~holes].tolist()
    filled = found[holes].astype(float)
    within = np.clip(expected, np.nanmin(values, axis=0), np.nanmax(values, axis=0))
    np.testing.assert_allclose(filled, within[holes], rtol=1e-9)
    assert (filled > 0).all()


def test_the_table_comes_back_with_its_holes_filled(table, tmp_path):
    done("impute", table, "-k", 2, "--skip", "id", "-o", tmp_path / "out.csv")
    old, new = records(TABLE), records((tmp_path / "out.csv").read_text())
    assert new[0] == HEADER
    untouched = [column for column in range(len(HEADER)) if column not in NUMERIC]
    assert [[record[c] for c in untouched] for record in new] == [[record[c] for c in untouched] for record in old]
    assert_filled(new, old, VALUES, model_of(VALUES, 2))


def test_lines_without_a_hole_are_the_same_bytes(table, tmp_path):
    done("impute", table, "-k", 2, "--skip", "id", "-o", tmp_path / "out.csv")
    old, new = TABLE.splitlines(), (tmp_path / "out.csv").read_text().splitlines()
    assert [new[line] for line in (0, 4, 5)] == [old[line] for line in (0, 4, 5)]


def test_the_account(table, tmp_path):
    place = tmp_path / "out.csv"
    lines = done("impute", table, "-k", 2, "--skip", "id", "-o", place)
    assert lines[0] == (
        f"Read {table}: 5 x 3, 12 cells seen (0.8 of all), values 0.5 to 700. "
        "A wide table: names of rows from column 'id', 3 columns of numbers."
    )
    assert lines[1] == "Filled 3 holes in 3 columns of numbers; kept as they are: id, city, note, if any."
    assert lines[2] == "WeightedNMF: 2 components, loss kullback-leibler, unseen cells are missing."
    assert re.fullmatch(
        r"CONVERGED after \d+ iterations in [\d.]+ s\. The objective hardly changes any more\.", lines[3]
    )
    assert lines[4] == f"Saved {place} ({place.stat().st_size} bytes)."
    assert len(lines) == 5


def test_quiet_prints_nothing(table, tmp_path):
    assert done("impute", table, "-k", 2, "-q", "-o", tmp_path / "out.csv") == []
    assert (tmp_path / "out.csv").exists()


def test_a_first_column_of_ids_names_the_rows_and_is_no_number_like_others(table, tmp_path):
    done("impute", table, "-k", 2, "-o", tmp_path / "out.csv")
    new = records((tmp_path / "out.csv").read_text())
    assert [record[0] for record in new[1:]] == ["007", "012", "013", "014", "015"]
    assert_filled(new, records(TABLE), VALUES, model_of(VALUES, 2))


def test_several_columns_are_skipped(table, tmp_path):
    done("impute", table, "-k", 1, "--skip", "id", "--skip", "rooms", "-o", tmp_path / "out.csv")
    new = records((tmp_path / "out.csv").read_text())
    assert [record[5] for record in new] == ["rooms", "3", "2", "?", "4.0", "1"]
    np.testing.assert_allclose(float(new[1][3]), model_of(VALUES[:, :2], 1)[0, 1], rtol=1e-9)


def test_without_scaling_the_fit_is_that_of_the_bare_numbers(table, tmp_path):
    done("impute", table, "-k", 2, "--skip", "id", "--no-scale", "-o", tmp_path / "out.csv")
    model = WeightedNMF(2, random_state=0).fit(VALUES)
    expected = model.W_ @ model.H_.T
    assert_filled(records((tmp_path / "out.csv").read_text()), records(TABLE), VALUES, expected)
    holes = np.isnan(VALUES)
    assert not np.allclose(expected[holes], model_of(VALUES, 2)[holes], rtol=1e-3)


def test_other_losses_seeds_and_ends(table, tmp_path):
    words = ("--loss", "frobenius", "--seed", 4, "--max-iter", 3000, "--tol", 1e-6)
    done("impute", table, "-k", 1, "--skip", "id", *words, "-o", tmp_path / "out.csv")
    means = np.nanmean(VALUES, axis=0)
    model = WeightedNMF(1, loss="frobenius", random_state=4, max_iter=3000, tol=1e-6).fit(VALUES / means)
    expected = model.W_ @ model.H_.T * means
    assert_filled(records((tmp_path / "out.csv").read_text()), records(TABLE), VALUES, expected)


def test_a_table_of_rank_one_is_filled_with_the_truth(tmp_path):
    """Columns in very different units, all multiples of one another."""
    truth = np.outer([1, 2, 3, 4, 5], [1, 1000, 0.01])
    text = [[f"{value:g}" for value in row] for row in truth]
    for i, j in ((0, 1), (2, 2), (4, 0)):
        text[i][j] = ""
    (tmp_path / "t.csv").write_text("a,b,c\n" + "\n".join(map(",".join, text)) + "\n")
    words = ("--tol", 0, "--max-iter", 5000, "-o", tmp_path / "out.csv")
    done("impute", "--no-clip", tmp_path / "t.csv", "-k", 1, *words)
    filled = np.array(records((tmp_path / "out.csv").read_text())[1:], dtype=float)
    np.testing.assert_allclose(filled, truth, rtol=1e-6)


def test_a_file_without_a_header_comes_back_without(tmp_path):
    values = np.array([[1.5, 2, 4], [3, np.nan, 7], [2, 2.5, np.nan]])
    (tmp_path / "bare.csv").write_text("1.5,2,4\n3,,7\n2,2.5,NaN\n")
    done("impute", "--no-clip", tmp_path / "bare.csv", "-k", 1, "-o", tmp_path / "out.csv")
    new, expected = records((tmp_path / "out.csv").read_text()), model_of(values, 1)
    assert new[0] == ["1.5", "2", "4"]
    assert (new[1][0], new[1][2], new[2][:2]) == ("3", "7", ["2", "2.5"])
    np.testing.assert_allclose([float(new[1][1]), float(new[2][2])], expected[[1, 2], [1, 2]], rtol=1e-9)


def test_a_column_that_is_entirely_empty_stays_so(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,,2\n3,NA,\n2,,5\n")
    lines = done("impute", "--no-clip", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.csv")
    new = records((tmp_path / "out.csv").read_text())
    assert [record[1] for record in new] == ["b", "", "NA", ""]
    values = np.array([[1, 2], [3, np.nan], [2, 5]])
    np.testing.assert_allclose(float(new[2][2]), model_of(values, 1)[1, 1], rtol=1e-9)
    assert "in 2 columns of numbers; kept as they are: b." in lines[1]


def test_a_row_that_is_entirely_empty_is_noted_and_filled(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n,\n3,6\n")
    note = remarked("impute", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.csv")
    assert re.search(r"Found none in row 1[ .]", note)
    filled = np.array(records((tmp_path / "out.csv").read_text())[2], dtype=float)
    np.testing.assert_allclose(filled, [2, 4], rtol=1e-3)  # the average of the other rows


def test_a_table_without_holes_comes_back_as_it_was(tmp_path):
    text = "name,a,b\nx,1.0,2\ny,3,4e0\n"
    (tmp_path / "t.csv").write_text(text)
    lines = done("impute", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text
    assert lines[1].startswith("Filled 0 holes in 2 columns")


def test_a_column_of_zeros_is_filled_with_zero(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,0\n2,\n3,0\n")
    done("impute", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.csv")
    filled = records((tmp_path / "out.csv").read_text())
    np.testing.assert_allclose(float(filled[2][1]), 0.0, atol=1e-12)


def test_a_fit_that_is_cut_short_is_noted(table, tmp_path):
    note = remarked("impute", table, "-k", 2, "--max-iter", 1, "-o", tmp_path / "out.csv")
    assert note.startswith("note: WeightedNMF: Stopped at --max-iter")


# Kinds of files.


def test_tabs_and_gzip_out(table, tmp_path):
    for name in ("out.csv", "out.tsv", "out.csv.gz", "out.tsv.gz"):
        done("impute", table, "-k", 2, "-o", tmp_path / name)
    plain = records((tmp_path / "out.csv").read_text())
    assert records((tmp_path / "out.tsv").read_text(), "\t") == plain
    assert records(gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode()) == plain
    assert records(gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode(), "\t") == plain


def test_tabs_and_gzip_in(table, tmp_path):
    tabbed = "\n".join("\t".join(record) for record in records(TABLE.replace(QUOTED, "b"))) + "\n"
    (tmp_path / "table.tsv.gz").write_bytes(gzip.compress(tabbed.encode()))
    done("impute", tmp_path / "table.tsv.gz", "-k", 2, "--skip", "id", "-o", tmp_path / "out.csv")
    new = records((tmp_path / "out.csv").read_text())
    assert_filled(new, records(TABLE), VALUES, model_of(VALUES, 2))


def test_parquet_out(table, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    done("impute", "--no-clip", table, "-k", 2, "--skip", "id", "-o", tmp_path / "out.parquet")
    columns = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert list(columns) == HEADER
    assert columns["city"] == ["Rome", "Oslo", "Rome, It", "Bonn", "Kyiv"]
    found = np.column_stack([columns[name] for name in ("price", "size", "rooms")])
    expected = np.where(np.isnan(VALUES), model_of(VALUES, 2), VALUES)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("ids", [("007", "012"), ("9007199254740993", "9007199254740995")], ids=["zeros", "long"])
def test_ids_that_are_skipped_are_untouched_in_parquet_too(tmp_path, ids):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "t.csv").write_text(f"id,a,b\n{ids[0]},1,2\n{ids[1]},3,\n")
    done("impute", tmp_path / "t.csv", "-k", 1, "--skip", "id", "-o", tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()["id"]
    assert [str(one) for one in found] == list(ids)


def test_parquet_in_keeps_its_types(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"id": [2**60 + 1, 2**60 + 3, 5], "name": ["x", None, "z"], "a": [1.5, 3, 2], "b": [2, None, 7]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    done("impute", "--no-clip", tmp_path / "t.parquet", "-k", 1, "--skip", "id", "-o", tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert {name: found[name] for name in ("id", "name", "a")} == {name: columns[name] for name in ("id", "name", "a")}
    values = np.array([[1.5, 2], [3, np.nan], [2, 7]])
    np.testing.assert_allclose(found["b"], [2, model_of(values, 1)[1, 1], 7], rtol=1e-9)


def test_a_table_may_take_its_own_place(table):
    done("impute", table, "-k", 2, "--skip", "id", "-o", table)
    assert_filled(records(table.read_text()), records(TABLE), VALUES, model_of(VALUES, 2))
    assert names_in(table.parent) == ["table.csv"]


# Refusals.


@pytest.mark.parametrize("scale", ["--scale", "--no-scale"])
def test_negative_numbers_are_refused_as_they_are_written(tmp_path, scale):
    (tmp_path / "t.csv").write_text("name,a,b\nx,1,8\ny,3,-2\nz,4,\n")
    sentence = refused("impute", tmp_path / "t.csv", scale, "-o", tmp_path / "out.csv")
    assert "Found -2 at row 1, column 'b'." in sentence
    assert names_in(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("a,b\n1,2\n3\n", [], "Line 3 of t.csv must have 2 fields, as its header has. Found 1: '3'."),
        ("a,b\nx,y\n", [], "must have a column of numbers. Found none in: a, b."),
        ("a,b\n1,2\n", ["--skip", "id"], "Found no 'id'. The table has: a, b."),
        ("a,b\n1,2\n", ["--skip", "a", "--skip", "b"], "must have a column of numbers."),
        ("a,b\n1,inf\n", [], "must be finite. Found inf at row 0, column 'b'."),
        ("a,b\n1,0\n2,3\n", ["--loss", "itakura-saito"], "Found 0 at row 0, column 'b'."),
        ("a,b\n1,2\n", ["-k", "0"], "-k must be a whole number of at least 1. Found 0."),
        ("a,b\n1,2\n", ["--loss", "kl"], "Did you mean 'kullback-leibler'?"),
        ("", [], "Found none in t.csv."),
    ],
)
def test_what_cannot_be(tmp_path, text, words, sentence):
    (tmp_path / "t.csv").write_text(text)
    assert sentence in refused("impute", tmp_path / "t.csv", *words, "-o", tmp_path / "out.csv")
    assert names_in(tmp_path) == ["t.csv"]


def test_a_missing_file(tmp_path):
    path = tmp_path / "nothing.csv"
    assert f"The file {path} must exist." in refused("impute", path, "-o", tmp_path / "out.csv")


def test_words_of_other_libraries(table, tmp_path):
    message = misused("impute", table, "--n-iter", "5", "-o", tmp_path / "out.csv")
    assert message == "No such option '--n-iter'. Did you mean '--max-iter'?"


@pytest.mark.usefixtures("no_fit", "table")
@pytest.mark.parametrize(
    ("place", "sentence"),
    [("nowhere/out.csv", "does not exist"), ("out.xlsx", "Found 'out.xlsx'"), (".", "folder|directory")],
)
def test_an_output_that_cannot_be_is_refused_before_the_work(tmp_path, monkeypatch, place, sentence):
    monkeypatch.chdir(tmp_path)
    assert re.search(sentence, refused("impute", "table.csv", "-k", 2, "-o", place))
    assert names_in(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(table, tmp_path, full_disk, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    place = tmp_path / f"out.{ending}"
    done("impute", table, "-k", 2, "-o", place)  # so that kernels which are compiled now find room
    place.write_text("old")
    refused_for_room(full_disk, "impute", table, "-k", 2, "-o", place)
    assert names_in(tmp_path) == [place.name, "table.csv"]
    assert place.read_text() == "old"


def test_an_interrupt_writes_nothing(table, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(base, "run", interrupted)
    result = run("impute", table, "-k", 2, "-o", tmp_path / "out.csv")
    assert result.exit_code == 130
    assert result.stderr.startswith("Interrupted")
    assert names_in(tmp_path) == ["table.csv"]


def test_a_refusal_of_the_real_program_is_one_line(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,-2\n")
    result = program("impute", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.csv")
    check_refusal(result.returncode, result.stdout, result.stderr)
    assert "Found -2 at row 0, column 'b'." in result.stderr


def test_fills_stay_within_what_was_seen_unless_told_otherwise(tmp_path):
    """Years: far from 0 and close to each other, a product of factors overshoots them."""
    random = np.random.default_rng(0)
    years = random.integers(1900, 2000, 60).astype(float)
    size = random.gamma(1.0, 50.0, 60)
    years[::4] = np.nan
    pairs = zip(years, size, strict=True)
    lines = [f"{'' if np.isnan(year) else int(year)},{area:.3f},{area * 2:.3f}" for year, area in pairs]
    (tmp_path / "t.csv").write_text("year,area,rent\n" + "\n".join(lines) + "\n")
    filled = {}
    for clip in ("--clip", "--no-clip"):
        done("impute", tmp_path / "t.csv", "-k", 2, clip, "-o", tmp_path / "out.csv")
        filled[clip] = np.array([float(record[0]) for record in records((tmp_path / "out.csv").read_text())[1:]])
    free = filled["--no-clip"]
    assert free.min() < np.nanmin(years) or free.max() > np.nanmax(years)
    np.testing.assert_allclose(filled["--clip"], np.clip(free, np.nanmin(years), np.nanmax(years)), rtol=1e-12)


def test_a_first_line_of_data_is_no_header_when_told_or_when_it_cannot_be_one(tmp_path):
    (tmp_path / "iris.csv").write_text("5.1,3.5,,setosa\n4.9,3.0,1.4,setosa\n6.2,3.4,5.4,virginica\n")
    done("impute", tmp_path / "iris.csv", "-k", 1, "-o", tmp_path / "out.csv")
    new = records((tmp_path / "out.csv").read_text())
    assert len(new) == 3
    assert 1.4 <= float(new[0][2]) <= 5.4
    (tmp_path / "t.csv").write_text("ann,5,3,2\nbob,4,,2\ncy,1,2,3\n")
    done("impute", tmp_path / "t.csv", "-k", 1, "--no-header", "-o", tmp_path / "out.csv")
    assert [record[0] for record in records((tmp_path / "out.csv").read_text())] == ["ann", "bob", "cy"]


@pytest.mark.parametrize("loss", [(), ("--loss", "kullback-leibler"), ("--loss", "1")])
def test_one_component_is_fitted_exactly(loss, table, tmp_path):
    lines = done("impute", table, "-k", 1, "--skip", "id", *loss, "-o", tmp_path / "out.csv")
    assert lines[2].startswith("RankOneNMF: 1 component")
    assert_filled(records((tmp_path / "out.csv").read_text()), records(TABLE), VALUES, model_of(VALUES, 1))


def test_one_component_with_another_loss_is_another_model(table, tmp_path):
    lines = done("impute", table, "-k", 1, "--skip", "id", "--loss", "frobenius", "-o", tmp_path / "out.csv")
    assert lines[2].startswith("WeightedNMF: 1 component, loss frobenius")


# Levels of one scale.


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Answers 1 to 5 of 80 people to 12 questions: how strict the question is, taken from how mild the person is."""
    random = np.random.default_rng(0)
    mildness, strictness = random.uniform(-2, 2, 80), random.uniform(-1.5, 1.5, 12)
    truth = 3 + np.clip(np.round(mildness[:, None] - strictness), -2, 2).astype(int)
    hidden = random.random(truth.shape) < 0.3
    lines = [
        ",".join([f"p{person:02}", *("" if hole else str(answer) for answer, hole in zip(*row, strict=True))])
        for person, row in enumerate(zip(truth, hidden, strict=True))
    ]
    path = tmp_path_factory.mktemp("survey") / "survey.csv"
    path.write_text("\n".join([",".join(["person", *(f"q{j}" for j in range(12))]), *lines]) + "\n")
    return path, truth, hidden


@pytest.mark.parametrize(
    ("words", "kind", "parameters"),
    [
        (["ordinal"], OrdinalMF, {}),
        (["round"], RoundMF, {}),
        (["round", "--loss", "linear"], RoundMF, {"loss": "linear"}),
    ],
)
def test_answers_are_filled_with_levels_of_their_scale(survey, tmp_path, words, kind, parameters):
    path, truth, hidden = survey
    out = tmp_path / "filled.csv"
    lines = done("impute", path, "--method", *words, "-k", 1, "--no-clip", "-o", out)
    assert lines[1].startswith(f"Filled {hidden.sum()} holes in 12 columns of numbers; kept as they are: person.")
    old, new = records(path.read_text()), records(out.read_text())
    assert [record[0] for record in new] == [record[0] for record in old]
    found = np.array([record[1:] for record in new[1:]])
    assert found[~hidden].tolist() == [str(answer) for answer in truth[~hidden]]
    seen = np.where(hidden, np.nan, truth)
    model = kind(1, random_state=0, **parameters).fit(seen)
    assert found[hidden].tolist() == [f"{level:g}" for level in model.predict_level(*np.nonzero(hidden))]
    means = np.broadcast_to(np.nanmean(seen, axis=0), seen.shape)
    assert np.mean((found.astype(int) - truth)[hidden] ** 2) < np.mean((means - truth)[hidden] ** 2)


def test_halves_and_negative_numbers_are_levels_too(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n-1.5,0,1.5\n-1.5,,1.5\n0,1.5,\n-1.5,0,1.5\n0,1.5,1.5\n")
    words = ("--method", "round", "-k", 1, "--max-iter", 5000)
    done("impute", tmp_path / "t.csv", *words, "-o", tmp_path / "out.csv")
    new = records((tmp_path / "out.csv").read_text())
    assert float(new[2][1]) in (0.0, 1.5)  # what was seen in its column
    assert float(new[3][2]) == 1.5


def test_a_loss_for_probabilities_is_refused_before_reading(tmp_path):
    words = ("--method", "ordinal", "--loss", "round", "-o", tmp_path / "out.csv")
    assert misused("impute", tmp_path / "nowhere.csv", *words) == (
        "--loss belongs to --method nmf and round; ordinal has no such option."
    )


def test_amounts_are_no_levels(tmp_path):
    lines = [f"{1 + j / 7},{2 + j / 3}" for j in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *lines, "1,"]) + "\n")
    sentence = refused("impute", tmp_path / "t.csv", "--method", "ordinal", "-o", tmp_path / "out.csv")
    assert "OrdinalMF must have at most 100 ordered levels." in sentence


LONG = "user,item,rating\nann,x,1\nann,y,2\nbob,x,3\n"


def test_lines_of_row_column_value_are_told_of(tmp_path):
    (tmp_path / "long.csv").write_text(LONG)
    note = remarked("impute", tmp_path / "long.csv", "-k", 1, "-o", tmp_path / "out.csv")
    assert note.startswith("note: This looks like lines of row, column, value ('user', 'item', 'rating'), whose holes")
    assert (tmp_path / "out.csv").read_text() == LONG


@pytest.mark.parametrize("header", ["user,item,price,size", "city,price,rating", "user,price,size"])
def test_other_tables_are_not_taken_for_such_lines(tmp_path, header):
    width = header.count(",")
    (tmp_path / "table.csv").write_text(f"{header}\na{',1' * width}\nb{',2' * width}\nc,{',3' * (width - 1)}\n")
    done("impute", tmp_path / "table.csv", "-k", 1, "-o", tmp_path / "out.csv")
