"""OrdinalMF by sampling: what it predicts, against formulas applied to its draws, quadrature, and a known truth."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

import halfseen as hs
from halfseen.errors import DataError, DataWarning, EngineError, ParameterError
from halfseen.estimators.inputs import observe_features, standardised
from halfseen.fitting import ConvergenceWarning
from halfseen.model import Status
from halfseen.observed import Observed
from halfseen.sampling import factor_chain
from halfseen.sampling.markov_chains import mixing, worst
from halfseen.sampling.sampled_model import FactorDraws, principal_factors

#: So short a chain need not mix.
pytestmark = pytest.mark.filterwarnings("ignore:OrdinalMF", "ignore:Every")
SHORT = {"inference": "gibbs", "n_sweeps": 30, "n_burn": 10, "n_draws": 20, "random_state": 0}
OWNERS = [None, "rows", "columns"]


def ratings(n=25, m=18, share=0.5, seed=0):
    """Levels 1..4 of a model with two components, as an array with holes."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2)) @ random.normal(size=(m, 2)).T + random.normal(size=m)
    levels = 1.0 + np.digitize(x + random.normal(size=x.shape), [-1.0, 0.0, 1.0])
    levels[random.random(x.shape) > share] = np.nan
    return levels


@pytest.fixture(scope="module", params=OWNERS, ids=str)
def model(request):
    return fit(own_thresholds=request.param, implicit=True)


def fit(X=None, **parameters):
    return hs.OrdinalMF(**{"n_components": 2, **SHORT, **parameters}).fit(ratings() if X is None else X)


def dense_draws(model):
    """x, root of the precision, and thresholds of every cell in every draw."""
    draws = model.model_.kept
    W, H = draws.W.astype(float), draws.H.astype(float)
    k = draws.n_components
    x = np.einsum("ndk,mdk->dnm", W[:, :, :k], H[:, :, :k])
    if draws.biases:
        x += W[:, :, k].T[:, :, None] + H[:, :, k].T[:, None, :]
    root = np.sqrt(draws.row_noise.T[:, :, None].astype(float) * draws.column_noise.T[:, None, :])
    shape = (*x.shape, draws.thresholds.shape[1])
    own = draws.own_thresholds
    if draws.owners is None:
        thresholds = draws.thresholds[:, None, None]
    else:
        thresholds = own.transpose(1, 0, 2)[:, :, None] if draws.owners == "rows" else own.transpose(1, 0, 2)[:, None]
    return x, root, np.broadcast_to(thresholds, shape)


# ---------------------------------------------------------------------------------------------------------------------
# predictions


def test_predictions_are_means_over_the_draws(model):
    x, root, thresholds = dense_draws(model)
    below = stats.norm.cdf((thresholds - x[..., None]) * root[..., None])
    ends = np.zeros((*x.shape, 1))
    truth = np.diff(np.concatenate([ends, below, ends + 1], axis=-1), axis=-1).mean(axis=0)
    rows, columns = np.divmod(np.arange(25 * 18), 18)
    found = model.predict_proba(rows, columns)
    assert_allclose(found, truth.reshape(-1, 4), atol=1e-6)
    assert_allclose(found.sum(axis=1), 1.0)
    assert_allclose(model.predict(rows, columns), found @ [1, 2, 3, 4])
    assert_array_equal(model.predict_level(rows, columns), 1 + (np.cumsum(found, axis=1) < 0.5).sum(axis=1))
    assert model.predict(3, 4) == model.predict([3], [4])[0]
    X = ratings()
    filled = model.complete(X)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    hole = np.argwhere(np.isnan(X))[0]
    assert_allclose(filled[tuple(hole)], model.predict(*hole))
    i, j = np.argwhere(~np.isnan(X)).T
    logs = np.log(model.predict_proba(i, j)[np.arange(i.size), X[i, j].astype(int) - 1])
    assert_allclose(model.log_likelihood(X), logs.sum())


