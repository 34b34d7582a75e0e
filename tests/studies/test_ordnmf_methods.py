"""Datasets, selection of settings, dcPF's likelihood of levels and other recommenders, each by its definition."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import nbinom, poisson

from halfseen.data import planted
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.studies import ordnmf_methods as ordnmf
from halfseen.studies.framework import RunSettings, no_progress
from halfseen.studies.ordnmf_methods import Ranker, level_log_likelihood, score_rankers, survival

# Selection of settings and scores.


@pytest.fixture(scope="module")
def cells():
    observed, *_ = planted(40, 30, 2, seen=0.4, noise=None, random_state=0)
    values = np.ceil(observed.values)
    raw = Observed.from_cells(observed.row_of_cell(), observed.indices, values, observed.shape)
    return ordnmf.split(raw, lambda cells: cells, seed=3)


def places(cells):
    return set(zip(cells.raw.row_of_cell().tolist(), cells.raw.indices.tolist(), strict=True))


def test_parts_of_the_cells(cells):
    train, test, inner_train, validation = map(places, cells)
    total = len(train) + len(test)
    assert len(test) == round(0.2 * total)
    assert len(validation) == round(0.2 * len(train))
    assert not train & test
    assert inner_train | validation == train
    assert not inner_train & validation
    # Scores that put training cells first, then test cells, are as good as can be.
    scores = np.zeros(cells.train.raw.shape)
    for one, score in ((cells.train, 2.0), (cells.test, 1.0)):
        for row, column in places(one):
            scores[row, column] = score
    np.testing.assert_allclose(ordnmf.ndcg(scores, cells.train, cells.test, [1]), [1.0])
    observed = Observed.from_cells([0, 0, 1, 2], [0, 2, 1, 2], [8.0, 2.0, 10.0, 7.0], (3, 3))
    ones = ordnmf.binarize(observed, 8)
    assert (ones.row_of_cell().tolist(), ones.indices.tolist(), ones.values.tolist()) == ([0, 1], [0, 1], [1.0, 1.0])
    assert ones.shape == (3, 3)


def test_selection_and_scores(cells):
    settings, messages = RunSettings(seed=5), []

    def fit(fitted, setting, seed):
        """Knows the validation cells, but for noise; when fitted to all training cells, it knows the test cells."""
        fits.append((fitted is cells.train, setting["noise"], seed))
        hidden = cells.test if fitted is cells.train else cells.validation
        truth = np.zeros(fitted.raw.shape)
        for row, column in places(hidden):
            truth[row, column] = 1.0
        return truth + setting["noise"] * np.random.default_rng(seed).random(truth.shape)

    grid, fits = [{"noise": 9.0}, {"noise": 0.0}, {"noise": 3.0}], []
    tuned = Ranker("tuned", "R", grid, fit, log_likelihood=lambda model, test: -float(test.raw.nnz))
    once = Ranker("once", "", [{"noise": 0.0}], fit, is_random=False)
    absent = Ranker("absent", "", grid, fit, package="a_package_that_is_not_there")
    scores = score_rankers([tuned, once, absent], cells, (1, 3), 1, 3, settings, messages.append)
    assert list(scores) == [("tuned", "R"), ("once", ""), ("absent", "")]
    assert scores["absent", ""] is None
    ours, single = scores["tuned", "R"], scores["once", ""]
    assert ours.setting == {"noise": 0.0}
    np.testing.assert_allclose(ours.ndcg[:, 0], 1.0)
    assert ours.ndcg.shape == (3, 2)
    assert np.all(ours.ndcg[:, 1] < 1)  # of the test cells some are below 3
    np.testing.assert_array_equal(ours.log_likelihood, [-cells.test.raw.nnz] * 3)
    assert single.ndcg.shape == (1, 2)
    assert single.log_likelihood is None
    # Settings are selected by fits that see no test cell, all from one seed; then come the starts.
    assert fits == [(False, noise, 5) for noise in (9.0, 0.0, 3.0)] + [(True, 0.0, seed) for seed in (5, 6, 7, 5)]
    assert messages[:2] == ["choosing: tuned R, noise 9, seed 5", "choosing: tuned R, noise 0, seed 5"]
    assert messages[3:5] == ["tuned R, noise 0, seed 5", "tuned R, noise 0, seed 6"]


def test_fits_on_a_gpu_take_turns_and_others_run_side_by_side(cells, monkeypatch):
    calls = []

    def recorded(function, items, n_jobs, progress):
        calls.append((n_jobs, [job.ranker.model for job in items]))
        return [(np.ones(1), None)] * len(items)

    monkeypatch.setattr(ordnmf, "parallel_map", recorded)
    rankers = [
        Ranker(name, "", [{}], None, is_random=False, uses_engine=name != "EASE") for name in ("OrdNMF", "EASE", "PF")
    ]
    for engine, expected in (
        ("cpu", [(1, []), (4, ["OrdNMF", "EASE", "PF"])]),
        ("cuda", [(1, ["OrdNMF", "PF"]), (4, ["EASE"])]),
    ):
        calls.clear()
        scores = score_rankers(rankers, cells, (1,), 1, 1, RunSettings(engine=engine, n_jobs=4), no_progress)
        assert calls[2:] == expected  # after the selection, which has nothing to do
        assert list(scores) == [ranker.key for ranker in rankers]


def test_the_authors_split(cells):
    """Their `divide_train_test`: of the stored values, int(0.2 nnz) drawn by numpy.random.seed(1001)."""
    raw = Observed.from_cells(*np.nonzero(np.ones((9, 13))), np.arange(1.0, 118.0), (9, 13))
    np.random.seed(1001)  # noqa: NPY002
    mask = np.random.choice(  # noqa: NPY002
        117, size=int(117 * 0.2), replace=False
    )
    ours = ordnmf.split(raw, ordnmf.as_they_are, seed=0, split_seed=1001)
    assert set(ours.test.raw.values) == set(mask + 1.0)
    assert ours.train.raw.nnz == 117 - 23
    assert places(ours.inner_train) | places(ours.validation) == places(ours.train)
    assert {one.split_seed for one in (ordnmf.PAPER_FILMS[0], ordnmf.PAPER_PLAYS[0])} == {1001}


def test_edges_are_learned_with_the_factorization_shown_once_for_each_K(cells, monkeypatch):
    calls, quantizer = [], ordnmf.halfseen.Quantizer

    def recorded(*args, **options):
        calls.append((*args, options.get("n_components")) if options else "given")
        return quantizer(*args, **options)

    monkeypatch.setattr(ordnmf.halfseen, "Quantizer", recorded)
    monkeypatch.setattr(ordnmf, "_learned_edges", {})
    (ranker,) = (one for one in ordnmf.table3_rankers(ordnmf.QUICK) if one.model == "OrdNMF, learned edges")
    for K, alpha, seed in ((2, 0.1, 0), (2, 0.3, 0), (2, 0.3, 1), (3, 0.3, 0)):
        assert ranker.fit(cells.train, {"K": K, "alpha": alpha}, seed).W_.shape[1] == K
    assert [call for call in calls if call != "given"] == [("fit", 2), ("fit", 3)]
    alone = quantizer("fit", n_levels=10, n_components=3, random_state=0).fit(cells.train.raw)
    expected = alone.transform(cells.train.raw)
    np.testing.assert_array_equal(ordnmf.learned_levels(cells.train, 3).values, expected.values)
    ordnmf.learned_levels(cells.inner_train, 3)  # of other cells
    assert len(ordnmf._learned_edges) == 3


# dcPF's likelihood of levels, against compounded counts.


def compounded(x, p, most=400):
    """P(0), ..., P(most - 1) of a Poisson(x) number of logarithmic draws, by convolution."""
    k = np.arange(most)
    element = np.where(k > 0, p**k / (np.maximum(k, 1) * -np.log1p(-p)), 0.0)
    total, power = np.zeros(most), np.eye(1, most)[0]
    for number in range(60):
        total += poisson.pmf(number, x) * power
        power = np.convolve(power, element)[:most]
    return total


@pytest.mark.parametrize(("x", "p"), [(0.3, 0.9), (4.0, 0.5), (1.0, 0.95)])
def test_survival_is_the_tail_of_compounded_counts(x, p):
    counts = np.array([1.0, 2, 3, 6, 21])
    tails = 1 - np.cumsum(compounded(x, p))[counts.astype(int) - 1]
    np.testing.assert_allclose(survival(np.full(5, x), p, counts), tails, atol=1e-9)


def test_the_log_likelihood_of_levels_is_that_of_the_counts_in_them():
    random = np.random.default_rng(0)
    model = SimpleNamespace(W_=random.gamma(1.0, 1.0, (4, 2)), H_=random.gamma(1.0, 1.0, (3, 2)), p_=0.8)
    levels = Observed.from_cells([0, 1, 1, 3], [2, 0, 1, 2], [1.0, 3.0, 2.0, 4.0], (4, 3))
    classes = {1: [1], 2: [2, 3], 3: range(4, 9), 4: range(9, 5000)}
    expected = 0.0
    for row, column, level in zip([0, 1, 1, 3], [2, 0, 1, 2], [1, 3, 2, 4], strict=True):
        r = model.W_[row] @ model.H_[column] / -np.log(0.2)
        chances = nbinom.pmf(np.array(classes[level]), r, 0.2)
        expected += np.log(chances.sum() / (1 - nbinom.pmf(0, r, 0.2)))
    assert level_log_likelihood(model, levels, (1, 2, 4, 9)) == pytest.approx(expected, rel=1e-10)


def random_levels(n, m, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(1, 6, (n, m)) * (random.random((n, m)) < 0.3)


def seen(X):
    return observe(np.where(X > 0, X, np.nan).astype(float))


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (15, 15)])
@pytest.mark.parametrize("l2", [0.5, 50.0])
def test_ease_is_a_ridge_regression_of_each_column_on_the_others(shape, l2):
    X = random_levels(*shape).astype(float)
    B = np.zeros((X.shape[1], X.shape[1]))
    for j in range(X.shape[1]):
        others = np.delete(np.arange(X.shape[1]), j)
        A = X[:, others]
        B[others, j] = np.linalg.solve(A.T @ A + l2 * np.eye(others.size), A.T @ X[:, j])
    rows = np.array([3, 0, 7])
    for one in (seen(X), observe(X)):  # unseen or seen zeros, which have no weight
        np.testing.assert_allclose(ordnmf.ease(one, l2)(rows), (X @ B)[rows], rtol=1e-9, atol=1e-9)


def test_popularity_is_the_same_for_all():
    X = random_levels(20, 9)
    W, H = ordnmf.popularity(seen(X))
    np.testing.assert_array_equal(W @ H.T, np.tile((X > 0).sum(axis=0), (20, 1)))


@pytest.mark.parametrize("package", ["implicit", "hpfrec"])
def test_other_packages_rank_a_row_s_group_first(package):
    """Rows have seen two thirds of the columns of their group, and almost nothing else."""
    pytest.importorskip(package)
    random = np.random.default_rng(1)
    own = np.add.outer(np.arange(40), np.arange(30)) % 2 == 0
    X = np.where(random.random((40, 30)) < np.where(own, 0.67, 0.03), 4.0, 0.0)
    W, H = ordnmf.als(seen(X), 3, 1.0, 1.0, 0) if package == "implicit" else ordnmf.hpf(seen(X), 3, 0)
    assert (W.shape, H.shape) == ((40, 3), (30, 3))
    unseen = [
        np.greater.outer(scores[mine & (row == 0)], scores[~mine & (row == 0)]).reshape(-1)
        for scores, mine, row in zip(W @ H.T, own, X, strict=True)
    ]
    assert np.concatenate(unseen).mean() > 0.95
