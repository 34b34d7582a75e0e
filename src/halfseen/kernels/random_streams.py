"""Random numbers in compiled loops: a stream per row, so that draws do not depend on the number of threads.

By SplitMix64 (Steele, Lea and Flood 2014): a counter that rises by a fixed odd number, and a mixing of its bits.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]

#: By which the counter of a stream rises.
STRIDE = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53


@kernel
def mix_bits(bits: Any) -> Any:
    """Mix the bits of a 64-bit number."""
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    return bits ^ (bits >> _31)


@kernel
def start_stream(seed: Any, number: Any, stream: Array) -> None:
    """Start the stream of a number (such as that of a row) under a seed; `stream` holds the counter."""
    stream[0] = mix_bits(mix_bits(np.uint64(seed)) ^ (np.uint64(number) * STRIDE))


@kernel
def uniform(stream: Array) -> Any:
    """Next number of the stream, uniform in [0, 1)."""
    stream[0] += STRIDE
    return np.float64(mix_bits(stream[0]) >> _11) * _UNIT


@kernel
def fill_rows(seed: Any, call: Any, first: Any, out: Array) -> None:
    """Uniform numbers for rows from number `first` on, each from the stream of its row; calls have streams apart."""
    stream = np.empty(1, np.uint64)
    for u in range(out.shape[0]):
        start_stream(mix_bits(np.uint64(seed)) + np.uint64(call), first + u, stream)
        for j in range(out.shape[1]):
            out[u, j] = uniform(stream)


@kernel
def normal(stream: Array) -> Any:
    """Next number of the stream, standard normal (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(stream)))
    return radius * np.cos(2.0 * np.pi * uniform(stream))
