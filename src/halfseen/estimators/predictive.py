"""What a model says of data: how likely cells are, data like those of the fit, intervals of predictions."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.drawing import CELLS_AT_A_TIME, away_from_zero, drawn_at_seen, drawn_everywhere, generator
from halfseen.estimators.features import read_cells
from halfseen.estimators.labelling import pair_positions
from halfseen.estimators.pairs import products_at
from halfseen.estimators.seen import Seen
from halfseen.labels import Places
from halfseen.likelihoods import Likelihood
from halfseen.observed import Observed, match_cells

#: Pairs whose draws are held at a time.
PAIRS_AT_A_TIME = 1 << 12


class Interval(NamedTuple):
    """Where a prediction begins and where it ends, both included."""

    low: Array
    """Where it begins."""
    high: Array
    """Where it ends."""


class PredictiveMixin:
    """Adds `log_likelihood`, `sample` and `predict_interval`. Comes before the base class of an estimator."""

    #: Whether the factors have a distribution, or are single numbers.
    has_posterior: ClassVar[bool]

    def _drawn_factors(
        self, random: np.random.Generator, rows: Array | None, columns: Array | None
    ) -> tuple[Array, Array]:
        """W and H of the rows and columns at these positions, or of all: drawn, where they have a distribution; here
        they have none."""
        W, H = (
            factor if chosen is None else factor[chosen] for factor, chosen in ((self.W_, rows), (self.H_, columns))
        )
        return W, H

    @abstractmethod
    def _draw(self, x: Array, random: np.random.Generator, *at: Array) -> Array:
        """Values drawn at x, as the likelihood counts them; `at` are the rows and columns of the cells, if known."""

    def _counted(self, observed: Observed) -> Observed:
        """Cells as the likelihood counts them, each with the weight that it came with."""
        return observed

    def _labelled(self, counted: Array) -> Array:
        """Values as the user's data have them, from what the likelihood counts."""
        return counted

    def _valued(self, counted: Array) -> Array:
        """The same as numbers: where levels are texts, those that `observe` reads them as."""
        return counted

    def log_likelihood(self, X: Any, *, each: bool = False) -> float | Array:
        """How likely the cells of X are, which were held out of the fit: the sum over cells, in natural logarithms.

            unseen="zero":     sum over the cells of X above 0 of  log p(y | y > 0, x)      (Eq. 39 of `ordnmf-2020`)
            unseen="missing":  sum over the cells of X of          log p(y | x)

        at x = <W_u, H_i>, the posterior means. Where unseen cells are zeros, nobody knows which zeros were held out:
        so the sum asks how much a cell has, given that it has something. (With one level that is certain: it is 0.)

        Parameters
        ----------
        X : data as for `fit`. Rows and columns are matched by label, where there are labels; cells in rows or columns
            that were not fitted are left out, with a `DataWarning`. A cell with a weight counts so many times.
        each : give an array with the logarithm of each cell instead, in row order, without its weight.
        """
        check_is_fitted(self)
        cells = self._held_out(X)
        logs = np.concatenate([np.empty(0), *self._logs(cells)])
        return logs if each else float(np.sum(logs if cells.weights is None else logs * cells.weights))

    def _held_out(self, X: Any) -> Observed:
        """The cells of X that have a likelihood to tell, as the likelihood counts them."""
        shape, labels = (len(self.W_), len(self.H_)), Places(self.row_labels_, self.column_labels_)
        cells = read_cells(X, "X", self.unseen, self._fitted_names())
        cells = self._counted(match_cells(cells, shape, labels, "X", duplicates="keep"))
        if self.unseen == "zero":
            cells = cells.select_cells(cells.values > 0)
        if cells.nnz == 0:
            above = " above 0" if self.unseen == "zero" else ""
            raise DataError(
                f"X must have a cell{above} in a row and a column of the model. Found none. "
                "Check that X is of the rows and columns of the fit."
            )
        return cells

    def _logs(self, cells: Observed) -> Iterator[Array]:
        """The logarithms of the probabilities of cells, some at a time."""
        rows = cells.row_of_cell()
        for start in range(0, cells.nnz, CELLS_AT_A_TIME):
            part = slice(start, start + CELLS_AT_A_TIME)
            x = away_from_zero(products_at(self.W_, self.H_, rows[part], cells.indices[part]), self.likelihood_)
            logs = self._likelihood_at(rows[part], cells.indices[part]).log_prob(
                cells.values[part].astype(np.float64), x
            )
            yield logs - self._log_above_zero(x) if self.unseen == "zero" else logs

    def _log_above_zero(self, x: Array) -> Array:
        """log p(y > 0 | x)."""
        above: Array = np.log(-np.expm1(self.likelihood_.log_prob(np.zeros_like(x), x)))
        return above

    def sample(self, n: int = 1, random_state: Any = None) -> list[sparse.csr_array]:
        """n data sets such as the model expects, each a scipy CSR array with the rows and columns of the fit.

        Each is drawn from the posterior predictive distribution: factors from their posteriors (where the model knows
        single numbers only, these), and values from the likelihood at their products. With `unseen="zero"` every cell
        of the grid is drawn, and what is not stored is 0. With `unseen="missing"` the model does not say which cells
        are seen: values are drawn for the cells of the fit, and zeros among them are stored. Levels that are texts come
        as their numbers 1, 2, ... in `levels_`.

        Parameters
        ----------
        n : how many.
        random_state : None, a whole number or a RandomState; the same number gives the same data.
        """
        check_is_fitted(self)
        wishes = {"n": n, "random_state": random_state}
        checks.check_parameters(wishes, {"n": checks.whole(1), "random_state": checks.seed()})
        random = generator(random_state)
        return [self._data_set(random) for _ in range(n)]

    def _data_set(self, random: np.random.Generator) -> sparse.csr_array:
        W, H = self._drawn_factors(random, None, None)
        if self.unseen == "zero":
            drawn = drawn_everywhere(W, H, self._draw, random)
        else:
            drawn = drawn_at_seen(W, H, self.seen_, self._draw, random)
        drawn.data = self._valued(drawn.data)
        return drawn

    def predict_interval(
        self, rows: Any, cols: Any, level: float = 0.9, of: str = "value", *, n_draws: int = 500, random_state: Any = 0
    ) -> Interval:
        """Central intervals at the pairs (rows[j], cols[j]), named as in `predict`: a pair of arrays (low, high).

        Parameters
        ----------
        level : how probable it is that the interval holds what it is of.
        of : "value": what a look at the cell would show, a level or a count (0 where nothing is there); the interval of
            such whole steps is as short as can be, and so at least as probable as `level`. "mean": the expected value,
            which `predict` gives. "x": the product <w_u, h_i>. The last two are intervals of what the posterior leaves
            open; a model without a posterior has none.
        n_draws : how many draws of w_u and h_i from their posteriors the interval is read off.
        random_state : None, a whole number or a RandomState. By default the same question has the same answer.
        """
        check_is_fitted(self)
        self._check_interval(level, of, n_draws, random_state)
        random = generator(random_state)
        u, i = np.broadcast_arrays(*pair_positions(self, rows, cols))
        tails = np.array([0.5 - level / 2, 0.5 + level / 2])
        parts = [np.empty((2, 0))]
        for start in range(0, u.size, PAIRS_AT_A_TIME):
            part = slice(start, start + PAIRS_AT_A_TIME)
            at = u.reshape(-1)[part], i.reshape(-1)[part]
            parts.append(self._quantiles(self._drawn_products(*at, n_draws, random), tails, of, random, *at))
        low, high = np.concatenate(parts[1:] or parts, axis=1).reshape(2, *u.shape)
        return Interval(low, high)

    def _check_interval(self, level: float, of: str, n_draws: int, random_state: Any) -> None:
        wishes = {"level": level, "of": of, "n_draws": n_draws, "random_state": random_state}
        rules = {
            "level": checks.between(0.0, 1.0),
            "of": checks.one_of("value", "mean", "x"),
            "n_draws": checks.whole(1),
            "random_state": checks.seed(),
        }
        checks.check_parameters(wishes, rules)
        if of != "value" and not self.has_posterior:
            raise ParameterError(
                f'of must be "value" for {type(self).__name__}, whose factors are single numbers without a posterior. '
                f'Found {of!r}. Ask for "value", or fit OrdNMF or PoissonFactorization.'
            )

    def _drawn_products(self, u: Array, i: Array, n_draws: int, random: np.random.Generator) -> Array:
        """x at pairs of positions, a row a draw; of the factors only the rows asked for are drawn."""
        rows, u = np.unique(u, return_inverse=True)
        columns, i = np.unique(i, return_inverse=True)
        x = np.empty((n_draws, u.size))
        for draw in range(n_draws):
            W, H = self._drawn_factors(random, rows, columns)
            x[draw] = products_at(W, H, u, i)
        return x

    def _quantiles(self, x: Array, tails: Array, of: str, random: np.random.Generator, *at: Array) -> Array:
        """Both ends of the interval of each column of draws x."""
        if of == "value":
            return self._labelled(self._value_quantiles(x, tails, random, *at))
        return np.quantile(x if of == "x" else self._likelihood_at(*at).mean(x), tails, axis=0)

    def _value_quantiles(self, x: Array, tails: Array, random: np.random.Generator, *at: Array) -> Array:
        """The values that are reached with the probabilities `tails`, a value drawn for each x."""
        return np.quantile(self._draw(x, random, *at), tails, axis=0, method="inverted_cdf")

    W_: Array
    H_: Array
    row_labels_: Array | None
    column_labels_: Array | None
    seen_: Seen
    likelihood_: Likelihood
    _likelihood_at: Any
    unseen: str
    _fitted_names: Any