def test_intervals_hold_what_the_draws_leave_open(model):
    x, root, thresholds = dense_draws(model)
    rows, columns = np.array([0, 3, 24]), np.array([17, 2, 9])
    means = 1 + stats.norm.cdf((x[..., None] - thresholds) * root[..., None]).sum(axis=-1)
    for of, draws in (("x", x), ("mean", means)):
        low, high = model.predict_interval(rows, columns, 0.8, of=of)
        assert_allclose(low, np.quantile(draws[:, rows, columns], 0.1, axis=0), atol=1e-5)
        assert_allclose(high, np.quantile(draws[:, rows, columns], 0.9, axis=0), atol=1e-5)
    low, high = model.predict_interval(rows, columns, 0.8)
    up_to = np.cumsum(model.predict_proba(rows, columns), axis=1)
    assert_array_equal(low, 1 + (up_to < 0.1).sum(axis=1))
    assert_array_equal(high, 1 + (up_to[:, :-1] < 0.9).sum(axis=1))


def test_best_columns_are_those_of_the_highest_expected_values(model):
    for best in (model.recommend([4, 7], n=5, exclude_seen=False), model.recommend([4, 7], n=5)):
        assert_allclose(best.scores, [model.predict(row, ids) for row, ids in zip([4, 7], best.ids, strict=True)])
    everything = model.recommend([4], n=18, exclude_seen=False)
    assert_array_equal(np.sort(everything.ids[0]), np.arange(18))
    assert np.all(np.diff(everything.scores[0]) <= 0)
    X = ratings()
    assert not np.isin(model.recommend([4], n=18).ids[0], np.flatnonzero(~np.isnan(X[4]))).any()


def test_samples_have_the_frequencies_of_the_predicted_probabilities(model):
    X = ratings()
    i, j = np.argwhere(~np.isnan(X)).T
    drawn = np.array([one.toarray()[i, j] for one in model.sample(600, random_state=1)])
    frequency = np.stack([(drawn == level).mean(axis=0) for level in (1, 2, 3, 4)], axis=1)
    p = model.predict_proba(i, j)
    assert np.max(np.abs(frequency - p) / np.sqrt(p * (1 - p) / 600 + 1e-6)) < 6


