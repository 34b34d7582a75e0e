"""halfseen impute: a table with its holes filled. How tables are read and written is tested in tests/io."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from halfseen import OrdinalMF, RankSearch, RoundMF, WeightedNMF
from tests.cli.program import done, halfseen, misused, names_in, refused, refused_for_room, remarked
from tests.rank_one import oracle

#: Numbers as people write them: with signs, zeros, exponents and marks of what is missing.
TABLE = """id,city,price,size,"note, if any",rooms
007,Rome,1.50,NA,"say ""b"" twice",3
012,Oslo,,3e2,,2
013,"Rome, It",2.,+70,x,?
014,Bonn,4.125,0700,,4.0
015,Kyiv,0.50,1e2,y,1
"""
VALUES = np.array([[1.5, np.nan, 3], [np.nan, 300, 2], [2, 70, np.nan], [4.125, 700, 4], [0.5, 100, 1]])
NUMERIC = [2, 3, 5]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def records(path):
    return list(csv.reader(io.StringIO(path.read_text())))


def model_of(values, k, scale=True, **options):
    """What the model says about every cell of a table whose columns are scaled to mean 1, computed here."""
    means = np.nanmean(values, axis=0) if scale else np.ones(values.shape[1])
    if k == 1 and not options:  # the global optimum
        return np.outer(*oracle.best(values / means)) * means
    model = WeightedNMF(k, **{"random_state": 0} | options).fit(values / means)
    return model.W_ @ model.H_.T * means


def assert_filled(path, expected):
    """Observed values stand there byte for byte, the holes hold the expected numbers within the observed ranges."""
    old, new = list(csv.reader(io.StringIO(TABLE))), records(path)
    holes = {(row + 1, NUMERIC[place]): (row, place) for row, place in np.argwhere(np.isnan(VALUES))}
    within = np.clip(expected, np.nanmin(VALUES, axis=0), np.nanmax(VALUES, axis=0))
    for at in np.ndindex(6, 6):
        field = new[at[0]][at[1]]
        if at in holes:
            assert float(field) == pytest.approx(within[holes[at]], rel=1e-9)
        else:
            assert field == old[at[0]][at[1]]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["-k", 2], {"k": 2}),
        (["-k", 2, "--no-scale"], {"k": 2, "scale": False}),
        (["-k", 2, "--seed", 4, "--max-iter", 3000], {"k": 2, "random_state": 4, "max_iter": 3000}),
        (["-k", 1, "--loss", "frobenius"], {"k": 1, "loss": "frobenius"}),
        (["-k", 1], {"k": 1}),
    ],
)
def test_the_table_comes_back_with_its_holes_filled(table, tmp_path, words, options):
    place = tmp_path / "out.csv"
    words = [*words, "--decimals", "all"]
    lines = done("impute", table, *words, "-o", place)  # the first column names the rows
    assert_filled(place, model_of(VALUES, **options))
    assert lines[0].startswith(f"Read {table}: 5 x 3, 12 cells seen (0.8 of all), values 0.5 to 700. ")
    assert lines[1] == "Filled 3 holes in 3 columns; kept as they are: id, city, note, if any."
    assert lines[2].startswith("RankOneNMF: 1 component" if options == {"k": 1} else "WeightedNMF: ")
    assert lines[3].startswith("CONVERGED after ")
    assert lines[-1] == f"Saved {place} ({place.stat().st_size} bytes)."
    assert done("impute", table, *words, "-q", "--force", "-o", place) == []


def test_columns_are_skipped(table, tmp_path):
    words = ("-k", 1, "--decimals", "all", "--skip", "id", "--skip", "rooms")
    done("impute", table, *words, "-o", tmp_path / "out.csv")
    new = records(tmp_path / "out.csv")
    assert [record[5] for record in new] == ["rooms", "3", "2", "?", "4.0", "1"]
    np.testing.assert_allclose(float(new[1][3]), model_of(VALUES[:, :2], 1)[0, 1], rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "words", "fill"),
    [
        ("name,a,b\nx,1.0,2\ny,3,4e0\n", [], None),  # nothing to fill
        ("a,b,c\n1,,2\n2,NA,*\n3,,6\n", [], 4.0),  # an empty column stays so
        ("ann,1,2\nbob,2,*\ncy,3,6\n", ["--no-header"], 4.0),
        ("name;a;b\nx;1,5;3\ny;2,25;*\nz;3;6\n", [], 4.5),
    ],
)
def test_tables_come_back_as_they_came(tmp_path, text, words, fill):
    (tmp_path / "t.csv").write_text(text.replace("*", ""))
    done("impute", tmp_path / "t.csv", "-k", 1, "--decimals", "all", *words, "-o", tmp_path / "out.csv")
    new, mark = (tmp_path / "out.csv").read_text(), "," if ";" in text else "."
    before, _, after = text.partition("*")
    assert new.startswith(before)
    assert new.endswith(after)
    number = new.removeprefix(before).removesuffix(after)
    assert number == "" if fill is None else float(number.replace(mark, ".")) == pytest.approx(fill)


@pytest.mark.parametrize("words", [("--method", "rank-one"), ("-k", 2)])
def test_factorizations_fill_with_the_decimals_of_the_column(table, tmp_path, words):
    for decimals in ("auto", "all"):
        done("impute", table, *words, "--decimals", decimals, "-o", tmp_path / f"{decimals}.csv")
    done("impute", table, *words, "-o", tmp_path / "default.csv")
    rounded, exact = records(tmp_path / "auto.csv"), records(tmp_path / "all.csv")
    assert rounded == records(tmp_path / "default.csv")
    for row, place in np.argwhere(np.isnan(VALUES)):
        seen = VALUES[:, place][~np.isnan(VALUES[:, place])]
        digits = next(d for d in range(9) if np.array_equal(np.round(seen, d), seen))
        text, number = rounded[row + 1][NUMERIC[place]], float(exact[row + 1][NUMERIC[place]])
        assert float(text) == round(number, digits)
        assert len(text.partition(".")[2]) <= digits


def test_notes_of_an_empty_row_and_of_a_long_table(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n,\n3,6\n")
    assert "row 1" in remarked("impute", tmp_path / "t.csv", "-k", 1, "-o", tmp_path / "out.csv")
    filled = np.array(records(tmp_path / "out.csv")[2], dtype=float)
    np.testing.assert_allclose(filled, [2, 4], rtol=1e-3)  # the average of the other rows
    text = "user,item,rating\nann,x,1\nann,y,2\nbob,x,3\n"
    (tmp_path / "long.csv").write_text(text)
    assert "halfseen fit" in remarked("impute", tmp_path / "long.csv", "-k", 1, "-o", tmp_path / "long-out.csv")
    assert (tmp_path / "long-out.csv").read_text() == text


@pytest.mark.parametrize("method", ["nmf", "ordinal"])
def test_factorizations_are_judged_beside_the_mean(tmp_path, method):
    """One column is the same multiple of two others in every row, another one is noise."""
    random = np.random.default_rng(0)
    size, noise = random.integers(1, 6, 400), random.integers(1, 6, 400)
    columns = [size, size, np.minimum(size + 1, 5), noise, size]
    lines = [
        ",".join("" if random.random() < 0.2 else str(one) for one in row) for row in zip(*columns[:4], strict=True)
    ]
    text = "\n".join(["a,b,c,noise,whole", *(f"{line},{one}" for line, one in zip(lines, size, strict=True))])
    (tmp_path / "t.csv").write_text(text + "\n")
    words = ("impute", tmp_path / "t.csv", "--method", method, "-k", 1, "-o", tmp_path / "out.csv", "--force")
    found = {one["column"]: one for one in json.loads("\n".join(done(*words, "--json")))["columns"]}
    assert list(found) == ["a", "b", "c", "noise"]
    assert max(found[name]["ratio"] for name in "abc") < 0.85 < 0.95 < found["noise"]["ratio"]
    assert 0.8 < found["noise"]["mean_error"] < 1.2
    assert sum(one["held_out"] for one in found.values()) > 80
    assert "Not clearly predicted better than by the mean: noise." in " ".join(done(*words))


def test_filled_values_stay_within_the_observed_range_unless_asked_otherwise(tmp_path):
    """Years: far from 0 and close to each other, a product of factors overshoots them."""
    random = np.random.default_rng(0)
    years, size = random.integers(1900, 2000, 60).astype(float), random.gamma(1.0, 50.0, 60)
    years[::4] = np.nan
    lines = [f"{year:g},{area:.3f},{area * 2:.3f}" for year, area in zip(years, size, strict=True)]
    (tmp_path / "t.csv").write_text("built,area,rent\n" + "\n".join(lines) + "\n")
    filled = {}
    for clip in ("--clip", "--no-clip"):
        lines = done("impute", tmp_path / "t.csv", "-k", 2, clip, "--force", "-o", tmp_path / "out.csv")
        assert any("cut to the range" in line for line in lines) == (clip == "--clip")
        filled[clip] = np.array([float(record[0]) for record in records(tmp_path / "out.csv")[1:]])
    free = filled["--no-clip"]
    assert free.min() < np.nanmin(years) or free.max() > np.nanmax(years)
    np.testing.assert_allclose(filled["--clip"], np.clip(free, np.nanmin(years), np.nanmax(years)), rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "kind", "parameters"),
    [(["ordinal"], OrdinalMF, {}), (["round", "--loss", "linear"], RoundMF, {"loss": "linear"})],
)
def test_answers_are_filled_with_levels_of_their_scale(tmp_path, words, kind, parameters):
    """Answers 1 to 5 of 80 people to 12 questions: how strict the question is, taken from how mild the person is."""
    random = np.random.default_rng(0)
    mildness, strictness = random.uniform(-2, 2, 80), random.uniform(-1.5, 1.5, 12)
    truth = 3 + np.clip(np.round(mildness[:, None] - strictness), -2, 2).astype(int)
    hidden = random.random(truth.shape) < 0.3
    text = np.where(hidden, "", truth.astype(str))
    table = [["person", *(f"q{j}" for j in range(12))], *([f"p{i}", *row] for i, row in enumerate(text))]
    (tmp_path / "survey.csv").write_text("\n".join(map(",".join, table)) + "\n")
    done("impute", tmp_path / "survey.csv", "--method", *words, "-k", 1, "--no-clip", "-o", tmp_path / "out.csv")
    found = np.array([record[1:] for record in records(tmp_path / "out.csv")[1:]])
    model = kind(1, random_state=0, **parameters).fit(np.where(hidden, np.nan, truth))
    assert found[hidden].tolist() == [f"{level:g}" for level in model.predict_level(*np.nonzero(hidden))]
    assert found[~hidden].tolist() == text[~hidden].tolist()


def test_auto_searches_and_fits_in_the_units_of_the_fit(tmp_path):
    """Planted rank 2, columns in units of their own."""
    random = np.random.default_rng(1)
    means = random.gamma(2.0, 1.0, (80, 2)) @ (0.02 + random.random((2, 8)) ** 3)
    values = means * random.gamma(100.0, 0.01, means.shape) * np.logspace(-2, 3, 8)
    values[random.random(means.shape) < 0.2] = np.nan
    lines = [",".join("" if np.isnan(one) else repr(float(one)) for one in row) for row in values]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,e,f,g,h", *lines]) + "\n")
    words = ("-k", "auto:1,2,3", "--seed", 5, "--tol", "1e-5", "--max-iter", 5000, "--no-clip")
    lines = done("impute", tmp_path / "t.csv", *words, "-o", tmp_path / "out.csv")
    units = np.nanmean(values, axis=0)
    model = WeightedNMF(random_state=5, tol=1e-5, max_iter=5000)
    search = RankSearch(model, [1, 2, 3], random_state=5).fit(values / units)
    assert search.best_n_components_ == 2
    expected = search.best_estimator_.W_ @ search.best_estimator_.H_.T * units
    filled = np.array(records(tmp_path / "out.csv")[1:], dtype=float)
    np.testing.assert_allclose(filled, np.where(np.isnan(values), expected, values), rtol=1e-9)
    assert any(line.startswith("Chose 2 components") for line in lines)


def test_refusals_leave_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("name,a,b\nx,1,8\ny,3,-2\nz,4,\n")
    for words in ((), ("--no-scale",)):
        assert "Found -2 at row 1, column 'b'." in refused(
            "impute", tmp_path / "t.csv", "--method", "nmf", *words, "-o", tmp_path / "o.csv"
        )
    words = ("--method", "ordinal", "--loss", "round", "-o", tmp_path / "out.csv")
    assert "--loss belongs to --method" in misused("impute", tmp_path / "nowhere.csv", *words)
    for words in (("--loss", "frobenius"), ("--method", "nmf", "--draws", 2), ("--method", "rank-one", "-k", 2)):
        assert "belongs to --method" in misused("impute", tmp_path / "t.csv", *words, "-o", tmp_path / "out.csv")
    assert "--draws needs a file" in misused("impute", tmp_path / "t.csv", "--draws", 2, "-o", "-")
    assert names_in(tmp_path) == ["t.csv"]


def test_files_that_exist_are_replaced_only_by_force(table, tmp_path):
    for name, words in (
        ("out.csv", ()),
        ("mask.csv", ("--mask", tmp_path / "mask.csv")),
        ("out-2.csv", ("--draws", 2)),
    ):
        (tmp_path / name).write_text("mine")
        assert name in refused("impute", table, *words, "-o", tmp_path / "out.csv")
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    assert names_in(tmp_path) == ["table.csv"]


#: Of the blend: a third of a survey's rows miss something, and the answers follow one number per person.
WORDS = ("never", "rarely", "often", "always")


@pytest.fixture
def survey(tmp_path):
    random = np.random.default_rng(0)
    mood = random.normal(size=150)
    columns = {
        "person_id": [f"{one:05d}" for one in random.permutation(150)],
        "age": [f"{one:.0f}" for one in 40 + 10 * mood + 3 * random.normal(size=150)],
        "balance": [f"{one:.2f}" for one in 100 * mood + 20 * random.normal(size=150)],
        "walks": [WORDS[one] for one in np.digitize(mood + 0.3 * random.normal(size=150), [-0.7, 0.0, 0.7])],
        "club": ["red" if one else "blue" for one in mood + 0.2 * random.normal(size=150) > 0],
        "noise": [f"{one:.1f}" for one in random.normal(size=150)],
        "remark": [f"said {number} things" for number in range(150)],
    }
    truth = np.array([list(columns), *zip(*columns.values(), strict=True)])
    hidden = np.zeros(truth.shape, bool)
    hidden[1:, 1:6] = random.random((150, 5)) < 0.1
    text = np.where(hidden, "", truth)
    (tmp_path / "survey.csv").write_text("\n".join(map(",".join, text)) + "\n")
    return truth, hidden, text


def test_a_table_of_mixed_columns_is_filled_and_judged_column_by_column(tmp_path, survey):
    truth, hidden, text = survey
    words = ("--levels", ",".join(WORDS), "--mask", tmp_path / "mask.csv", "--draws", 2)
    result = halfseen("impute", tmp_path / "survey.csv", *words, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert "'remark'" in result.stderr  # ids are the names of the rows
    lines = result.stdout.splitlines()
    new, mask = (np.array(records(tmp_path / name)) for name in ("out.csv", "mask.csv"))
    np.testing.assert_array_equal(new[~hidden], text[~hidden])
    np.testing.assert_array_equal(mask[1:] == "1", hidden[1:])
    assert "" not in new
    by_name = {name: place for place, name in enumerate(truth[0])}
    for name, most in (("age", 6.0), ("balance", 45.0)):
        at = hidden[:, by_name[name]]
        errors = new[at, by_name[name]].astype(float) - truth[at, by_name[name]].astype(float)
        assert np.sqrt(np.mean(errors**2)) < most  # the spreads are 10 and 100
    assert all(one.lstrip("-").isdecimal() for one in new[1:, by_name["age"]])  # whole numbers stay whole
    assert all(len(one.partition(".")[2]) <= 2 for one in new[1:, by_name["balance"]])
    for name, values, least in (("walks", WORDS, 0.5), ("club", ("red", "blue"), 0.7)):
        at = hidden[:, by_name[name]]
        assert set(new[at, by_name[name]]) <= set(values)
        assert np.mean(new[at, by_name[name]] == truth[at, by_name[name]]) >= least
    shown = {line.split()[0]: line.split() for line in lines}
    assert [shown[name][1] for name in ("age", "balance", "walks", "club")] == [
        "count",
        "continuous",
        "levels",
        "category",
    ]
    assert all(float(shown[name][3]) < 0.8 * float(shown[name][4]) for name in ("age", "balance", "walks"))
    assert any(line.startswith("Filled") and "person_id" in line and "remark" in line for line in lines)
    drawn = [np.array(records(tmp_path / f"out-{number}.csv")) for number in (1, 2)]
    assert all(np.array_equal(one[~hidden], text[~hidden]) for one in drawn)
    assert not np.array_equal(drawn[0][hidden], drawn[1][hidden])


def test_a_survey_of_words_alone_is_filled_with_its_words(tmp_path):
    random = np.random.default_rng(3)
    answers = np.digitize(random.normal(size=(80, 1)) + 0.3 * random.normal(size=(80, 3)), [-0.5, 0.5])
    truth = np.array(WORDS[:3])[answers]
    hidden = random.random(truth.shape) < 0.1
    rows = [["q1", "q2", "q3"], *np.where(hidden, "", truth).tolist()]
    (tmp_path / "words.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    lines = done("impute", tmp_path / "words.csv", "--levels", ",".join(WORDS[:3]), "-o", tmp_path / "out.csv")
    assert lines[0].endswith("words.csv: 80 rows, 3 columns, 0 of numbers, 3 of text.")
    assert lines[2] == "Columns 'q1', 'q2', 'q3' hold levels, in the order given: never < rarely < often."
    new = np.array(records(tmp_path / "out.csv")[1:])
    np.testing.assert_array_equal(new[~hidden], truth[~hidden])
    assert set(new[hidden]) <= set(WORDS[:3])
    assert np.mean(new[hidden] == truth[hidden]) > 0.5  # the most frequent word is right for about 0.4


def test_a_column_that_nothing_predicts_is_named(tmp_path):
    random = np.random.default_rng(1)
    values = random.normal(size=(60, 2))
    lines = ["" if row % 7 == 0 else f"{one:.3f}" for row, one in enumerate(values[:, 0])]
    (tmp_path / "t.csv").write_text(
        "a,b\n" + "".join(f"{a},{b:.3f}\n" for a, b in zip(lines, values[:, 1], strict=True))
    )
    printed = done("impute", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    filled = np.array([float(row[0]) for row in records(tmp_path / "out.csv")[1:]])[::7]
    mean = np.delete(values[:, 0], np.s_[::7]).mean()
    assert np.abs(filled - mean).max() < 0.6  # near the mean, whose spread is 1
    assert any(line.startswith("Not clearly predicted better") and line.endswith(": a.") for line in printed)


#: Two scales, of which no order can be found, a third that has one by itself, and numbers that are levels.
SCALES = {"q1": ["ant", "cat", "cow"], "q2": ["pea", "plum", "pear", "melon"], "q3": ["low", "medium", "high"]}


@pytest.fixture
def scales(tmp_path):
    random = np.random.default_rng(5)
    size = random.normal(size=120)
    codes = [np.digitize(size + 0.3 * random.normal(size=120), np.linspace(-1, 1, n)) for n in (2, 3, 2, 4)]
    columns = [np.array(words)[one] for words, one in zip(SCALES.values(), codes, strict=False)]
    text = np.array([*columns, (codes[3] + 1).astype(str)]).T
    text[random.random(text.shape) < 0.1] = ""
    (tmp_path / "t.csv").write_text("\n".join(map(",".join, [["q1", "q2", "q3", "q4"], *text.tolist()])) + "\n")
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    "words",
    [
        ["--levels", "ant,cat,cow", "--levels", "pea, plum, pear, melon"],
        ["--levels", "q2=pea,plum,pear,melon", "--levels", "q1=ant,cat,cow"],
        ["--levels", "q2=pea,plum,pear,melon", "--levels", "ant,cat,cow", "--levels", "q4=1,2,3,4,5"],
    ],
)
def test_several_scales_are_given_for_all_columns_or_by_name(tmp_path, scales, words):
    result = halfseen("impute", scales, "--fast", *words, "-o", tmp_path / "out.csv", "--json")
    found = {one["column"]: one for one in json.loads(result.stdout)["columns"]}
    assert [found[name]["kind"] for name in ("q1", "q2", "q3", "q4")] == ["levels"] * 4
    assert {name: found[name]["values"] for name in SCALES} == SCALES
    assert [found[name]["order"] for name in SCALES] == ["given", "given", "found"]
    assert found["q4"]["values"] == [1, 2, 3, 4, 5]
    new = np.array(records(tmp_path / "out.csv")[1:])
    for name, column in zip(found, new.T, strict=True):
        assert set(column) == set(map(str, SCALES.get(name, [1, 2, 3, 4, 5])))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--levels", "ant,cat"], "'q1' must be all of its values: 'ant', 'cat'. Found 'cow' in"),
        (["--levels", "q1=ant,cow"], "'q1' must be all of its values: 'ant', 'cow'. Found 'cat' in"),
        (["--levels", "q9=ant,cat,cow"], "no 'q9'. The table has: q1, q2, q3, q4."),
        (["--levels", "ant"], "--levels must be a list of different levels"),
        (["--category", "q9"], "no 'q9'"),
        (["--number", "q1"], "--number must hold numbers. Found"),
    ],
)
def test_levels_that_do_not_fit_are_refused_with_the_word(tmp_path, scales, words, sentence):
    assert sentence in refused("impute", scales, "--fast", *words, "-o", tmp_path / "out.csv")


def test_a_scale_of_no_column_is_noted_and_categories_override_an_order(tmp_path, scales):
    words = ("--levels", "north,south", "--category", "q3")
    result = halfseen("impute", scales, "--fast", *words, "-o", tmp_path / "out.csv")
    assert "Found no column of: north, south." in result.stderr
    kinds = {line.split()[0]: line.split()[1] for line in result.stdout.splitlines()}
    assert (kinds["q2"], kinds["q3"], kinds["q4"]) == ("category", "category", "levels")
    words = ("--levels", "q2=pea,plum,pear,melon", "--levels", "ant,cta,wco")  # a mistyped scale beside a named one
    result = halfseen("impute", scales, "--fast", *words, "--force", "-o", tmp_path / "out.csv")
    assert "Found no column of: ant, cta, wco; column 'q1' also holds 'cat', 'cow'." in result.stderr


def test_markers_that_may_be_words_and_columns_of_one_text_are_noted(tmp_path):
    rows = [f"{x},{'-' if x % 2 else '+'},{'None' if x % 3 else 'mild'},{x % 5}" for x in range(30)]
    (tmp_path / "t.csv").write_text("a,sign,pain,b\n" + "\n".join(rows) + "\n,+,severe,\n")
    result = halfseen("impute", tmp_path / "t.csv", "--fast", "-o", tmp_path / "out.csv")
    assert "Column 'sign' holds '-' 15 times, which was read as missing." in result.stderr
    assert "Column 'pain' holds 'None' 20 times" in result.stderr
    assert "Column 'sign' is left as it is" in result.stderr
    assert [row[1] for row in records(tmp_path / "out.csv")[1:]] == [*(["+", "-"] * 15), "+"]


def test_booleans_of_parquet_stay_booleans(tmp_path):
    values = [True, None, False, True, False, True, True, False] * 3
    pq.write_table(pa.table({"a": list(range(24)), "t": values}), tmp_path / "in.parquet")
    done("impute", tmp_path / "in.parquet", "-o", tmp_path / "out.parquet", "-q")
    filled = pq.read_table(tmp_path / "out.parquet")["t"]
    assert filled.type == pa.bool_()
    assert filled.null_count == 0


def test_a_note_says_that_holes_of_a_first_column_of_ids_stay(tmp_path):
    (tmp_path / "t.csv").write_text("customer_id,spend\n5,20\n,22\n12,\n13,26\n")
    note = remarked("impute", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert note.startswith("note: Column 'customer_id' is kept as it is")
    assert records(tmp_path / "out.csv")[2][0] == ""


@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(table, tmp_path, full_disk, ending):
    place = tmp_path / f"out.{ending}"
    done("impute", table, "-k", 2, "-o", place)  # so that kernels which are compiled now find room
    place.write_text("old")
    refused_for_room(full_disk, "impute", table, "-k", 2, "--force", "-o", place)
    assert names_in(tmp_path) == [place.name, "table.csv"]
    assert place.read_text() == "old"
