"""What all models with gamma priors and posteriors share."""

from collections.abc import Mapping
from typing import ClassVar

from scipy.stats import gamma
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.estimators.base import Factorization
from halfseen.priors import GammaPrior
from halfseen.solvers import Gamma, GammaFactor


class GammaFactorization(Factorization):
    """Gamma priors on both factors, variational inference, a gamma posterior for every entry."""

    prior_shape: float
    prior_rate: float | None

    factor_type = GammaFactor
    score_is_log_likelihood = True
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
        return self.factors_[0].shape

    @property
    def W_rate_(self) -> Array:
        return self.factors_[0].rate

    @property
    def H_shape_(self) -> Array:
        return self.factors_[1].shape

    @property
    def H_rate_(self) -> Array:
        return self.factors_[1].rate

    def factor_intervals(self, level: float = 0.9) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Central credible intervals of every entry: ((W low, W high), (H low, H high))."""
        check_is_fitted(self)
        rule = {"level": checks.between(0.0, 1.0)}
        checks.check_parameters({"level": level}, rule)
        tails = (0.5 - level / 2, 0.5 + level / 2)
        rows, columns = (
            tuple(gamma.ppf(tail, factor.shape, scale=1.0 / factor.rate).astype(factor.mean.dtype) for tail in tails)
            for factor in self.factors_
        )
        return rows, columns