def test_factors_are_the_largest_components_of_the_posterior_mean():
    model = fit(n_components=3)
    x = dense_draws(model)[0].mean(axis=0)
    draws = model.model_.kept
    mean = x - draws.W[:, :, 3].mean(axis=1)[:, None] - draws.H[:, :, 3].mean(axis=1)
    U, s, Vt = np.linalg.svd(mean)
    W, H = principal_factors(draws)
    assert_allclose(W[:, :3] @ H[:, :3].T, (U[:, :3] * s[:3]) @ Vt[:3], atol=2e-3 * s[0])
    assert_allclose(model.row_biases_, draws.W[:, :, 3].mean(axis=1), rtol=1e-5)
    assert_allclose(model.column_biases_, draws.H[:, :, 3].mean(axis=1), rtol=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# new rows


def test_a_new_row_depends_on_its_own_cells_alone(model):
    X = ratings(seed=5)[:6]
    assert_array_equal(model.transform(X)[2:4], model.transform(X[2:4]))
    assert_array_equal(model.predict(X)[[4]], model.predict(X[[4]]))
    assert_array_equal(model.predict(X), model.predict(X))
    best = model.recommend(X[:2], n=3)
    rows = model.predict(X[:2])
    assert_allclose(best.scores, np.take_along_axis(rows, best.ids, axis=1))
    assert np.isfinite(model.score(X))


def test_new_rows_have_the_posterior_that_quadrature_gives():
    """One component, no biases, columns known: w of a row with noise r, both integrated out on a grid."""
    h, s, tau = np.array([1.5, -0.7, 0.9, 2.0]), np.array([1.0, 0.6, 1.4, 0.9]), np.array([-0.8, 0.6])
    codes, mean, precision, count = np.array([2, 1, 0, 2]), 0.3, 0.8, 4000
    draws = FactorDraws(
        W=np.zeros((1, count, 1)), H=np.repeat(h[:, None, None], count, axis=1), row_noise=np.ones((1, count)),
        column_noise=np.repeat(s[:, None], count, axis=1), thresholds=np.repeat(tau[None], count, axis=0),
        own_thresholds=None, owners=None, row_mean=np.full((count, 1), mean),
        row_precision=np.full((count, 1), precision), row_linear=np.full((count, 1), 0.2), implicit=None,
        chain=np.zeros(count, np.int64), biases=False,
    )  # fmt: skip
    cells = Observed.from_cells(np.zeros(4, int), np.arange(4), codes.astype(float), (2, 4))
    found = draws.fold_in(cells, 1)
    w, r = np.meshgrid(np.linspace(-8, 8, 801), np.linspace(0.02, 4, 400), indexing="ij")
    density = stats.norm.pdf(w, mean + 0.2, precision**-0.5) * stats.gamma.pdf(r, 10, scale=0.1)
    ends = np.concatenate([[-np.inf], tau, [np.inf]])
    for column, code in enumerate(codes):
        low, high = ((end - w * h[column]) * np.sqrt(r * s[column]) for end in ends[code : code + 2])
        density = density * (stats.norm.cdf(high) - stats.norm.cdf(low))
    density /= density.sum()
    for draw, grid in ((found.W[0, :, 0], w), (found.noise[0], r)):
        truth = (grid * density).sum()
        deviation = np.sqrt(((grid - truth) ** 2 * density).sum())
        effective = mixing(draw).effective
        assert abs(draw.mean() - truth) < 5 * deviation / np.sqrt(effective)
        assert_allclose(draw.std(), deviation, rtol=0.1)
    assert_allclose(found.W[1, :, 0].mean(), mean + 0.2, atol=5 * precision**-0.5 / np.sqrt(count))  # without a cell


def test_training_rows_folded_in_are_predicted_like_those_of_the_fit():
    X = ratings(60, 25, 0.6)
    model = fit(X, n_sweeps=200, n_burn=50, n_draws=150)
    again = model.predict(X)
    holes = np.isnan(X)
    fitted = model.predict(*np.argwhere(holes).T)
    assert np.corrcoef(again[holes], fitted)[0, 1] > 0.97
    assert np.sqrt(np.mean((again[holes] - fitted) ** 2)) < 0.25 * fitted.std()


# ---------------------------------------------------------------------------------------------------------------------
# features


def test_features_tell_about_columns_without_a_cell():
    """Levels depend on a feature of columns alone; half of the columns with it have no cell."""
    random = np.random.default_rng(3)
    feature = np.arange(30) % 2
    X = 1.0 + np.digitize(3.0 * feature - 1.5 + random.normal(size=(40, 30)), [-1.0, 0.0, 1.0])
    X[:, 20:] = np.nan
    frame = pl.DataFrame({"name": [f"c{j}" for j in range(30)], "kind": [["a", "b"][f] for f in feature]})
    wide = pd.DataFrame(X, columns=frame["name"].to_list())
    model = fit(wide, column_features=frame, n_sweeps=150, n_burn=50)
    cold = model.predict(0, [f"c{j}" for j in range(20, 30)])
    assert cold[feature[20:] == 1].min() > 3
    assert cold[feature[20:] == 0].max() < 2
    low, high = model.predict_interval(0, ["c3", "c21"], 0.9, of="x")
    assert high[1] - low[1] > high[0] - low[0]


@pytest.mark.parametrize("numbered", [False, True])
def test_rows_and_columns_that_only_their_features_list_are_predicted(numbered):
    """Levels depend on features of both; a new user and a new film of each kind are asked for by their labels."""
    random, n, m = np.random.default_rng(4), 80, 60
    of_user, of_film = np.arange(n + 2) % 2, np.arange(m + 2) % 2
    u, i = np.argwhere(random.random((n, m)) < 0.5).T
    x = 2.0 * (of_user[u] == of_film[i]) + of_film[i] + 0.3 * random.normal(size=u.size)
    users, films = (
        np.arange(size) + 100 if numbered else np.array([f"x{j}" for j in range(size)]) for size in (n + 2, m + 2)
    )
    long = pd.DataFrame({"user": users[u], "item": films[i], "rating": 1 + np.digitize(x, [0.5, 1.5, 2.5])})
    about_users, about_films = (
        pl.DataFrame({"id": ids, "kind": kinds}) for ids, kinds in ((users, of_user * 2.0), (films, of_film * 2.0))
    )
    model = fit(long, row_features=about_users, column_features=about_films, n_sweeps=150, n_burn=50)
    assert (len(model.W_), len(model.H_), model.n_features_in_) == (n + 2, m + 2, m + 2)
    new = model.predict(np.repeat(users[n:], 2), np.tile(films[m:], 2))
    truth = np.array([3.0, 2.0, 1.0, 4.0])
    assert_array_equal(np.argsort(new), np.argsort(truth))
    assert np.sqrt(np.mean((new - truth) ** 2)) < truth.std() / 2
    every = model.predict(long)
    assert every.shape == (n, m + 2)
    assert_array_equal(every[0], model.predict(long.user[0], model.column_labels_))


@pytest.mark.parametrize(
    ("of_data", "of_features"),
    [
        (int, str), (str, int), (float, int), (int, float), (float, float), (np.uint64, int),
        (int, lambda number: number + 2**63 if number == 19 else number),
        (lambda number: np.datetime64("2024-01-01") + int(number),) * 2,
    ],
)  # fmt: skip
def test_labels_that_only_features_list_become_labels_like_those_of_the_data(of_data, of_features):
    cells = np.argwhere(~np.isnan(ratings()))
    long = pd.DataFrame({"user": cells[:, 0], "item": cells[:, 1], "rating": ratings()[tuple(cells.T)]})
    long["item"] = np.array([of_data(item) for item in long.item])
    listed = [of_features(number) for number in range(20)]
    about = pd.DataFrame({"item": listed, "kind": ["a", "b"] * 10})
    model = fit(long, column_features=about)
    assert len(model.H_) == 20
    kind = "u" if listed[-1] == 2**63 + 19 else hs.observe(long).column_labels.dtype.kind
    assert model.column_labels_.dtype.kind in (kind, "i")  # small ones of both signs need not stay unsigned
    assert np.isfinite(model.predict(0, listed)).all()


@pytest.mark.parametrize(
    "words",
    [
        np.array(["a", np.nan, None] * 4, object), pd.array(["a", None, pd.NA] * 4, "string"),
        pd.to_datetime(["2024-01-01", None, pd.NaT] * 4), pd.Categorical(["a", None, None] * 4),
    ],
)  # fmt: skip
def test_missing_words_are_no_feature(words):
    about = observe_features(pd.DataFrame({"kind": words}), None, 12, "row_features")
    assert_array_equal(about.toarray(), np.array([[1.0], [0.0], [0.0]] * 4))


def test_numbers_of_any_size_are_standardised():
    for unit in (5e-324, 1e-200, 1.0, 1e200, 5e307):
        found = standardised(unit * np.array([1.0, 2.0, 3.0, np.nan]))
        assert_allclose(found, [-np.sqrt(1.5), 0.0, np.sqrt(1.5), 0.0], atol=1e-12)
    assert_array_equal(standardised(np.full(10, 0.1)), 0.0)


@pytest.mark.parametrize("size", [1e4, 1e12, 1e99])
def test_sparse_features_of_any_size_mix(size):
    values = np.random.default_rng(0).normal(size=(18, 1))
    model, moderate = (
        fit(ratings(), column_features=sparse.csr_array(values * unit), n_sweeps=100, n_burn=40) for unit in (size, 1e2)
    )
    there = np.argwhere(~np.isnan(ratings())).T
    assert_allclose(model.predict(*there), moderate.predict(*there), atol=0.4)


def test_names_of_columns_may_be_numbers():
    frame = pd.DataFrame(np.array([LABELS, ["a", "b"] * 9], object).T)
    named = frame.rename(columns={0: "c", 1: "kind"})
    assert_array_equal(fit(NAMED, column_features=frame).W_, fit(NAMED, column_features=named).W_)


def test_repeated_cells_stay_as_they_are():
    """Which columns a row has does not depend on how often; what was passed is not changed."""
    random = np.random.default_rng(0)
    rows, columns = random.integers(0, 6, 60), random.integers(0, 5, 60)
    observed = Observed.from_cells(rows, columns, random.integers(1, 4, 60).astype(float), (6, 5), duplicates="keep")
    indptr, indices = observed.indptr.copy(), observed.indices.copy()
    model = fit(observed, implicit=True)
    assert np.isfinite(model.predict(observed)).all()
    assert_array_equal(observed.indptr, indptr)
    assert_array_equal(observed.indices, indices)


def test_features_may_be_frames_matrices_or_arrays():
    X, kinds = ratings(), np.arange(25) % 3
    one_hot = (kinds[:, None] == np.arange(3)).astype(float)
    cells = np.argwhere(~np.isnan(X))
    long = pd.DataFrame({"user": cells[:, 0] + 100, "item": cells[:, 1], "rating": X[tuple(cells.T)]})
    order = pd.unique(long.user) - 100
    shuffled = np.random.default_rng(0).permutation(25)
    frame = pd.DataFrame({"who": shuffled + 100, "kind": [f"k{kind}" for kind in kinds[shuffled]]})
    by_frame = fit(long, row_features=frame)
    by_matrix = fit(long, row_features=sparse.csr_array(one_hot[order]))
    by_array = fit(long, row_features=one_hot[order].tolist())
    expected = by_matrix.predict(long.user, long.item)
    assert_array_equal(by_frame.predict(long.user, long.item), expected)
    assert_array_equal(by_array.predict(long.user, long.item), expected)
    assert not np.array_equal(fit(long).predict(long.user, long.item), expected)
    in_index = frame.set_index("who")
    assert_array_equal(fit(long, row_features=in_index).predict(long.user, long.item), expected)
    in_column = frame.set_index(pd.Index([None, *range(24)], name="line"))  # an index that has no labels
    assert_array_equal(fit(long, row_features=in_column).predict(long.user, long.item), expected)
    # a duplicate entry of a sparse matrix counts as its sum
    twice = sparse.csr_array(one_hot[order])
    halves = np.repeat(twice.data / 2, 2), np.repeat(twice.indices, 2), 2 * twice.indptr
    repeated = sparse.csr_array(halves, shape=twice.shape)
    assert_array_equal(fit(long, row_features=repeated).predict(long.user, long.item), expected)
    assert repeated.nnz == 2 * twice.nnz  # what was passed is as it was


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_lists_of_words_are_a_feature_per_word(kind):
    genres = [["drama"], ["war", "drama"], None, ["war", "war"], []] + [["drama"]] * 13
    indicators = np.array([[("drama" in (one or [])), ("war" in (one or []))] for one in genres], float)
    frame = kind({"c": LABELS, "genres": genres})
    expected = fit(NAMED, column_features=indicators).model_.kept.H
    assert_array_equal(fit(NAMED, column_features=frame).model_.kept.H, expected)


NAMED = pd.DataFrame(ratings(), columns=[f"c{j}" for j in range(18)])
LABELS = list(NAMED.columns)


@pytest.mark.parametrize(
    ("features", "must", "found"),
    [
        (pl.DataFrame({"c": LABELS, "age": [np.inf] + [1.5] * 17}), "finite", "inf"),
        (pd.DataFrame({"c": LABELS, "age": [2.0, -np.inf] + [1.5] * 16}), "finite", "-inf"),
        (pl.DataFrame({"c": LABELS}), "a feature", "no other column"),
        (pl.DataFrame({"c": LABELS, "kind": [None] * 18}), "a feature", "missing values"),
        (pd.DataFrame({"c": LABELS, "age": [np.nan] * 18}), "a feature", "missing values"),
        (pl.DataFrame({"c": [*LABELS, "c3"], "age": range(19)}), "at most once", "19 of them with known labels, 18"),
        (pd.DataFrame({"age": range(18)}, index=LABELS), "first column", "0 of them with known labels"),
        (sparse.csr_array(np.full((18, 1), -1e200)), "beyond", "1e+200"),
    ],
)
def test_frames_of_features_that_are_refused(features, must, found):
    with pytest.raises(DataError) as error:
        fit(NAMED, column_features=features)
    assert error.value.parameter == "column_features"
    assert must in error.value.must
    assert found in error.value.found


def test_columns_without_features_are_counted():
    some = pl.DataFrame({"c": ["c0", "c7", "x", "c9", "y"], "age": [1.0, 2.0, 3.0, 4.0, 5.0]})
    with pytest.warns(DataWarning, match="features for 3 of 18 columns, and 2 lines with unknown labels") as told:
        hs.OrdinalMF(2, **SHORT, column_features=some).fit(NAMED)
    assert told[0].filename == __file__


# ---------------------------------------------------------------------------------------------------------------------
# chains


def test_fits_are_the_same_for_any_number_of_threads_and_differ_by_seed():
    fits = [fit(n_jobs=n_jobs, implicit=True) for n_jobs in (1, 2, 3)]
    for other in fits[1:]:
        assert_array_equal(other.model_.kept.W, fits[0].model_.kept.W)
        assert_array_equal(other.W_, fits[0].W_)
    assert not np.array_equal(fit(random_state=1).model_.kept.W, fits[0].model_.kept.W)
    draws = fits[0].model_.kept
    assert_array_equal(draws.chain, np.repeat([0, 1], 10))
    assert not np.array_equal(draws.W[:, 0], draws.W[:, 10])


def test_mixing_of_several_chains_is_that_of_their_halves():
    random = np.random.default_rng(0)
    draws = random.normal(size=(3, 100)).cumsum(axis=1)
    halves = draws.reshape(6, 50)
    within, between = halves.var(axis=1, ddof=1).mean(), 50 * halves.mean(axis=1).var(ddof=1)
    assert_allclose(mixing(draws).r_hat, np.sqrt((49 / 50 * within + between / 50) / within))
    independent = mixing(random.normal(size=(4, 500)))
    assert independent.r_hat < 1.02
    assert 1500 < independent.effective < 2500
    assert mixing(np.stack([np.zeros(50), np.ones(50)]) + 0.01 * random.normal(size=(2, 50))).r_hat > 10


def test_chains_that_stand_still_in_different_places_have_not_mixed():
    still, moving = mixing(np.stack([np.zeros(20), np.ones(20)])), mixing(np.random.default_rng(0).normal(size=(2, 20)))
    assert still.r_hat == np.inf
    for count in (3, 20):
        assert worst([still] * count + [moving] * (20 - count)).r_hat == np.inf
    assert worst([still] + [moving] * 19).r_hat == moving.r_hat
    assert np.isnan(worst([mixing(np.zeros(3)[None])] * 2).r_hat)


def test_an_interrupt_keeps_the_draws_so_far(monkeypatch):
    sweep, done = factor_chain.FactorChain.sweep, []

    def interrupted(self, adapt=False):
        done.append(adapt)
        if len(done) == 16:
            raise KeyboardInterrupt
        sweep(self, adapt)

    monkeypatch.setattr(factor_chain.FactorChain, "sweep", interrupted)
    model = hs.OrdinalMF(2, **SHORT, n_chains=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ratings())
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == 15
    assert model.model_.kept.chain.size == 5  # one per sweep after the ten discarded ones
    assert np.isfinite(model.predict(0, 0))


def test_an_interrupt_in_the_first_sweep_keeps_the_start(monkeypatch):
    def interrupted(self, adapt=False):
        raise KeyboardInterrupt

    monkeypatch.setattr(factor_chain.FactorChain, "sweep", interrupted)
    model = hs.OrdinalMF(2, **SHORT)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ratings())
    assert (model.status_, model.n_iter_, model.diagnostics_) == (Status.INTERRUPTED, 0, {})
    assert np.isfinite(model.predict(0, 0))


