"""Dense arrays with NaN in scikit-learn's own tools: pipelines, and searches over rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from halfseen import OrdinalMF, RankOneNMF, WeightedNMF


def holed(n=120, m=12, k=2, seed=0):
    """A table of k components with a third of its cells missing, and for each row a number that they determine."""
    rng = np.random.default_rng(seed)
    W, H = rng.gamma(1.0, 1.0, (n, k)), rng.gamma(1.0, 1.0, (m, k))
    X = W @ H.T * rng.uniform(0.95, 1.05, (n, m))
    X[rng.random(X.shape) < 0.33] = np.nan
    return X, W @ np.arange(1.0, k + 1)


def levels(n=120, m=12, seed=0):
    """Answers 1..4 of people of whom half like the first items and half the others, and to which half they belong."""
    rng = np.random.default_rng(seed)
    group, taste = rng.integers(0, 2, n), np.repeat([1.0, -1.0], m // 2)
    x = np.where(group, 1.0, -1.0)[:, None] * taste + rng.logistic(scale=0.5, size=(n, m))
    Y = np.digitize(x, [-1.0, 0.0, 1.0]) + 1.0
    Y[rng.random(Y.shape) < 0.33] = np.nan
    return Y, group


CASES = {
    "WeightedNMF": (WeightedNMF(2, random_state=0, accelerate=True, max_iter=1000), holed()[0]),
    "OrdinalMF": (OrdinalMF(2, random_state=0), levels()[0]),
    "RankOneNMF": (RankOneNMF(), holed(k=1)[0]),
}
every_model = pytest.mark.parametrize(("model", "X"), CASES.values(), ids=CASES)


@every_model
def test_a_pipeline_gives_what_its_steps_give(model, X):
    scaled = make_pipeline(FunctionTransformer(lambda X: X * 1.0), clone(model), StandardScaler()).fit(X[:80])
    alone = clone(model).fit(X[:80])
    features = alone.transform(X[:80])
    expected = (alone.transform(X[80:]) - features.mean(axis=0)) / np.maximum(features.std(axis=0), 1e-12)
    moving = features.std(axis=0) > 1e-9  # biases have a component of ones
    np.testing.assert_allclose(scaled.transform(X[80:])[:, moving], expected[:, moving], rtol=1e-6, atol=1e-9)


def test_a_regression_on_components_of_a_table_with_holes_predicts_what_they_determine():
    X, y = holed()
    pipeline = make_pipeline(WeightedNMF(2, random_state=0, accelerate=True, max_iter=2000), LinearRegression())
    assert cross_val_score(pipeline, X, y, cv=4, scoring="r2").mean() > 0.9
    one = make_pipeline(RankOneNMF(), LinearRegression())
    X, y = holed(k=1)
    assert cross_val_score(one, X, y, cv=4, scoring="r2").mean() > 0.9


def test_a_classification_on_components_of_answers_finds_the_groups():
    Y, group = levels()
    found = cross_val_predict(make_pipeline(OrdinalMF(2, random_state=0), LogisticRegression()), Y, group, cv=4)
    assert np.mean(found == group) > 0.95


def test_a_grid_search_takes_the_number_of_components_that_predicts_best():
    """y is determined by three components; with one or two of them, some of it can't be predicted."""
    X, y = holed(n=200, k=3)
    pipeline = Pipeline(
        [("factors", WeightedNMF(random_state=0, max_iter=3000, n_jobs=1)), ("line", LinearRegression())]
    )
    search = GridSearchCV(pipeline, {"factors__n_components": [1, 2, 3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"factors__n_components": 3}
    means = search.cv_results_["mean_test_score"]
    assert means[0] < means[1] < means[2]
    assert search.best_estimator_.named_steps["factors"].H_.shape == (12, 3)


GRIDS = {
    "WeightedNMF": {"l2": [0.0, 1e6]},
    "OrdinalMF": {"l2": [1.0, 1e6]},
    "RankOneNMF": {"method": ["exact", "em"]},
}


@pytest.mark.parametrize("name", CASES)
def test_a_grid_search_scores_by_the_model_itself(name):
    """Rows are held out, folded in, and scored by the model's `score`: as a loop by hand does it."""
    (model, X), grid = CASES[name], GRIDS[name]
    folds = KFold(3)
    search = GridSearchCV(model, grid, cv=folds).fit(X)
    (parameter, values), by_hand = next(iter(grid.items())), []
    for value in values:
        fits = [(clone(model).set_params(**{parameter: value}).fit(X[a]), b) for a, b in folds.split(X)]
        by_hand.append(np.mean([fit.score(X[b]) for fit, b in fits]))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-10)
    assert search.best_params_ == {parameter: values[int(np.argmax(by_hand))]}


@every_model
def test_frames_with_nan_keep_their_names_through_a_pipeline(model, X):
    frame = pd.DataFrame(X, columns=[f"c{column}" for column in range(X.shape[1])], index=range(100, 100 + len(X)))
    pipeline = make_pipeline(clone(model)).set_output(transform="pandas").fit(frame)
    features = pipeline.transform(frame)
    prefix = type(model).__name__.lower()
    assert features.columns.tolist() == [f"{prefix}{column}" for column in range(features.shape[1])]
    assert features.index.tolist() == frame.index.tolist()
    np.testing.assert_allclose(features.to_numpy(), clone(model).fit(X).transform(X), rtol=1e-6, atol=1e-9)
