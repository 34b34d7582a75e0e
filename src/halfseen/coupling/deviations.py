"""How a question's answers hang on their ranks: the weights w of the error bound, exactly."""

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Block, Threads, row_blocks

#: Answers a block of rows: below this, a second thread does not pay.
_ANSWERS_PER_BLOCK = 1 << 16


def error_weights(answers: Array, answer_indptr: Array, threads: Threads) -> tuple[Array, Array]:
    """w_i = argmin over w >= 0 of  Err_i(w) = mean over the answers x of row i of |x - 2 w_1 F(x) - 2 w_2 (1 - F(x))|,

    F the row's empirical distribution function: the bound of Theorem 4.2 (Eq. 3) as section 4.3 estimates it. It is a
    line in F of least absolute deviations, found without an optimiser. Where only one answer is known, any number of
    times, every line through it is best, and the flat one is taken: w_1 = w_2 = x / 2.

    The answers must rise inside each row, `answers[answer_indptr[i]:answer_indptr[i + 1]]`. Returns w, shape (n, 2),
    and Err_i(w_i). Both are NaN for a row without answers: whoever calls must put something there, such as the mean of
    the other rows.
    """
    from halfseen.kernels.deviations import lines

    ends, errors = np.empty((answer_indptr.size - 1, 2)), np.empty(answer_indptr.size - 1)

    def block(part: Block) -> None:
        rows, pointers, _ = part
        lines(answer_indptr[pointers], answers, ends[rows], errors[rows])

    threads.all(block, row_blocks(answer_indptr, _ANSWERS_PER_BLOCK))
    return np.ascontiguousarray(ends[:, ::-1]) / 2.0, errors