def test_a_chain_that_has_not_mixed_says_so():
    model = hs.OrdinalMF(2, inference="gibbs", n_sweeps=5, n_burn=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="n_burn"):
        model.fit(ratings())
    assert model.status_ is Status.UNMIXED
    assert model.diagnostics_["predicted cells"].r_hat > 1.1


def test_of_too_few_sweeps_nothing_is_said():
    model = hs.OrdinalMF(2, inference="gibbs", n_sweeps=5, n_burn=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="too few"):
        model.fit(ratings())
    assert model.status_ is Status.TOO_SHORT
    assert np.isnan(model.diagnostics_["predicted cells"].r_hat)


def test_rows_and_columns_with_one_cell_or_none():
    X = ratings()
    X[3] = np.nan
    X[:, 5] = np.nan
    X[4, 1:] = np.nan
    X[4, 0] = 4.0
    model = fit(X, implicit=True, n_sweeps=60)
    assert np.isfinite(model.predict([3, 4, 3], [5, 5, 0])).all()
    x = dense_draws(model)[0]
    assert x[:, 3, 5].std() > x[:, 0, 0].std()  # nothing is known there


@pytest.mark.filterwarnings("error:Every")
def test_those_without_a_cell_are_reported_unless_they_have_features():
    X = ratings()
    X[:, 5] = np.nan
    with pytest.warns(DataWarning, match="column 5.*drawn from the distribution of the others"):
        hs.OrdinalMF(2, **SHORT).fit(X)
    fit(X, column_features=np.arange(18)[:, None])


