"""What models through a square link share: the rate x^2, half-normal priors, factors at the mode."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.base import Factorization
from halfseen.estimators.predictive import PredictiveMixin
from halfseen.likelihoods import Likelihood, Squared
from halfseen.observed import Observed
from halfseen.solvers import Multiplicative, Penalty, PointFactor, Problem, Solver

#: l2 by default, as a part of sqrt(n) + sqrt(m); how it was found, and where it is too small: docs/methods.md.
L2_SHARE = 0.72
#: The exponent that is tried first, without momentum and with it; an iteration that it spoils is done again with 1/2.
EAGER = {False: 0.95, True: 0.65}


class SquaredFactorization(PredictiveMixin, Factorization):
    """A likelihood of rates at the rate x^2, with the prior exp(-l2 / 2 w^2) on every entry, at the mode."""

    l2: float | None

    likelihood_: Squared

    factor_type = PointFactor
    score_is_log_likelihood = False
    has_posterior = False
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **Factorization.parameter_rules,
        "l2": checks.number(0.0, or_none=True),
    }

    def _make_solver(self) -> Multiplicative:
        return Multiplicative(Penalty(l2=self.l2_), eager=EAGER[bool(self.accelerate)])

    def _begun(self, observed: Observed) -> tuple[Observed, Likelihood]:
        self._settle_l2(observed)
        return super()._begun(observed)

    def _settle_l2(self, observed: Observed) -> None:
        self.l2_ = L2_SHARE * float(np.sqrt(observed.shape).sum()) if self.l2 is None else float(self.l2)

    def _start(self, task: Problem, solver: Solver[Any], random: np.random.RandomState) -> tuple[Array, Array]:
        W, H = super()._start(task, solver, random)
        for name, factor in (("W0", W), ("H0", H)):
            zeros = np.flatnonzero(~factor.any(axis=1))
            if zeros.size:
                raise ParameterError(
                    f"{name} of init must have a number above 0 in every row: a row of zeros never leaves 0. "
                    f"Found only zeros in row {zeros[0]}. Start it elsewhere."
                )
        return W, H

    def _named_start(
        self, task: Problem, solver: Solver[Any], sizes: tuple[tuple[int, int], ...], random: np.random.RandomState
    ) -> tuple[Array, Array]:
        """Gamma(1, 1) sqrt(sqrt(density) / k), so that x^2 is about the share of cells that are above 0."""
        observed = task.cells.observed
        weights = np.ones(observed.nnz) if observed.weights is None else observed.weights
        cells = observed.shape[0] * observed.shape[1] if observed.unseen == "zero" else weights.sum()
        density = min(1.0, weights[observed.values > 0].sum(dtype=np.float64) / cells)
        scale = np.sqrt(np.sqrt(density) / self.n_components)
        W, H = (scale * random.standard_gamma(1.0, size=size) for size in sizes)
        return W, H

    def _further_arrays(self) -> dict[str, Array]:
        return super()._further_arrays() | {"l2": np.array(self.l2_)}

    def _restore(self, further: dict[str, Array]) -> None:
        super()._restore(further)
        self.l2_ = float(further["l2"])
