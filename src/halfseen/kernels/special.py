"""Exponential, logarithm, special functions of the gamma and normal distributions, and steps of factors, vectorised.

The library functions that a compiled loop calls take one number at a time. Those below are arithmetic alone, without a
branch, so that the compiler can compute several at once; they agree with the exact values to 1 or 2 units in the last
place. Digamma and log-gamma come from one shift of eight, which is taken by products rather than by a loop:

    p(a) = a (a+1) ... (a+7) = q (q+6) (q+10) (q+12),   q = a (a+7)
    digamma(a)   = log(t) - 1/(2t) - 1/(12 t^2) + ... - p'(a) / p(a),          t = a + 8
    log_gamma(a) = (t - 1/2) log(t) - t + log(2 pi)/2 + 1/(12 t) - ... - log p(a)

They agree with SciPy's to 1e-14, for 0 < a < 1e38. Those of the normal distribution are for draws, and less exact.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from halfseen.kernels import inlined, kernel

Array = npt.NDArray[Any]

_TINY = np.finfo(np.float64).tiny
_HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)
_LOG2_E = 1.0 / np.log(2.0)
#: log(2) in two numbers; products of the first with exponents are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Adding it rounds to a whole number, which is then in the lowest bits.
_ROUNDING = 6755399441055744.0
_ONE, _MANTISSA = np.int64(0x3FF0000000000000), np.int64(0x000FFFFFFFFFFFFF)
#: The bits of sqrt(1/2): mantissas from here up to sqrt(2) are nearest to 1.
_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)


def _number_to_bits(context: Any, x: Any) -> Any:
    return types.int64(types.float64), lambda _, builder, __, args: builder.bitcast(args[0], ir.IntType(64))


def _bits_to_number(context: Any, bits: Any) -> Any:
    return types.float64(types.int64), lambda _, builder, __, args: builder.bitcast(args[0], ir.DoubleType())


#: The bits of a number as an integer, and back.
_bits: Any = intrinsic(_number_to_bits)
_from_bits: Any = intrinsic(_bits_to_number)


@inlined
def power_and_rest(x: float) -> tuple[float, float]:
    """2^n and e^r - 1 with x = n log(2) + r, |r| <= log(2) / 2: so e^x = 2^n (1 + rest). x from -708 to 709."""
    shifted = x * _LOG2_E + _ROUNDING
    n = shifted - _ROUNDING
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = 1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800))
    p = 1 / 362880 + r * (1 / 3628800 + r * p)
    p = 1 / 5040 + r * (1 / 40320 + r * p)
    p = 1 / 120 + r * (1 / 720 + r * p)
    p = r + r * r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * p)))
    return _from_bits((_bits(shifted) << 52) + _ONE), p


@inlined
def exp(x: float) -> float:
    """e^x, for x from -708 to 709; below, e^-708."""
    power, rest = power_and_rest(max(x, -708.0))
    return power + power * rest


@inlined
def one_minus_exp(z: float) -> float:
    """1 - e^-z for z >= 0, to all digits also where z is small."""
    power, rest = power_and_rest(max(-z, -700.0))
    return (1.0 - power) - power * rest


@inlined
def log(x: float) -> float:
    """log(x) of a positive normal number (by fdlibm's polynomial)."""
    bits = _bits(x)
    exponent = (bits - _ROOT_HALF) >> 52
    f = _from_bits(bits - (exponent << 52)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
    odd = 0.6666666666666735130 + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    half = 0.5 * f * f
    n = np.float64(exponent)
    return n * _LN2_HIGH - ((half - (s * (half + (z * odd + even)) + n * _LN2_LOW)) - f)


@inlined
def digamma_and_log_gamma(a: float) -> tuple[float, float]:
    """Both, of one number: Stirling's series at t = a + 8 (Abramowitz & Stegun 6.1.41, 6.3.18), less the shift."""
    q = a * (a + 7.0)
    outer, inner = q * (q + 6.0), (q + 10.0) * (q + 12.0)
    product = outer * inner
    slope = ((2.0 * q + 6.0) * inner + (2.0 * q + 22.0) * outer) * (2.0 * a + 7.0)
    t = a + 8.0
    r = 1.0 / t
    s = r * r
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * (691 / 32760 - s / 12))))))
    log_t = log(t)
    digamma = log_t - 0.5 * r - tail - slope / product
    tail = 1 / 1188 - s * (691 / 360360 - s / 156)
    tail = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * tail))))
    return digamma, (t - 0.5) * log_t - t + _HALF_LOG_2_PI + tail - log(product)


@inlined
def share_of_bits(bits: Any) -> Any:
    """A number in [0, 1) from 64 random bits, of which it takes the upper 52."""
    return _from_bits(np.int64(bits >> np.uint64(12)) | _ONE) - 1.0