def test_draws_have_no_ridge():
    for name in ("ridge_", "l2_"):
        with pytest.raises(AttributeError, match="precisions are drawn"):
            getattr(fit(), name)


def test_text_levels_and_given_thresholds():
    words = np.array(["bad", "fair", "good", "best"], object)
    X = ratings()
    cells = [(f"r{i}", f"c{j}", words[int(X[i, j]) - 1]) for i, j in np.argwhere(~np.isnan(X))]
    model = fit(cells, levels=list(words))
    assert model.predict_level("r0", "c0") in words
    fixed = fit(thresholds=[-1.0, 0.0, 1.0])
    assert_allclose(fixed.thresholds_, [-1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("parameters", "name", "kind"),
    [({"n_burn": 30}, "n_burn", ParameterError), ({"link": "cauchit"}, "link", ParameterError),
     ({"l2": 3.0}, "l2", ParameterError), ({"init": (np.ones((25, 2)), np.ones((18, 2)))}, "init", ParameterError),
     ({"early_stopping": True}, "early_stopping", ParameterError), ({"engine": "cuda"}, "engine", EngineError),
     ({"unseen": "zero"}, "unseen", DataError), ({"inference": "map", "implicit": True}, "implicit", ParameterError),
     ({"inference": "map", "row_features": np.eye(25)}, "row_features", ParameterError),
     ({"row_features": np.eye(24)}, "row_features", DataError), ({"inference": "bayes"}, "inference", ParameterError),
     ({"column_features": np.full((18, 1), np.inf)}, "column_features", DataError)],
)  # fmt: skip
def test_refusals(parameters, name, kind):
    with pytest.raises(kind) as error:
        hs.OrdinalMF(2, **{**SHORT, **parameters}).fit(ratings())
    assert error.value.parameter == name


def test_weights_are_refused_but_for_those_of_missing_cells():
    X = ratings()
    with pytest.raises(DataError) as error:
        hs.OrdinalMF(2, **SHORT).fit(X, cell_weight=np.full(X.shape, 2.0))
    assert error.value.parameter == "cell_weight"
    hidden = X.copy()
    hidden[0, np.flatnonzero(~np.isnan(X[0]))[0]] = np.nan
    weight = np.where(np.isnan(hidden), 0.0, 1.0)
    masked = hs.OrdinalMF(2, **SHORT).fit(X, cell_weight=weight)
    assert_array_equal(masked.model_.kept.W, fit(hidden).model_.kept.W)
