"""Settings are chosen by cells held out of training, and test cells are seen once, at the end."""

import numpy as np
import pytest

from halfseen.data import planted
from halfseen.observed import Observed
from halfseen.studies.base import words
from halfseen.studies.ordnmf.methods import binary
from halfseen.studies.ordnmf.protocol import Method, chosen, measured, ndcg, part


@pytest.fixture(scope="module")
def parted():
    observed, *_ = planted(40, 30, 2, seen=0.4, noise=None, random_state=0)
    values = np.ceil(observed.values)
    raw = Observed.from_cells(observed.row_of_cell(), observed.indices, values, observed.shape)
    return part(raw, lambda cells: cells, seed=3)


def places(cells):
    return set(zip(cells.raw.row_of_cell().tolist(), cells.raw.indices.tolist(), strict=True))


class Oracle:
    """A method whose rank of held-out cells is known: it scores by noise times a setting, plus the cells themselves."""

    def __init__(self, hidden):
        self.hidden, self.fits = hidden, []

    def fit(self, cells, setting, seed):
        self.fits.append((cells, setting["noise"], seed))
        truth = np.zeros(cells.raw.shape)
        for row, column in self.hidden:
            truth[row, column] = 1.0
        return truth + setting["noise"] * np.random.default_rng(seed).random(truth.shape)


def test_a_fifth_is_for_test_and_a_fifth_of_the_rest_held_out(parted):
    train, test, fitted, held_out = map(places, parted)
    total = len(train) + len(test)
    assert len(test) == round(0.2 * total)
    assert len(held_out) == round(0.2 * len(train))
    assert not train & test
    assert fitted | held_out == train
    assert not fitted & held_out


def test_the_setting_that_ranks_held_out_cells_best_is_chosen_and_test_cells_are_not_looked_at(parted):
    oracle = Oracle(places(parted.held_out))
    grid = [{"noise": 9.0}, {"noise": 0.0}, {"noise": 3.0}]
    method = Method("oracle", "", grid, oracle.fit)
    blind = parted._replace(test=None, train=None)
    assert chosen(method, blind, 1, seed=5, tell=lambda _: None) == {"noise": 0.0}
    assert [(noise, seed) for _, noise, seed in oracle.fits] == [(9.0, 5), (0.0, 5), (3.0, 5)]
    assert all(cells is parted.fitted for cells, *_ in oracle.fits)


def test_then_all_training_cells_are_fitted_from_several_starts(parted):
    oracle, told = Oracle(places(parted.test)), []
    method = Method(
        "oracle", "R", [{"noise": 0.0}], oracle.fit, log_likelihood=lambda model, test: -float(test.raw.nnz)
    )
    ours = measured(method, parted, (1, 3), 1, starts=3, seed=5, tell=told.append)
    assert [(cells is parted.train, seed) for cells, _, seed in oracle.fits] == [(True, 5), (True, 6), (True, 7)]
    np.testing.assert_allclose(ours.ndcg[:, 0], 1.0)  # it knows the test cells
    assert ours.ndcg.shape == (3, 2)
    assert np.all(ours.ndcg[:, 1] < 1)  # of which some are below 3
    np.testing.assert_array_equal(ours.log_likelihood, [-parted.test.raw.nnz] * 3)
    assert told == [f"oracle R, noise 0, start {start}" for start in (1, 2, 3)]


def test_a_method_without_chance_runs_once_and_an_absent_package_not_at_all(parted):
    oracle = Oracle(set())
    once = Method("oracle", "", [{"noise": 0.0}], oracle.fit, starts_at_random=False)
    assert measured(once, parted, (1,), 1, 5, 0, lambda _: None).ndcg.shape == (1, 1)
    absent = Method("oracle", "", [{"noise": 0.0}], oracle.fit, package="a_package_that_is_not_there")
    assert measured(absent, parted, (1,), 1, 5, 0, lambda _: None) is None
    assert len(oracle.fits) == 1


def test_all_training_cells_are_left_out_of_the_ranking_however_few_a_model_was_given(parted):
    """Scores that put training cells first rank what is left by chance; test cells next are found all the same."""
    scores = np.zeros(parted.train.raw.shape)
    for cells, score in ((parted.train, 2.0), (parted.test, 1.0)):
        for row, column in places(cells):
            scores[row, column] = score
    np.testing.assert_allclose(ndcg(scores, parted.train, parted.test, [1]), [1.0])


def test_binary_keeps_the_cells_that_reach_a_value():
    observed = Observed.from_cells([0, 0, 1, 2], [0, 2, 1, 2], [8.0, 2.0, 10.0, 7.0], (3, 3))
    ones = binary(observed, 8)
    assert (ones.row_of_cell().tolist(), ones.indices.tolist(), ones.values.tolist()) == ([0, 1], [0, 1], [1.0, 1.0])
    assert ones.shape == (3, 3)


def test_settings_in_words():
    assert words({"K": 50, "l2": 1000.0, "weight": None}) == "K 50, l2 1000, weight None"
    assert words({}) == ""
