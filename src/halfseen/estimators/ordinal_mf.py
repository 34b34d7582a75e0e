"""Matrix factorization of ordered levels through cumulative links."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.graded_factorization import GradedFactorization
from halfseen.estimators.ordinal import ProbableLevelsMixin
from halfseen.estimators.predictive import PredictiveMixin
from halfseen.likelihoods import LINKS, Cumulative, Likelihood, OwnThresholds, SmoothOrdinal
from halfseen.observed import Observed
from halfseen.solvers.newton import BIAS_L2


class OrdinalMF(ProbableLevelsMixin, GradedFactorization, PredictiveMixin):
    """Ordered levels with probabilities: x = <w_u, h_i> + b_u + c_i and noise, cut by thresholds tau_1 < ... < tau_N.

    P(y <= v) = F(tau_{v+1} - x), with F the distribution of the noise that `link` names: the cumulative link models of
    ordinal regression with x made of factors. Unseen cells are *missing* and say nothing. Factors may have any sign;
    they are those of the highest posterior density. The penalised loss never rises.

    Parameters
    ----------
    n_components : the number k of components, beside biases.
    link : the noise: "logit" (logistic), "probit" (normal), "cloglog" (long lower tail), "loglog" (long upper tail),
        "cauchit" (long tails on both sides: strange cells hardly count).
    levels : the levels from the lowest to the highest; None takes the different values of the data.
    thresholds : tau_1 < ... < tau_N between levels 0..N, in units of x; None learns them.
    own_thresholds : "rows" or "columns": each of them has thresholds of its own, drawn to the common ones (some people
        call everything good, some little); None: all share one set. Newton's solver only. With those of columns,
        `recommend` goes by x, which then need not be the order of means.
    biases : whether each row and each column has a bias.
    l2 : the prior exp(-l2 / 2 |w - centre|^2) on the rows of both factors, a third of it on biases. None takes it from
        the number of cells and the slope of the loss, as noise makes it necessary. Hold cells out to choose your own.
    centred : whether l2 draws rows to sqrt(3) e_1 and columns to sqrt(3) e_2, where both have averages of their own for
        a third of the price, or to 0, as plain ridges do. With few components and little noise, 0 may be better.
    solver : "newton": all cells at once, each row by a step of Newton's method; "sgd": single cells in random order.
    learning_rate, batch_size : for "sgd": how far the first step goes; how many cells at most between
        two looks at slopes.
    n_init : so many random starts; the best run is kept.
    early_stopping : hold cells out of the fit, stop when their loss no longer falls, keep the best iteration.
    validation_fraction, n_iter_no_change : the share of cells held out; for how many iterations to wait.
    max_iter, tol : stop after max_iter iterations, or when one lowers the loss by less than tol times the loss at the
        start.
    accelerate : for "newton": let iterations start ahead of the last one, by momentum, and keep only what gains.
    init : "random", or a pair of arrays (W0, H0), with the columns of biases or without.
    random_state : seed of the random start; the same seed gives the same numbers whatever the number of threads.
    verbose : 1 shows a progress bar on a terminal.
    unseen : "missing".
    engine : where to compute; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, k), H_ : (m, k), and x = W_ H_^T; with biases two columns more, W_ = [w, b, 1] and H_ = [h, 1, c].
    row_biases_, column_biases_ : b and c; None without biases.
    own_thresholds_ : tau_1..tau_N of each row or column, if they have their own.
    thresholds_ : tau_1..tau_N; levels_ : the levels 0..N between them.
    l2_ : the l2 of the fit.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the penalised loss), "seconds" and, if cells were
        held out, "held_out" (their mean loss).
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [("ann", "Alien", 5), ("ann", "Clue", 2), ("bob", "Alien", 4), ("bob", "Clue", 1), ("cy", "Clue", 1)]
    >>> model = hs.OrdinalMF(n_components=1, random_state=0).fit(stars)
    >>> model.levels_
    array([1., 2., 4., 5.])
    >>> model.predict_proba("cy", "Alien").round(1)
    array([0.1, 0.2, 0.5, 0.2])
    """

    has_posterior = False
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **GradedFactorization.parameter_rules,
        "link": checks.one_of(*LINKS),
        "own_thresholds": checks.one_of("rows", "columns", or_none=True),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        link: str = "logit",
        levels: Any = None,
        thresholds: Any = None,
        own_thresholds: str | None = None,
        biases: bool = True,
        l2: float | None = None,
        centred: bool = True,
        solver: str = "newton",
        learning_rate: float = 0.3,
        batch_size: int = 4000,
        n_init: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        max_iter: int = 200,
        tol: float = 1e-4,
        accelerate: bool = True,
        init: Any = "random",
        random_state: Any = None,
        verbose: int = 0,
        unseen: str = "missing",
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.link = link
        self.levels = levels
        self.thresholds = thresholds
        self.own_thresholds = own_thresholds
        self.biases = biases
        self.l2 = l2
        self.centred = centred
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_init = n_init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.unseen = unseen
        self.engine = engine
        self.n_jobs = n_jobs

    def _unfitted(self, thresholds: Array, learned: bool) -> SmoothOrdinal:
        return Cumulative(thresholds, learned, self._numbers, link=LINKS[self.link])

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        coded, first = super()._begun(observed)
        likelihood: Any = first
        if self.own_thresholds is None:
            return coded, likelihood
        self._refuse_what_owners_cannot_have(coded)
        owners = coded.shape[0 if self.own_thresholds == "rows" else 1]
        owned = self._owned(likelihood, np.zeros((owners, likelihood.highest)))
        return _with_owners(coded, owned), owned

    def _owned(self, likelihood: Any, offsets: Array) -> OwnThresholds:
        common = (likelihood.thresholds, True, likelihood.values, likelihood.link)
        return OwnThresholds(*common, offsets, BIAS_L2 * self.l2_, str(self.own_thresholds))

    def _refuse_what_owners_cannot_have(self, coded: Observed) -> None:
        if self.thresholds is not None or self.solver != "newton":
            found = "thresholds" if self.thresholds is not None else f"solver={self.solver!r}"
            raise ParameterError(
                "own_thresholds must be None where thresholds are given, or single cells make the steps. Found "
                f'{self.own_thresholds!r} and {found}. Leave one of them out, or use solver="newton".'
            )
        codes = (max(coded.shape) + 1) * self.levels_.size
        if codes > 2 ** np.finfo(coded.dtype).nmant:
            raise DataError(
                f"With own_thresholds, numbers must tell {codes:,} pairs of an owner and a level apart. Found "
                f"{coded.dtype}, which can't. Use float64."
            )

    def _coded(self, observed: Observed) -> Observed:
        coded = super()._coded(observed)
        return _with_owners(coded, self.likelihood_, new_rows=True) if self._has_owners else coded

    @property
    def _has_owners(self) -> bool:
        return isinstance(self.likelihood_, OwnThresholds)

    def _likelihood_at(self, rows: Array | None, columns: Array | None) -> Any:
        if not self._has_owners:
            return self.likelihood_
        if self.likelihood_.axis == "rows":
            return self.likelihood_.for_owners(len(self.W_) if rows is None else rows)
        return self.likelihood_.for_owners(np.arange(len(self.H_)) if columns is None else columns)

    @property
    def own_thresholds_(self) -> Array | None:
        """tau_1..tau_N of each row or column; None if all share `thresholds_`."""
        thresholds: Array | None = self.likelihood_.owner_thresholds[:-1] if self._has_owners else None
        return thresholds

    def _draw(self, x: Array, random: np.random.Generator, *at: Array) -> Array:
        up_to = np.cumsum(self._likelihood_at(*at).probabilities(x), axis=-1)
        return (up_to[..., :-1] < random.random((*x.shape, 1))).sum(axis=-1).astype(np.float64)

    def _kept_of_levels(self) -> dict[str, Array]:
        owned = {"offsets": self.likelihood_.offsets} if self._has_owners else {}
        return super()._kept_of_levels() | owned

    def _restore(self, further: dict[str, Array]) -> None:
        super()._restore(further)
        if "offsets" in further:
            self.likelihood_ = self._owned(self.likelihood_, further["offsets"])


def _with_owners(coded: Observed, owned: OwnThresholds, *, new_rows: bool = False) -> Observed:
    """Cells with owner and level in one number; new rows have no thresholds of their own yet."""
    owner: Any = coded.indices
    if owned.axis == "rows":
        owner = len(owned.offsets) if new_rows else coded.row_of_cell()
    return replace(coded, values=(owner * (owned.highest + 1) + coded.values).astype(coded.dtype))
