"""Tables 2 and 3 of the OrdNMF paper."""

import numpy as np
import pytest

from halfseen.datasets import as_in_ordnmf, load_ratings
from halfseen.errors import DataError
from halfseen.studies import study
from halfseen.studies.ordnmf import sets, tables
from halfseen.studies.ordnmf.methods import FULL, of_table2, of_table3
from halfseen.studies.ordnmf.protocol import Measured
from halfseen.studies.ordnmf.tables import TABLE2, TABLE2_THRESHOLDS, TABLE3, TABLE3_THRESHOLDS, Printed, Table2
from tests.studies.ordinal_data import write_movielens_20m, write_taste_profile

NEIGHBOURS = ["SquaredOrdNMF", "EASE", "ALS (implicit)", "HPF (hpfrec)", "popularity"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    write_movielens_20m(path)
    write_taste_profile(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALFSEEN_DATA", str(path))
        yield path


@pytest.fixture(scope="module", params=["table2", "table3"])
def made(request, folder):
    """The study, and what a quick run of it made of the paper's set, as made here."""
    chosen = study(f"ordnmf/{request.param}")
    return chosen, chosen.run(quick=True)


# The paper's numbers.


@pytest.mark.parametrize(("table", "thresholds"), [(TABLE2, TABLE2_THRESHOLDS), (TABLE3, TABLE3_THRESHOLDS)])
def test_what_the_paper_says_of_its_tables_holds_in_what_is_printed(table, thresholds):
    ndcg = {key: np.array(row.ndcg, float) for key, row in table.items()}
    assert all(one.size == len(thresholds) for one in ndcg.values())
    for model, data in table:  # "BePoF is slightly better than PF", "OrdNMF outperforms BePoF and PF"
        if model == "PF":
            assert np.all(ndcg["BePoF", data] >= ndcg["PF", data])
    ordnmf, bepof = next(iter(ndcg)), ("BePoF", "B (>= 1)")
    assert np.all(ndcg[ordnmf] > ndcg[bepof])


def test_sections_5_2_s_other_words():
    """ "BePoF with >= 8 achieves best performances for s = 10"; "dcPF gives the best results for the highest s"."""
    assert max(TABLE2, key=lambda key: TABLE2[key].ndcg[-1]) == ("BePoF", "B (>= 8)")
    assert max(TABLE3, key=lambda key: TABLE3[key].ndcg[-1]) == ("dcPF", "R")
    assert float(TABLE3["OrdNMF", "Q"].log_likelihood) > float(TABLE3["dcPF", "R"].log_likelihood)


@pytest.mark.parametrize(("methods", "printed"), [(of_table2, TABLE2), (of_table3, TABLE3)])
def test_every_printed_row_has_a_method_with_the_paper_s_grid(methods, printed):
    ours = {method.key: method for method in methods(FULL)}
    assert set(printed) <= set(ours)
    for key, row in printed.items():
        assert {"K": int(row.K)} in ours[key].grid


# The data.


def test_classes_are_the_paper_s():
    """ "the class labeled 6 corresponds to a listening counts between 21 and 50"; thresholds s begin classes."""
    from halfseen.io import observe

    counts = np.array([[1.0, 2, 3, 5, 6, 10, 11, 20, 21, 50, 51, 100, 101, 200, 201, 500, 501, 352698]])
    classes = sets.quantized(observe(counts)).values.tolist()
    assert classes == [1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10]
    assert set(TABLE3_THRESHOLDS) <= set(sets.EDGES)


def test_stars_are_doubled_and_the_paper_s_preparation_is_done(folder):
    raw = load_ratings("movielens-20m")
    ours = sets.MOVIELENS_20M.load(seed=4)
    assert set(np.unique(ours.values)) <= set(range(1, 11))
    assert ours.nnz == as_in_ordnmf(raw, random_state=4).nnz
    assert sets.TASTE_PROFILE.load(seed=4).values.max() > 500


def test_the_paper_s_set_if_it_is_there_else_the_others():
    others = sets.FILMS
    assert sets.at_hand(sets.MOVIELENS_20M, others, []) == (sets.MOVIELENS_20M,)
    absent = ["movielens-20m", "movielens-1m"]
    assert [one.name for one in sets.at_hand(sets.MOVIELENS_20M, others, absent)] == [one.name for one in others[1:]]
    assert sets.at_hand(sets.MOVIELENS_20M, others, [*absent, *(one.name for one in others)]) == others[:1]


def test_without_any_data_the_loader_s_words_go_up(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFSEEN_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"MovieLens 1M.* need the file"):
        study("ordnmf/table2").run(quick=True)
    with pytest.raises(DataError, match=r"Last\.fm.* need the file"):
        study("ordnmf/table3").run(quick=True)


# The tables.


def test_a_row_for_every_model_of_the_paper_and_every_neighbour(made):
    chosen, result = made
    (table,) = result.tables
    keys = list(zip(table.column("model"), table.column("data"), strict=True))
    assert keys[: len(chosen.printed)] == list(chosen.printed)
    assert [model for model, _ in keys][-5:] == NEIGHBOURS


def test_the_paper_s_numbers_stand_beside_ours(made):
    chosen, result = made
    (table,) = result.tables
    for place, s in enumerate(chosen.thresholds):
        theirs, ours = table.column(f"s = {s} paper"), table.column(f"s = {s} ours")
        assert theirs[: len(chosen.printed)] == [row.ndcg[place] for row in chosen.printed.values()]
        assert all(one is None for one in theirs[len(chosen.printed) :])
        assert all(
            0.2 < one <= 1
            for one, setting in zip(ours, table.column("setting ours"), strict=True)
            if setting != "not installed"
        )


def test_who_knows_the_groups_is_ahead_of_popularity(made):
    """Each user's films are those of the own group, which popularity can't know."""
    _, result = made
    (table,) = result.tables
    ours = dict(zip(table.column("model"), table.column("s = 1 ours"), strict=True))
    assert ours["OrdNMF"] > ours["popularity"] + 0.02
    assert ours["SquaredOrdNMF"] > ours["popularity"] + 0.02
    assert ours["EASE"] > ours["popularity"] + 0.02


def test_only_what_starts_at_random_has_a_spread(made):
    _, result = made
    (table,) = result.tables
    without = {
        model for model, spread in zip(table.column("model"), table.column("s = 1 S.D."), strict=True) if spread is None
    }
    absent = {
        model
        for model, words in zip(table.column("model"), table.column("setting ours"), strict=True)
        if words == "not installed"
    }
    assert without - absent == {"EASE", "popularity"}


def test_the_log_likelihood_is_that_of_levels_in_table_3_alone(folder):
    assert not any("log-likelihood" in column.full_name for column in study("ordnmf/table2")._columns())
    table = study("ordnmf/table3").run(quick=True).tables[0]
    ours = dict(zip(table.column("model"), table.column("log-likelihood ours"), strict=True))
    assert {model for model, value in ours.items() if value is not None} == {"OrdNMF", "dcPF"}
    cells = round(0.2 * sets.TASTE_PROFILE.part().load(0).nnz)
    for model in ("OrdNMF", "dcPF"):  # a guess among ten classes would have log 10 a cell; sure knowledge 0
        assert -2 * cells * np.log(10) < ours[model] < 0
    assert table.column("log-likelihood paper")[:2] == ["-2.8e5", "-3.0e5"]


def test_the_same_seed_gives_the_same_numbers(made):
    chosen, result = made
    again = chosen.run(quick=True)
    assert again.tables[0].column("s = 1 ours")[:-2] == result.tables[0].column("s = 1 ours")[:-2]


def test_it_tells_what_it_does(folder):
    told = []
    study("ordnmf/table3").run(quick=True, tell=told.append)
    assert told[0] == "Taste Profile (Echo Nest) (a part): OrdNMF Q, choosing: K 5"
    assert any("start 2" in one for one in told)


def test_one_set_alone(folder):
    assert [one.name for one in Table2(["movielens-20m"])._sets()] == ["movielens-20m"]
    assert [one.name for one in Table2(["movielens-latest-small"])._sets()] == ["movielens-latest-small"]


# What is said of them.


def test_a_quick_run_says_of_what_it_is(made):
    """The numbers of a part are not told as those of the whole set, nor a part of the grid as all of it."""
    chosen, result = made
    (table,) = result.tables
    of = chosen.set_of_the_paper
    assert f"{of.title} (a part), " in table.title
    assert f"{of.title} (a part): ranked best by " in result.summary
    _, data, _, choices = table.footnotes[:4]
    assert f"{of.words}; of this a part, 250 rows and 200 columns" in data
    assert data.endswith(f"The paper's numbers are of {of.title}.")
    assert "K of the paper's models is one of 5, 10." in choices
    assert choices.endswith("one setting in 6 of what is there.")


def printed(*ndcg):
    return Printed("50", ndcg)


def test_models_turned_round_are_told():
    a, b = printed("0.4", "0.3", "0.2"), printed("0.3", "0.3", "0.3")
    assert tables.turned_round([a, b], [np.array([0.5, 0.1, 0.1]), np.array([0.4, 0.2, 0.2])]) == []
    assert tables.turned_round([a, b], [np.array([0.3, 0.1, 0.3]), np.array([0.4, 0.2, 0.2])]) == [0, 2]


def test_footnotes_and_summary_say_who_stands_where():
    chosen = Table2()
    ndcg = {key: np.tile(np.array(row.ndcg, float), (2, 1)) for key, row in TABLE2.items()}
    found = {key: Measured({"K": 5}, one, None) for key, one in ndcg.items()}
    assert chosen._ordering(found) == "The paper's models stand in the paper's order at every s."
    found["PF", "B (>= 1)"] = Measured({"K": 5}, ndcg["PF", "B (>= 1)"] + [0, 0, 0.005, 0, 0], None)
    assert chosen._ordering(found) == (
        "In another order than in the paper stand BePoF B (>= 1) and PF B (>= 1) at s = 6."
    )
    assert chosen._best(sets.FILMS[0], found | {("EASE", "R"): None}) == (
        "MovieLens 1M: ranked best by OrdNMF at s = 1, 4, 6, 8, BePoF at s = 10."
    )


def test_a_method_that_is_not_installed_has_a_row_that_says_so(folder, monkeypatch):
    from halfseen.studies.ordnmf import protocol

    monkeypatch.setattr(protocol, "is_installed", lambda package: False)
    table = study("ordnmf/table2").run(quick=True).tables[0]
    words = dict(zip(table.column("model"), table.column("setting ours"), strict=True))
    assert {model for model, said in words.items() if said == "not installed"} == {"ALS (implicit)", "HPF (hpfrec)"}
    assert table.texts()[table.column("model").index("ALS (implicit)")][4:] == ["-"] * 15
