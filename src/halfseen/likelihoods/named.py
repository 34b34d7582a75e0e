"""The likelihood that a user's `loss` names."""

from numbers import Real

from halfseen.checks import did_you_mean
from halfseen.errors import ParameterError
from halfseen.likelihoods.base import Likelihood
from halfseen.likelihoods.beta import BetaDivergence
from halfseen.likelihoods.gaussian import Gaussian
from halfseen.likelihoods.poisson import Poisson

#: The names, spelled as in scikit-learn, and the beta that each stands for.
LOSSES = {"itakura-saito": 0.0, "kullback-leibler": 1.0, "frobenius": 2.0}

#: What the losses are called elsewhere.
_OTHER_NAMES = {
    "kl": "kullback-leibler",
    "poisson": "kullback-leibler",
    "is": "itakura-saito",
    "euclidean": "frobenius",
    "gaussian": "frobenius",
    "squared_error": "frobenius",
    "mse": "frobenius",
}


def likelihood_for(loss: str | float) -> Likelihood:
    """The likelihood of a loss: one of the names in `LOSSES`, or any number beta."""
    if isinstance(loss, str) and loss in LOSSES:
        beta = LOSSES[loss]
    elif isinstance(loss, Real) and not isinstance(loss, bool) and abs(loss) < float("inf"):
        beta = float(loss)
    else:
        near = _OTHER_NAMES.get(str(loss)) or did_you_mean(str(loss), LOSSES)
        names = ", ".join(f'"{name}"' for name in LOSSES)
        raise ParameterError(
            f"loss must be one of {names} or a finite number. Found {loss!r}."
            f"{f' Did you mean {near!r}?' if near else ' Choose one of these.'}"
        )
    # Next to a special case the general formula divides one rounding error by another.
    beta = next((special for special in LOSSES.values() if abs(beta - special) < 1e-8), beta)
    if beta == 1.0:
        return Poisson()
    return Gaussian() if beta == 2.0 else BetaDivergence(beta)
