"""What is answered, beside a dense computation: all scores as one matrix, sorted."""

import json
import warnings

import numpy as np
import pytest

import halfseen
from halfseen import observe
from halfseen.labels import Index
from halfseen.serving.answers import Ids, ServedModel
from halfseen.serving.requests import RequestError
from tests.laws.estimators import every_record, with_parameters
from tests.serving.conftest import ITEMS, counts, fit, get, post


def best(scores, n, labels=ITEMS):
    """The n best of a row of scores by a stable sort, without those at -inf."""
    order = [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] > -np.inf][:n]
    return [labels[i] for i in order], scores[order]


def check(answer, ids, scores, key="item", listed="items"):
    assert [one[key] for one in answer[listed]] == ids
    np.testing.assert_allclose([one["score"] for one in answer[listed]], scores, rtol=1e-9)


@pytest.fixture(scope="module")
def scores(path):
    """x of every cell, in the order of the items here."""
    model = halfseen.load(path)
    columns = [model.column_labels_.tolist().index(item) for item in ITEMS]
    rows = np.argsort(model.row_labels_)
    return (model.W_ @ model.H_.T)[rows][:, columns]


@pytest.fixture(scope="module")
def fresh(X, scores):
    """The same, at cells that were not seen."""
    return np.where(X > 0, -np.inf, scores)


def test_users_of_the_fit_get_the_best_items_that_they_have_not_seen(service, fresh):
    answer = get(service, "/recommend", user=["70", "0"], n=4).json
    assert [one["user"] for one in answer["recommendations"]] == [70, 0]  # integers, as in the model
    for row, one in zip((7, 0), answer["recommendations"], strict=True):
        assert one["known"] is True
        check(one, *best(fresh[row], 4))
    assert answer["notes"] == []
    assert answer["model"] == service.model.fingerprint
    assert post(service, "/recommend", {"users": [70, 0], "n": 4}).json == answer
    assert post(service, "/recommend", {"users": ["70", 0.0], "n": 4}).json == answer


def test_items_are_chosen_and_excluded(service, scores, fresh):
    chosen, without = ["item 2", "item 5", "item 11", "item 0"], ["item 5", "item 1"]
    allowed = np.isin(ITEMS, chosen)
    for exclude_seen, x in ((True, fresh), (False, scores)):
        asked = {"users": [40], "n": 6, "exclude_seen": exclude_seen}
        answer = post(service, "/recommend", asked).json["recommendations"][0]
        check(answer, *best(x[4], 6))
        answer = post(service, "/recommend", {**asked, "exclude": without}).json["recommendations"][0]
        check(answer, *best(np.where(np.isin(ITEMS, without), -np.inf, x[4]), 6))
        answer = post(service, "/recommend", {**asked, "filter_items": chosen, "exclude": without}).json
        check(answer["recommendations"][0], *best(np.where(allowed & ~np.isin(ITEMS, without), x[4], -np.inf), 6))
        words = {"user": 40, "n": 6, "exclude_seen": str(exclude_seen).lower()}
        assert get(service, "/recommend", **words, filter_items=chosen, exclude=without).json == answer
    nothing = post(service, "/recommend", {"users": [40], "filter_items": []}).json
    assert nothing["recommendations"][0]["items"] == []


