"""What all models with gamma priors and posteriors share."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.estimators.base import Factorization
from halfseen.estimators.drawing import generator
from halfseen.estimators.predictive import PredictiveMixin
from halfseen.solvers import Gamma, GammaFactor, GammaPrior


class GammaFactorization(PredictiveMixin, Factorization):
    """Gamma priors on both factors, variational inference, a gamma posterior for every entry."""

    prior_shape: float
    prior_rate: float | None

    factor_type = GammaFactor
    score_is_log_likelihood = True
    has_posterior = True
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        **Factorization.parameter_rules,
        "prior_shape": checks.number(0.0, above=True),
        "prior_rate": checks.number(0.0, above=True, or_none=True),
    }

    def _make_solver(self) -> Gamma:
        prior = GammaPrior(self.prior_shape, self.prior_rate)
        return Gamma(prior, prior)

    @property
    def W_shape_(self) -> Array:
        """The shape of the posterior of every entry of W."""
        return self.factors_[0].shape

    @property
    def W_rate_(self) -> Array:
        """The rate of the posterior of every entry of W."""
        return self.factors_[0].rate

    @property
    def H_shape_(self) -> Array:
        """The shape of the posterior of every entry of H."""
        return self.factors_[1].shape

    @property
    def H_rate_(self) -> Array:
        """The rate of the posterior of every entry of H."""
        return self.factors_[1].rate

    def sample_factors(self, n: int = 1, random_state: Any = None) -> list[tuple[Array, Array]]:
        """n draws of the factors (W, H) from their posteriors, every entry on its own.

        random_state : None, a whole number or a RandomState; the same number gives the same draws.
        """
        check_is_fitted(self)
        wishes = {"n": n, "random_state": random_state}
        checks.check_parameters(wishes, {"n": checks.whole(1), "random_state": checks.seed()})
        random = generator(random_state)
        return [self._drawn_factors(random, None, None) for _ in range(n)]

    def _drawn_factors(
        self, random: np.random.Generator, rows: Array | None, columns: Array | None
    ) -> tuple[Array, Array]:
        W, H = (
            (factor if chosen is None else factor._make(part[chosen] for part in factor)).sample(random)
            for factor, chosen in zip(self.factors_, (rows, columns), strict=True)
        )
        return W, H

    def factor_intervals(self, level: float = 0.9) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Central credible intervals of every entry: ((W low, W high), (H low, H high)).

        level : how much of every entry's posterior lies between low and high.
        """
        check_is_fitted(self)
        rule = {"level": checks.between(0.0, 1.0)}
        checks.check_parameters({"level": level}, rule)
        tails = (0.5 - level / 2, 0.5 + level / 2)
        rows, columns = (tuple(factor.quantile(tail) for tail in tails) for factor in self.factors_)
        return rows, columns
