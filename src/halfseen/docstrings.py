"""Descriptions of parameters and attributes that recur, written once and inserted into docstrings.

A line `{max_iter}` of a docstring becomes the entry `max_iter` below, with its default from the signature. An entry
`tol:bound` is a variant of `tol`.
"""

import inspect
import re
from textwrap import indent
from typing import Any, TypeVar

ENTRIES = {
    "X": """X : array-like, sparse matrix, frame, path or Observed
    Dense array with NaN where nothing was observed; scipy sparse matrix; pandas, polars or Arrow frame, long or wide;
    path of a CSV or Parquet file; or what `halfseen.observe` made of one of these.""",
    "X:rows": """X : array-like, sparse matrix, frame, path, Observed or list of dict
    Rows over the columns of the fit, as for `fit`; or a list of dicts from column labels to values.""",
    "y": """y : None
    Ignored, for scikit-learn's pipelines.""",
    "cell_weight": """cell_weight : array-like, sparse matrix or str, default=None
    Weight of each observed cell: an array of X's shape, a sparse matrix that stores the same cells, a list in the
    order of the cells, or the name of a column of a long frame.""",
    "rows, cols": """rows, cols : label, or array-like of labels
    Pairs of rows and columns, by label, or by position if the data of the fit had no labels. One row may be paired
    with many columns, and one column with many rows.""",
    "rows, cols:or data": """rows : label, array-like of labels, or data
    Rows of the pairs, by label, or by position if the data of the fit had no labels. Without `cols`: data as for
    `transform`, whose rows are folded in.
cols : label or array-like of labels, default=None
    Columns of the pairs; one row may be paired with many columns, and one column with many rows.""",
    "n_components": """n_components : int, default={}
    Number of components.""",
    "max_iter": """max_iter : int, default={}
    Maximum number of iterations.""",
    "tol:bound": """tol : float, default={}
    Stop when an iteration raises the evidence lower bound by less than `tol` times its absolute value.""",
    "tol:loss": """tol : float, default={}
    Stop when an iteration lowers the loss by less than `tol` times the loss at the start.""",
    "accelerate": """accelerate : bool, default={}
    Extrapolate from the last iterations (momentum), and keep only what improves the objective: fewer iterations, and
    most often a better end.""",
    "init": """init : "random" or tuple of array-like, default={}
    Initial factors: random, or a pair of arrays (W0, H0).""",
    "init:gamma": """init : "random" or tuple of array-like, default={}
    Initial means: from Gamma(1, 1), or a pair of arrays (W0, H0).""",
    "random_state": """random_state : int, RandomState or None, default={}
    Seed of the random start. The same seed gives the same numbers for any number of threads.""",
    "random_state:draws": """random_state : int, RandomState or None, default={}
    Seed of the draws.""",
    "verbose": """verbose : int, default={}
    1 shows a progress bar on a terminal.""",
    "unseen": """unseen : {{"missing", "zero"}}, default={}
    Whether an unseen cell is missing and carries no information, or is an observed zero.""",
    "unseen:zero": """unseen : {{"zero", "missing"}}, default={}
    Whether an unseen cell is an observed zero, or is missing and carries no information.""",
    "engine": """engine : {{"cpu", "cuda", "dask"}}, default={}
    Where to compute: on the processors, on an NVIDIA GPU (`pip install 'halfseen[cuda]'`), or on the workers of a Dask
    cluster (`pip install 'halfseen[cluster]'`): those of the current client, or processes of this machine.""",
    "engine:cpu": """engine : {{"cpu"}}, default={}
    Where to compute.""",
    "n_jobs": """n_jobs : int or None, default={}
    Number of threads; None uses all processors.""",
    "checkpoint": """checkpoint : str, path-like, Checkpoint or None, default={}
    A folder to which the fit saves what it has reached, every minute or as a `Checkpoint` says: if it is killed, the
    same fit goes on from there, with the same numbers.""",
    "prior_shape": """prior_shape : float, default={}
    Shape of the gamma priors; below 1 it makes factors sparse.""",
    "prior_rate": """prior_rate : float or None, default={}
    Rate of the gamma priors; None learns one for every row and every column.""",
    "levels": """levels : array-like or None, default={}
    Levels from the lowest to the highest, numbers or text; None takes the distinct values of the data.""",
    "biases": """biases : bool, default={}
    Whether each row and each column has a bias.""",
    "l2": """l2 : float or None, default={}
    Prior exp(-l2 / 2 |w - centre|^2) on the rows of both factors, a third of it on biases. None takes it from the
    singular values of the slopes at x = 0: 0.6 times what noise adds to the first n_components + 1, on average, which
    is less the clearer the data are. Hold cells out to choose it.""",
    "centred": """centred : bool, default={}
    Whether l2 shrinks rows towards sqrt(3) e_1 and columns towards sqrt(3) e_2, where both have averages of their own
    for a third of the price, or towards 0, as plain ridges do. With few components and little noise, 0 may be
    better.""",
    "solver": """solver : {{"newton", "sgd"}}, default={}
    "newton": all cells at once, each row by a step of Newton's method; "sgd": single cells in random order.
learning_rate : float, default=0.3
    For "sgd": size of the first steps.
batch_size : int, default=4000
    For "sgd": number of cells at most between two evaluations of slopes.
n_init : int, default=1
    Number of random starts; the best run is kept.
early_stopping : bool, default=False
    Hold cells out of the fit, stop when their loss no longer falls, keep the best iteration.
validation_fraction : float, default=0.1
    Share of cells held out for early stopping.
n_iter_no_change : int, default=5
    Number of iterations without improvement before early stopping.""",
    "solver:gd": """solver : {{"newton", "sgd", "gd"}}, default={}
    "newton": all cells at once, each row by a step of Newton's method; "sgd": single cells in random order;
    "gd", the thesis's own: all cells at once by steps of constant length, from a start uniform in (-0.005, 0.005) and
    thresholds 0, 1, ..., which take a tenth of the step. It may diverge, and takes thousands of iterations.
learning_rate : float or None, default=None
    For "sgd": size of the first steps, None is 0.3. For "gd": factor of the gradient, None is 0.01.
batch_size : int, default=4000
    For "sgd": number of cells at most between two evaluations of slopes.
n_init : int, default=1
    Number of random starts; the best run is kept.
early_stopping : bool, default=False
    Hold cells out of the fit, stop when their loss no longer falls, keep the best iteration.
validation_fraction : float, default=0.1
    Share of cells held out for early stopping.
n_iter_no_change : int, default=5
    Number of iterations without improvement before early stopping.""",
    "accelerate:newton": """accelerate : bool, default={}
    For "newton": extrapolate from the last iterations (momentum), and keep only what improves the loss.""",
    "init:biases": """init : "random" or tuple of array-like, default={}
    Initial factors: random, or a pair of arrays (W0, H0), with the columns of biases or without.""",
    "W_, H_:biases": """W_, H_ : ndarray of shape (n_rows, n_components) and (n_columns, n_components)
    Factors, x = W_ H_^T; with biases two columns more, W_ = [w, b, 1] and H_ = [h, 1, c].
components_ : ndarray
    `H_` transposed.
row_biases_, column_biases_ : ndarray or None
    b and c; None without biases.""",
    "ordinal": """levels_ : ndarray of shape (n_levels,)
    Levels 0..N.
thresholds_ : ndarray of shape (n_levels - 1,)
    tau_1..tau_N, where x passes from level to level.
l2_ : float
    l2 of the fit.""",
    "ranking": """model : estimator, tuple of ndarray, ndarray or callable
    Fitted model, which ranks by W_u @ H_i; a pair (W, H); an array of scores, rows by columns; or a function from an
    array of positions of rows to their scores, a row each. All but a fitted model have the rows and columns of train,
    in their order. For instance, with `train = observe(...)`, popularity is
    `(np.ones((n, 1)), train.seen_per_column()[:, None])`.
train : data or None
    Cells seen in training, which are not ranked, as for `fit`; None: those that the model was fitted on.
test : data
    Cells to rank by, as for `fit`. Rows and columns are matched by label, where there are labels. Weights are not used.
    Where a dense array is read for a model with `unseen="zero"`, and only there, its zeros are unseen.""",
    "ranking lengths": """k : int or list of int, default=100
    Length of the ranking, or a list of lengths, from one ranking.""",
    "ranking thresholds": """relevant : float or array-like of float, default=1
    A column is relevant if its test value is at least this. A list of thresholds gives as many results, from one
    ranking.
n_jobs : int or None, default=None
    Number of threads; None: as the model has it, else all processors. The result is the same for any number.""",
    "value scores": """values, predictions : array-like
    Value of each cell, and what was predicted for it.
weights : array-like or None, default=None
    Weight of each cell.""",
    "level scores": """levels : array-like of shape (n_cells,)
    Level of each cell: its number from 0 on, or one of `labels`.
probabilities : array-like of shape (n_cells, n_levels)
    What `predict_proba` returns.""",
    "level labels": """labels : array-like of shape (n_levels,) or None, default=None
    Labels of the columns, ascending; None: 0, 1, ...
weights : array-like of shape (n_cells,) or None, default=None
    Weight of each cell.""",
    "W_, H_": """W_ : ndarray of shape (n_rows, n_components)
    Row factors.
H_ : ndarray of shape (n_columns, n_components)
    Column factors.
components_ : ndarray of shape (n_components, n_columns)
    `H_` transposed.""",
    "W_, H_:means": """W_ : ndarray of shape (n_rows, n_components)
    Posterior means of the row factors.
H_ : ndarray of shape (n_columns, n_components)
    Posterior means of the column factors.
components_ : ndarray of shape (n_components, n_columns)
    `H_` transposed.
W_shape_, W_rate_, H_shape_, H_rate_ : ndarray
    Shapes and rates of the gamma posteriors.""",
    "fit": """n_iter_ : int
    Number of iterations.
status_ : Status
    Why the iterations ended.
trace_ : dict of ndarray
    An entry per iteration: "objective" and "seconds".
model_ : FittedModel
    All that prediction needs, as a record that later changes of parameters do not touch.
n_features_in_ : int
    Number of columns.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of columns, if X is a wide table whose columns are all named by text.
row_labels_, column_labels_ : ndarray or None
    Labels of rows and columns, if the data had any.""",
}

_LINE = re.compile(r"^( *)\{([^{}\n]+)\}$", re.MULTILINE)

Documented = TypeVar("Documented", bound=Any)


def insert_parameters(documented: Documented) -> Documented:
    """Insert shared entries into the docstring of a class or function, and return it."""
    if documented.__doc__ is None:  # python -OO
        return documented
    parameters = inspect.signature(documented).parameters

    def entry(line: re.Match[str]) -> str:
        name = line[2].partition(":")[0]
        default = parameters[name].default if name in parameters else None
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        text = ENTRIES[line[2]]
        return indent(text.format(shown) if "{}" in text else text, line[1])

    documented.__doc__ = _LINE.sub(entry, documented.__doc__)
    return documented
