"""Weighted least squares for implicit feedback: every unseen cell a zero of small weight, factors of any sign."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from halfseen import validation
from halfseen.checkpoint import Checkpoint
from halfseen.encoders import CONFIDENCES, ConfidenceEncoder, confidence_rule
from halfseen.errors import ParameterError
from halfseen.estimators.base import Factorization, Method, fitted
from halfseen.io.tables import FilePath
from halfseen.likelihoods import Gaussian
from halfseen.observed import Observed
from halfseen.solvers import LeastSquares

#: l2 by default, in 1 / sqrt(cells per row) + 1 / sqrt(cells per column); how it was found: docs/methods.md.
L2_SHARE = 0.067


class ImplicitMF(Factorization):
    """Rankings from clicks, counts or ratings, by weighted least squares with factors of any sign (iALS).

    Unseen cells are *zeros* of small weight. With x_ui = w_u @ h_i and the confidence c_ui of each seen cell, the loss

        1/2 sum over seen cells of c_ui (1 - x_ui)^2 + unseen_weight / 2 sum over all cells of x_ui^2
        + l2 / 2 (sum over rows of b_u^frequency |w_u|^2 + sum over columns of b_i^frequency |h_i|^2)

    is that of [1]_ in the form of [2]_, where b_u, the weight of all cells of a row, is the sum of its c_ui plus
    unseen_weight times the number of columns; and b_i likewise. Each side is solved for with the other fixed, by a few
    steps of conjugate gradients, so that the loss never rises. `predict` gives x, a score that is near 1 where a cell
    should be seen: for the probability of a level, see `SquaredOrdNMF` and `OrdNMF`. The objective in the trace is the
    loss divided by `unseen_weight`, without the sum over seen cells of c unseen_weight / (2 (c + unseen_weight)), which
    no factor changes.

    Parameters
    ----------
    {n_components}
    unseen_weight : float or None, default=None
        Weight of the zero in every cell. None takes 5 times the sum of confidences over the number of all cells, so
        that zeros weigh 5 times what is seen, but at most the mean confidence. Hold cells out to choose it.
    confidence : {"auto", "values", "log", "ones"} or float, default="auto"
        How a value becomes the confidence of its cell: as it is, log(1 + value), 1 for all above 0, or the value to a
        power. "auto" takes values as they are, but the logarithm if the largest is more than 10 times their mean, as
        that of plays is. Values of 0 have no confidence, and count as unseen but for recommending.
    l2 : float or None, default=None
        Penalty on both factors. None takes 0.067 (1 / sqrt(cells per row) + 1 / sqrt(cells per column)). Hold cells out
        to choose it.
    frequency : float, default=1.0
        Power of the weight of a row's (or column's) cells that its penalty is proportional to, nu in [2]_; with 0 it is
        the same for all. Where `l2` is None it is chosen so that the penalty is the same at the mean weight.
    n_steps : int, default=3
        Steps of conjugate gradients in each half of an iteration.
    {max_iter}
    {tol:loss}
    {init}
    {random_state}
    {verbose}
    unseen : {"zero"}, default="zero"
        What an unseen cell is: a zero.
    {engine}
    {n_jobs}
    {checkpoint}
    dtype : {"float32", "float64"} or None, default="float32"
        Precision of the fit; None: that of X. Double precision takes twice the time and ranks no better.

    Attributes
    ----------
    {W_, H_}
    confidence_ : {"values", "log", "ones"} or float
        How values became confidences in the fit.
    unseen_weight_ : float
        Weight of unseen zeros in the fit.
    l2_ : float
        l2 of the fit.
    {fit}

    References
    ----------
    .. [1] Y. Hu, Y. Koren, C. Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008.
    .. [2] S. Rendle, W. Krichene, L. Zhang, Y. Koren, "Revisiting the performance of iALS on item recommendation
       benchmarks", RecSys 2022.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> plays = np.array([[4, 3, 0, 0], [6, 5, 2, 0], [0, 0, 7, 8], [0, 0, 2, 3]])
    >>> model = hs.ImplicitMF(n_components=2, random_state=0).fit(plays)
    >>> model.recommend([0], n=1).ids
    array([[2]])
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        **{name: rule for name, rule in Factorization.parameter_rules.items() if name != "accelerate"},
        "unseen_weight": validation.number(0.0, above=True, or_none=True),
        "confidence": confidence_rule(),
        "l2": validation.number(0.0, or_none=True),
        "frequency": validation.number(0.0),
        "n_steps": validation.whole(1),
        "dtype": validation.one_of("float32", "float64", or_none=True),
    }
    accelerate = False

    confidence_ = fitted(
        lambda model: {1.0: "values", None: "log", 0.0: "ones"}.get(model.encoder.power, model.encoder.power),
        "How values became confidences in the fit.",
    )
    unseen_weight_ = fitted(lambda model: model.encoder.unseen_weight, "Weight of unseen zeros in the fit.")

    def __init__(
        self,
        n_components: int = 128,
        *,
        unseen_weight: float | None = None,
        confidence: str | float = "auto",
        l2: float | None = None,
        frequency: float = 1.0,
        n_steps: int = 3,
        max_iter: int = 30,
        tol: float = 5e-4,
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        unseen: str = "zero",
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
        dtype: str | None = "float32",
    ) -> None:
        self.n_components = n_components
        self.unseen_weight = unseen_weight
        self.confidence = confidence
        self.l2 = l2
        self.frequency = frequency
        self.n_steps = n_steps
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.unseen = unseen
        self.engine = engine
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.dtype = dtype

    @property
    def l2_(self) -> float:
        """l2 of the fit."""
        solver = self.model_.folding.solver
        return float(solver.l2 * self.unseen_weight_ ** (1.0 - solver.frequency))

    def _encoder(self) -> ConfidenceEncoder:
        power = CONFIDENCES[self.confidence] if isinstance(self.confidence, str) else float(self.confidence)
        unseen_weight = None if self.unseen_weight is None else float(self.unseen_weight)
        return ConfidenceEncoder(power, unseen_weight, self.dtype, may_be_log=self.confidence == "auto")

    def _method(self) -> Method:
        if self.unseen != "zero":
            raise ParameterError(
                'must be "zero" for ImplicitMF: what is seen says only that there is something.',
                parameter="unseen",
                found=repr(self.unseen),
                remedy='Use `WeightedNMF(loss="frobenius")` or `OrdinalMF` where unseen cells are missing.',
            )
        return Method(self._encoder(), Gaussian(), self._solver)

    def _solver(self, codes: Observed, likelihood: Gaussian) -> LeastSquares:
        encoder, power, l2 = self._encoder().fit(codes, type(self).__name__)[0], float(self.frequency), self.l2
        unseen_weight = encoder.unseen_weight or 1.0
        if l2 is None:
            confidence, size = encoder.confidence(codes), float(np.sqrt(np.prod(codes.shape)))
            weights = np.where(confidence > 0, 1.0 if codes.weights is None else codes.weights, 0.0)
            n_seen = max(float(weights.sum()), 1.0)
            lengths = [np.unique(places[weights > 0]).size for places in (codes.row_of_cell(), codes.indices)]
            mean_weight = float(confidence @ weights) / size + unseen_weight * size  # of rows and columns
            l2 = L2_SHARE * float(np.sqrt(lengths).sum() / np.sqrt(n_seen)) * mean_weight ** (1.0 - power)
        return LeastSquares(float(l2) * unseen_weight ** (power - 1.0), power, self.n_steps)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.dtype is not None:
            tags.transformer_tags.preserves_dtype = [self.dtype]
        return tags
