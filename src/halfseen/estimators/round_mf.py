"""Factorization through a rounding link with learned thresholds: generalized round-rank."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.graded_factorization import GradedFactorization
from halfseen.estimators.pairs import products_at
from halfseen.fitting import Watch
from halfseen.likelihoods import Likelihood, Linear, MultiSigmoid, Round, SmoothOrdinal
from halfseen.result import Fit, Status
from halfseen.solvers import Problem, Ridge, Solver

#: The l2 of loss="round" by default: next to nothing, so that levels without noise are met exactly.
EXACT = 1e-5
#: How large the entries of its random start are: different starts should have different ends.
FAR_APART = 0.5


class RoundMF(GradedFactorization):
    """Ordered levels as x = <w_u, h_i> + b_u + c_i, rounded at thresholds tau_1 < ... < tau_N (Pezeshkpour 2018).

    The level is GRF(x), the number of thresholds below x. Unseen cells are *missing* and say nothing. Factors may have
    any sign. Matrices of full rank can be of a low generalized round-rank: an identity matrix is of 2, a triangular one
    of 1. The penalised loss never rises.

    Parameters
    ----------
    n_components : the number k of components, beside biases.
    loss : "multi-sigmoid": squared error of a staircase of sigmoids, for data with noise; "round": hinges around the
        interval of each level, for data without noise, which they meet exactly if they can; "linear": squared error of
        the levels' numbers themselves, for comparison.
    levels : the levels from the lowest to the highest; None takes the different values of the data.
    thresholds : tau_1 < ... < tau_N between levels 0..N, in units of x; None learns them.
    biases : whether each row and each column has a bias. False gives the model of the thesis.
    l2 : the prior exp(-l2 / 2 |w - centre|^2) on the rows of both factors, a third of it on biases. None takes it from
        the number of cells and the slope of the loss, as noise would make it necessary; for "round" next to nothing.
        Hold cells out to choose your own.
    centred : whether l2 draws rows to sqrt(3) e_1 and columns to sqrt(3) e_2, where both have averages of their own for
        a third of the price, or to 0, as plain ridges do. With few components and little noise, 0 may be better.
    margin : for "round": how far inside its interval x must be to cost nothing.
    solver : "newton": all cells at once, each row by a step of Newton's method; "sgd": single cells in random order.
    learning_rate, batch_size : for "sgd": how far the first step goes; how many cells at most between
        two looks at slopes.
    n_init : so many random starts; the best run is kept.
    early_stopping : hold cells out of the fit, stop when their loss no longer falls, keep the best iteration.
    validation_fraction, n_iter_no_change : the share of cells held out; for how many iterations to wait.
    max_iter, tol : stop after max_iter iterations, or when one lowers the loss by less than tol times the loss at the
        start.
    accelerate : for "newton": let iterations start ahead of the last one, by momentum, and keep only what gains.
    init : "random"; "smooth", for "round" (and its default): from a fit of "multi-sigmoid"; or a pair of arrays (W0,
        H0), with the columns of biases or without.
    random_state : seed of the random start; the same seed gives the same numbers whatever the number of threads.
    verbose : 1 shows a progress bar on a terminal.
    unseen : "missing".
    engine : where to compute; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, k), H_ : (m, k), and x = W_ H_^T; with biases two columns more, W_ = [w, b, 1] and H_ = [h, 1, c].
    row_biases_, column_biases_ : b and c; None without biases.
    thresholds_ : tau_1..tau_N, where x passes from level to level; levels_ : the levels 0..N between them.
    l2_ : the l2 of the fit.
    n_iter_, status_ : how many iterations, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" (the penalised loss), "seconds" and, if cells were
        held out, "held_out" (their mean loss).
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> triangle = np.tri(5)  # of rank 5, but of round-rank 1
    >>> model = hs.RoundMF(n_components=1, loss="round", biases=False, random_state=0).fit(triangle)
    >>> model.predict_level(2, [0, 1, 2, 3, 4])
    array([1., 1., 1., 0., 0.])
    """

    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **GradedFactorization.parameter_rules,
        "loss": checks.one_of("multi-sigmoid", "round", "linear"),
        "margin": checks.number(0.0),
        "init": checks.start("random", "smooth"),
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str = "multi-sigmoid",
        levels: Any = None,
        thresholds: Any = None,
        biases: bool = True,
        l2: float | None = None,
        centred: bool = True,
        margin: float = 0.05,
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
        init: Any = "smooth",
        random_state: Any = None,
        verbose: int = 0,
        unseen: str = "missing",
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.levels = levels
        self.thresholds = thresholds
        self.biases = biases
        self.l2 = l2
        self.centred = centred
        self.margin = margin
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
        if self.loss == "round":
            return Round(thresholds, learned, self._numbers, margin=self.margin)
        if self.loss == "multi-sigmoid":
            return MultiSigmoid(thresholds, learned, self._numbers)
        if not learned:
            raise ParameterError(
                'thresholds must be None for loss="linear", which rounds to the nearest level. '
                f"Found {self.thresholds!r}. Leave them out, or choose another loss."
            )
        return Linear(thresholds.size, 0.5 - float(thresholds[0]), True, self._numbers)

    def _restored_likelihood(self, further: dict[str, Array]) -> Likelihood:
        likelihood = super()._restored_likelihood(further)
        return likelihood.with_parameters(further["parameters"]) if isinstance(likelihood, Linear) else likelihood

    def _l2_by_noise(self, observed: Any, likelihood: SmoothOrdinal) -> float:
        return EXACT if self.loss == "round" else super()._l2_by_noise(observed, likelihood)

    @property
    def _ridge(self) -> Ridge:
        """Where there is no noise there is nothing to hold down, and no reason for a centre."""
        return Ridge(self.l2_, bool(self.biases), bool(self.centred) and self.loss != "round")

    def _named_start(
        self, task: Problem, solver: Solver[Any], sizes: tuple[tuple[int, int], ...], random: np.random.RandomState
    ) -> tuple[Array, Array]:
        if self.loss != "round":
            return super()._named_start(task, solver, sizes, random)
        W, H = (random.normal(0.0, FAR_APART, size) for size in sizes)
        return W, H

    def _is_perfect(self, fit: Fit, task: Problem) -> bool:
        """For "round": whether every cell is at its level."""
        if self.loss != "round":
            return False
        cells = task.cells.observed
        x = products_at(fit.rows.mean, fit.columns.mean, cells.row_of_cell(), cells.indices)
        return bool(np.all(fit.likelihood.levels(x) == cells.values))

    def _run(self, task: Problem, solver: Solver[Any], random: np.random.RandomState, watch: Watch | None) -> Fit:
        if self.loss != "round" or not (isinstance(self.init, str) and self.init == "smooth"):
            return super()._run(task, solver, random, watch)
        likelihood: Any = task.likelihood
        smooth = task.with_likelihood(MultiSigmoid(likelihood.thresholds, likelihood.learned, likelihood.values))
        first = super()._run(smooth, solver, random, None)
        likelihood = replace(likelihood, thresholds=first.likelihood.cuts)
        if first.status is Status.INTERRUPTED:
            return replace(first, likelihood=likelihood)
        found = (first.rows.mean, first.columns.mean)
        return self._run_from(lambda: found, task.with_likelihood(likelihood), solver, watch)
