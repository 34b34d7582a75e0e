"""Predictions of trees."""

import numpy as np

from halfseen.arrays import Array
from halfseen.kernels import kernel


@kernel
def mean_of_trees(features: Array, numbers: Array, rights: Array, roots: Array, X: Array) -> Array:
    """Mean over the trees of the leaf that each row comes to; a row goes on to the next node up to the threshold."""
    means = np.zeros(len(X))
    for root in roots:
        for row in range(len(X)):
            node = root
            while features[node] >= 0:
                node = node + 1 if X[row, features[node]] <= numbers[node] else np.int64(rights[node])
            means[row] += numbers[node]
    return means / len(roots)