@inlined
def normal_tail(z: float) -> float:
    """P(Z > z) of a standard normal number, for z from 0 to 37.

    By Hart's rational function (1968, no. 5666). Its relative error is below 1e-14 up to z = 2, 1e-10 up to 5, and 1e-5
    everywhere.
    """
    p = 33.912866078383 + z * (6.37396220353165 + z * (0.700383064443688 + z * 3.52624965998911e-2))
    p = 220.206867912376 + z * (221.213596169931 + z * (112.079291497871 + z * p))
    q = 86.7807322029461 + z * (16.064177579207 + z * (1.75566716318264 + z * 8.83883476483184e-2))
    q = 440.413735824752 + z * (793.826512519948 + z * (637.333633378831 + z * (296.564248779674 + z * q)))
    return exp(-0.5 * z * z) * p / q


@inlined
def normal_quantile(p: float) -> float:
    """z with P(Z < z) = p of a standard normal number, p from 1e-11 to 1 - 1e-11; to 1e-14 (Wichura 1988, AS 241)."""
    middle = min(max(p - 0.5, -0.425), 0.425)
    r = 0.180625 - middle * middle
    a = 13731.693765509461 + r * (
        45921.95393154987 + r * (67265.7709270087 + r * (33430.575583588128 + r * 2509.0809287301227))
    )
    a = 3.3871328727963665 + r * (133.14166789178438 + r * (1971.5909503065513 + r * a))
    b = 21213.794301586597 + r * (39307.89580009271 + r * (28729.085735721943 + r * 5226.495278852546))
    b = 1.0 + r * (42.31333070160091 + r * (687.1870074920579 + r * (5394.196021424751 + r * b)))
    r = np.sqrt(-log(min(max(min(p, 1.0 - p), 1e-11), 0.075))) - 1.6
    c = 1.2704582524523684 + r * (0.2417807251774506 + r * (0.022723844989269184 + r * 7.7454501427834139e-4))
    c = 1.4234371107496835 + r * (4.630337846156546 + r * (5.769497221460691 + r * (3.6478483247632045 + r * c)))
    d = 0.1481039764274801 + r * (0.015198666563616457 + r * (5.475938084995345e-4 + r * 1.0507500716444169e-9))
    d = 1.0 + r * (2.053191626637759 + r * (1.6763848301838038 + r * (0.6897673349851 + r * d)))
    outer = c / d if p > 0.5 else -c / d
    return middle * a / b if abs(p - 0.5) <= 0.425 else outer


@kernel
def gamma_posterior(
    P: Array, Q: Array, G: Array, b: Array, a: float, constant: float, tiny: float,
    shape: Array, rate: Array, mean: Array, geometric: Array,
) -> tuple[float, float]:  # fmt: skip
    """Gamma(shape, rate) of every entry of a block of rows, see `solvers.gamma`: shape = a + G P, rate = b + Q.

    Q may have one row for all. Returns the sums of E[log p(w)] - E[log q(w)] and of Q E[w]; `constant` is log gamma(a),
    and geometric means below `tiny` become 0.
    """
    gain, pushed, k = 0.0, 0.0, P.shape[1]
    log_mean, log_rate = np.empty(k), np.empty(k)
    for u in range(P.shape[0]):
        q, prior = Q[min(u, len(Q) - 1)], np.float64(b[u])
        shapes, rates, means = shape[u], rate[u], mean[u]
        for j in range(k):
            shapes[j] = a + G[u, j] * P[u, j]
        for j in range(k):
            rates[j] = b[u] + q[j]
        for j in range(k):
            means[j] = shapes[j] / rates[j]
        of_row = 0.0
        for j in range(k):
            s = np.float64(shapes[j])
            digamma, log_gamma = digamma_and_log_gamma(s)
            log_mean[j] = digamma
            of_row += (a - s) * digamma + log_gamma + s
        for j in range(k):
            log_rate[j] = log(np.float64(rates[j]))
        for j in range(k):
            of_row -= a * log_rate[j] + prior * means[j]
        gain += of_row + k * (a * log(prior) - constant)
        for j in range(k):
            pushed += np.float64(means[j]) * q[j]
        for j in range(k):
            log_mean[j] = exp(log_mean[j] - log_rate[j])
        for j in range(k):
            geometric[u, j] = 0.0 if log_mean[j] < tiny else log_mean[j]
    return gain, pushed


@kernel
def multiplied(
    F: Array, P: Array, Q: Array, l1: float, l2: float, exponent: float, tiny: float, out: Array
) -> None:  # fmt: skip
    """F (P / (Q + l1 + l2 F))^exponent of a block of rows, see `solvers.multiplicative`; Q may have one row for all."""
    k = F.shape[1]
    ratio = np.empty(k)
    for u in range(len(F)):
        q, f, p = Q[min(u, len(Q) - 1)], F[u], P[u]
        for j in range(k):
            push = np.float64(q[j]) + l1 + l2 * f[j]
            ratio[j] = p[j] / push if push > 0 else 1.0
        if exponent == 0.5:
            for j in range(k):
                ratio[j] = np.sqrt(ratio[j])
        elif exponent != 1.0:
            for j in range(k):
                power = exp(exponent * log(max(ratio[j], _TINY)))
                ratio[j] = power if 0.0 < ratio[j] < np.inf else ratio[j]  # 0, infinity and NaN stay
        for j in range(k):
            ratio[j] *= f[j]
        for j in range(k):
            out[u, j] = 0.0 if ratio[j] < tiny else ratio[j]
