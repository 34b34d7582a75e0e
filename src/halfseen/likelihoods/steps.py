"""Rising numbers as a vector that may take any value: the first, then the logarithms of the gaps.

    tau_1 = p_1,    tau_{d+1} = tau_d + exp(p_{d+1})

so that thresholds stay ordered wherever a solver moves the parameters.
"""

import numpy as np

from halfseen.arrays import Array

#: Gaps between exp(-this) and exp(this): beyond, thresholds would be one, or overflow.
_WIDEST = 30.0


def thresholds_of(parameters: Array) -> Array:
    """tau, by its parameters (along the last axis)."""
    gaps = np.exp(np.clip(parameters[..., 1:], -_WIDEST, _WIDEST))
    thresholds = [parameters[..., 0]]
    for d in range(gaps.shape[-1]):  # a gap that is lost in rounding is the smallest that is not
        below = thresholds[-1]
        thresholds.append(np.maximum(below + gaps[..., d], np.nextafter(below, np.inf)))
    return np.stack(thresholds, axis=-1)


def parameters_of(thresholds: Array) -> Array:
    """The parameters of given thresholds."""
    parameters: Array = np.concatenate([thresholds[..., :1], np.log(np.diff(thresholds, axis=-1))], axis=-1)
    return parameters


def jacobian(parameters: Array) -> Array:
    """d tau_d / d p_e along the last two axes: 1 for the first parameter, the gap for each later one up to d."""
    size = parameters.shape[-1]
    gaps = np.exp(np.clip(parameters, -_WIDEST, _WIDEST))
    gaps[..., 0] = 1.0
    jacobian: Array = np.tril(np.ones((size, size))) * gaps[..., None, :]
    return jacobian