def test_many_users_are_answered_as_each_alone(service, fresh):
    users = [10 * row for row in range(30)] + [0]
    answers = post(service, "/recommend", {"users": users, "n": 3}).json["recommendations"]
    for user, answer in zip(users, answers, strict=True):
        check(answer, *best(fresh[user // 10], 3))


def test_histories_are_folded_in(service, path):
    model = halfseen.load(path)
    histories = [{"item 2": 3, "item 4": 1}, {"item 7": 2}, {"item 2": 1, "item 3": None}]
    known = [{name: value for name, value in one.items() if value is not None} for one in histories]
    answers = post(service, "/recommend", {"histories": histories, "n": 5}).json
    for place, (history, answer) in enumerate(zip(known, answers["recommendations"], strict=True)):
        x = model.transform([history])[0] @ model.H_.T
        x[[model.column_labels_.tolist().index(item) for item in history]] = -np.inf
        assert (answer["history"], answer["known"]) == (place, True)
        check(answer, *best(x, 5, model.column_labels_.tolist()))


def test_who_is_unknown_gets_popular_items_and_a_flag(service, X, fresh):
    popular = best(np.count_nonzero(X, axis=0), 4)
    answer = post(service, "/recommend", {"users": ["nobody", 70, 5], "n": 4}).json
    assert [one["known"] for one in answer["recommendations"]] == [False, True, False]
    assert [one["user"] for one in answer["recommendations"]] == ["nobody", 70, 5]
    check(answer["recommendations"][0], *popular)
    check(answer["recommendations"][1], *best(fresh[7], 4))
    assert "2 of the 3 asked about are not known" in answer["notes"][0]
    answer = post(service, "/recommend", {"histories": [{"new": 3}, {}, {"item 3": 1, "new": 2}], "n": 4}).json
    assert [one["known"] for one in answer["recommendations"]] == [False, False, True]
    check(answer["recommendations"][1], *popular)
    assert answer["notes"][0].startswith("2 of 3 items in histories are not in the model")
    excluded = post(service, "/recommend", {"users": ["nobody"], "exclude": [popular[0][0], "x"], "n": 3}).json
    check(excluded["recommendations"][0], popular[0][1:], popular[1][1:])
    assert excluded["notes"][0].startswith("1 of 2 items in exclude")


def test_similar_items_and_users_by_cosine(service, path):
    model = halfseen.load(path)
    for one, side, factor, labels in (
        ("item", "items", model.H_, model.column_labels_.tolist()),
        ("user", "users", model.W_, model.row_labels_.tolist()),
    ):
        unit = factor / np.linalg.norm(factor, axis=1, keepdims=True)
        cosines = unit @ unit.T - np.diag(np.full(len(unit), np.inf))
        wanted = [labels[5], labels[2], "unknown"]
        answers = post(service, "/similar", {side: wanted, "n": 4}).json["similar"]
        check(answers[0], *best(cosines[5], 4, labels), one, side)
        check(answers[1], *best(cosines[2], 4, labels), one, side)
        assert answers[2] == {one: "unknown", "known": False, side: []}
        assert get(service, "/similar", **{one: [str(one) for one in wanted]}, n=4).json["similar"] == answers
    chosen = post(service, "/similar", {"items": ["item 3"], "filter_items": ["item 3", "item 4", "item 9"]}).json
    assert {one["item"] for one in chosen["similar"][0]["items"]} == {"item 4", "item 9"}
    without = post(service, "/similar", {"items": ["item 3"], "exclude": ["item 4"], "n": 50}).json
    assert {one["item"] for one in without["similar"][0]["items"]} == set(ITEMS) - {"item 3", "item 4"}


def test_titles_beside_items(path, names):
    model = ServedModel.load(path, names)
    items = model.recommend({"users": ["nobody"], "n": 20, "exclude_seen": True})["recommendations"][0]["items"]
    assert {one["item"]: one["title"] for one in items} == {
        item: None if item == ITEMS[-1] else f"Title of {number}" for number, item in enumerate(ITEMS)
    }
    assert model.facts()["titles"] == len(ITEMS) - 1


def test_names_that_name_nothing_are_refused(path, tmp_path):
    (tmp_path / "other.csv").write_text("id,title\na,b\nc,d\n")
    with pytest.raises(halfseen.errors.DataError, match="must list items of the model"):
        ServedModel.load(path, tmp_path / "other.csv")


def test_similar_items_of_a_model_without_factors(tmp_path):
    model = halfseen.Popularity().fit(observe(counts(), unseen="zero"))
    model.save(tmp_path / "model.hs")
    served = ServedModel.load(tmp_path / "model.hs")
    for wanted in ([3], [5]):  # the second answer is from what the first one has kept, if anything
        answer = served.similar({"items": wanted, "n": 4})["similar"][0]["items"]
        (ids,), (scores,) = model.similar_items(wanted, 4)
        assert [(one["item"], one["score"]) for one in answer] == list(zip(ids.tolist(), scores.tolist(), strict=True))


def test_a_model_that_cannot_recommend_is_refused(tmp_path):
    collected, _ = halfseen.datasets.make_survey(6, 5, 4, random_state=0)
    halfseen.UncoupledNMF(2, method="decode", random_state=0).fit(collected).save(tmp_path / "survey.hs")
    with pytest.raises(halfseen.errors.ParameterError, match="must recommend"):
        ServedModel.load(tmp_path / "survey.hs")


@pytest.mark.parametrize(
    ("labels", "known", "unknown"),
    [
        (None, [("0", 0), (2, 2), (2.0, 2), (" 1 ", 1)], ["3", -1, 1.5, "x", 10**30]),
        ([5, 7, -2], [("5", 0), (7, 1), (-2.0, 2)], ["05", "5.0", 6, 2**63, -(2**70), 1e300, ""]),
        ([5, 2**64 - 1], [(2**64 - 1, 1), (str(2**64 - 1), 1)], [-5, 2**64]),
        (["a", "7", "x y"], [("a", 0), (7, 1), (7.0, 1), ("x y", 2)], ["A", "07", "", "x"]),
        ([0.5, 2.0], [(0.5, 0), ("0.5", 0), (2, 1), ("2", 1)], ["half", "0_5", "1e", 3]),
        (np.array(["2020-01-02", "2021-03-04"], "M8[D]"), [("2021-03-04", 1)], ["2021", 5]),
        ([True, False], [("true", 0), ("False", 1)], ["yes", 1]),
    ],
)
def test_ids_find_labels_of_any_kind(labels, known, unknown):
    from halfseen.labels import uniform

    index = None if labels is None else Index(uniform(labels, "column"))
    ids = Ids(index, 3 if labels is None else len(labels))
    assert ids.find([one for one, _ in known]).tolist() == [place for _, place in known]
    assert ids.find(unknown).tolist() == [-1] * len(unknown)
    assert [ids.find([one]).tolist() for one in unknown] == [[-1]] * len(unknown)
    if index is not None:
        texts = [text if isinstance(text, str) else str(text) for text in ids.as_json(index.labels)]
        assert ids.find(texts).tolist() == list(range(ids.size))


def test_a_deadline_ends_the_work(service):
    checked = {"users": [0], "n": 3, "exclude_seen": True}
    with pytest.raises(RequestError, match="time allowed") as refused:
        service.model.recommend(checked, deadline=0.0)
    assert refused.value.status == 503


def test_requests_answered_together_are_answered_as_each_alone(service):
    many = [{"users": users, "n": 5, "exclude_seen": True} for users in ([0, 10], ["nobody"], [290])]
    together = service.model.recommend_together(many)
    for asked, answer in zip(many, together, strict=True):
        alone = service.model.recommend(asked)
        assert answer["notes"] == alone["notes"]
        for one, other in zip(answer["recommendations"], alone["recommendations"], strict=True):
            assert (one["user"], one["known"]) == (other["user"], other["known"])
            check(one, [item["item"] for item in other["items"]], [item["score"] for item in other["items"]])


def test_models_without_labels_and_of_levels_are_served(tmp_path):
    X = counts(3)
    model = halfseen.SquaredOrdNMF(2, max_iter=5, tol=0, random_state=0, unseen="zero").fit(X)
    model.save(tmp_path / "positions.hs")
    served = ServedModel.load(tmp_path / "positions.hs")
    answer = served.recommend({"users": ["4"], "n": 2, "exclude_seen": True})["recommendations"][0]
    assert answer["user"] == 4
    assert [one["item"] for one in answer["items"]] == model.recommend([4], n=2).ids[0].tolist()
    fit(X, tmp_path / "dates.hs", columns=np.arange("2020-01-01", "2020-01-21", dtype="M8[D]"))
    served = ServedModel.load(tmp_path / "dates.hs")
    answer = served.similar({"items": ["2020-01-03"], "n": 3})["similar"][0]
    assert all(one["item"].startswith("2020-01-") for one in answer["items"])


@every_record
def test_every_model_that_recommends_is_served_as_it_recommends(estimator, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = with_parameters(estimator, n_components=2, max_iter=3, random_state=0).fit(counts(1))
        model.save(tmp_path / "model.hs")
        served = ServedModel.load(tmp_path / "model.hs")
    for asked, rows in (({"users": [4]}, [4]), ({"histories": [{"2": 1, "5": 2}]}, [{2: 1, 5: 2}])):
        checked = {**asked, "n": 5, "exclude_seen": False}
        if "histories" in asked and not served.record.can_fold_in:
            with pytest.raises(RequestError, match="must take new users"):
                served.recommend(checked)
            continue
        try:
            expected = model.recommend(rows, n=5, exclude_seen=False)
        except halfseen.errors.DataError:  # a value that is no level
            with pytest.raises(halfseen.errors.DataError):
                served.recommend(checked)
            continue
        answer = served.recommend(checked)["recommendations"][0]
        check(answer, expected.ids[0].tolist(), expected.scores[0])
    similar = served.similar({"items": [3], "n": 4})["similar"][0]
    cosines = served.record.similarities(np.array([3]), "column").tile(slice(0, 1), slice(0, 20))[0]
    cosines[3] = -np.inf
    np.testing.assert_allclose([one["score"] for one in similar["items"]], np.sort(cosines)[::-1][:4], rtol=1e-9)
    json.dumps(served.facts(), allow_nan=False)
