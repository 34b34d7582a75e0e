"""What a user passes to an estimator, as observed cells; scikit-learn's contract about columns and their names."""

import os
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, _check_n_features

from halfseen.arrays import Array
from halfseen.engines import open_engine
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.io import observe
from halfseen.io.partitioned import observe_files
from halfseen.io.reader import are_triples, with_holes
from halfseen.io.schema import ReadOptions, spelled_long
from halfseen.io.sources import as_frame, frame_table
from halfseen.io.tables import MatrixSource
from halfseen.io.wide import find_row_names
from halfseen.labels import WHOLE_FLOAT, Index, exact_integers, is_plain_integer, quoted, text_array, uniform
from halfseen.observed import Observed

Shape = tuple[int, ...]
#: A matrix with missing cells: array, sparse matrix, frame, path, list of triples, or what was read of one.
Data: TypeAlias = MatrixSource | Observed
#: Labels of rows or columns, or their positions; one or many.
Labels: TypeAlias = Hashable | ArrayLike
Seed: TypeAlias = int | np.random.RandomState | None

#: Largest number in a sparse matrix of features.
LARGEST_FEATURE = 1e100


def observe_for_fit(
    X: Any, unseen: str, cell_weight: Any, levels: Any, engine: str = "cpu", folder: Any = None
) -> Observed:
    """Observed cells of training data, as `unseen` and `levels` of the estimator say.

    With Dask, long files are read in parts, on the workers of the current client; the cells stay in files of a folder.
    """
    _check_zeros(X, unseen)
    options = {"unseen": unseen, "cell_weight": cell_weight, "levels": levels}
    if engine == "dask" and isinstance(X, str | os.PathLike):
        open_engine(engine)  # refused where there is no Dask
        from halfseen.engines.cluster import on_dask

        return observe_files(X, **on_dask(folder), **options)
    return observe(X, **options)


def feature_attributes(X: Any, count: int) -> dict[str, Any]:
    """n_features_in_ and, where columns have names, feature_names_in_, as scikit-learn has them."""
    attributes = SimpleNamespace(n_features_in_=count)
    if not isinstance(X, np.ndarray) and _kind_of(X) == "features":  # an array has no names to keep
        _check_feature_names(attributes, X, reset=True)
    return vars(attributes)


def keep(estimator: Any, attributes: dict[str, Any]) -> None:
    """Set fitted attributes, in the place of those of an earlier fit."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)
    for name, value in attributes.items():
        setattr(estimator, name, value)


def observe_rows(
    estimator: Any,
    X: Any,
    *,
    cell_weight: Any = None,
    unseen: str | None = None,
    allow_empty: bool = True,
    on_unknown: Callable[[Array, int], None] | None = None,
) -> Observed:
    """New rows over the columns of the fit: matched by label where X has labels, else by position.

    Unknown columns are refused, or left out and passed to `on_unknown`, with the number of their cells.
    """
    model = estimator.model_
    labels = model.labels.column_labels
    _check_zeros(X, model.unseen)
    options: dict[str, Any] = {"unseen": unseen or model.unseen, "allow_empty": allow_empty}
    levels = options["levels"] = model.levels_to_read
    if is_list_of_histories(X):
        observed: Observed = model.read_histories(X, allow_empty=allow_empty)[0]
        return observed if observed.unseen == options["unseen"] else replace(observed, unseen=options["unseen"])
    options["cell_weight"], options["on_unknown"] = cell_weight, on_unknown
    kind = _kind_of(X)
    if kind == "features" and (hasattr(estimator, "feature_names_in_") or labels is None):
        _check_feature_names(estimator, X, reset=False)
    is_triples = are_triples(X, ReadOptions(levels=levels))
    has_names = X.column_labels is not None if isinstance(X, Observed) else kind != "features" or _is_table(X)
    if (is_triples or has_names) and labels is not None:
        return observe(X, column_labels=labels, **options)
    if is_triples or kind == "long":  # a fit without labels counts its columns
        return observe(X, column_labels=np.arange(model.shape[1]), **options)
    observed = observe(X, **options)
    if observed.shape[1] != model.shape[1]:
        # scikit-learn's own sentence, which its estimator checks ask for, and what to do
        try:
            _check_n_features(estimator, np.empty((1, observed.shape[1])), reset=False)
        except ValueError as error:
            raise DataError(
                str(error), remedy="Pass rows with the columns of the fit; NaN where a cell is unseen.", parameter="X"
            ) from None
    return observed


def _check_zeros(X: Any, unseen: str) -> None:
    if isinstance(X, Observed) and X.unseen == "zero" and unseen == "missing":
        raise ParameterError(
            'What was observed with `unseen="zero"` has left zeros out, so it must be fitted so.',
            found='a model with unseen="missing"',
            remedy='Set `unseen="zero"` in the model, or observe again with `unseen="missing"`.',
            parameter="unseen",
        )


def warn_if_zeros_are_missing(X: Any, observed: Observed, stacklevel: int) -> None:
    """Warn where unseen cells, which are missing by default, are likely to be meant as zeros.

    That is where all cells that are seen have the same value, as pairs without values have; and in sparse matrices of
    counts above 0, whose unstored cells are zeros to most libraries; not where a long table holds stars from 1 to 5.
    """
    values, is_sparse = observed.values, sparse.issparse(X)
    is_whole = observed.nnz == observed.shape[0] * observed.shape[1]
    is_dense = not is_sparse and observed.row_labels is None and _kind_of(X) == "features"
    if observed.unseen != "missing" or is_whole or is_dense:
        return
    if observed.nnz > 1 and values.min() == values.max() and values[0] > 0:
        must, found = "Cells that are seen should differ, or unseen ones be zeros.", f"nothing but {values[0]:g}"
        remedy = (
            'As unseen cells are missing, about that is predicted everywhere. Pass `unseen="zero"` to learn from them.'
        )
    elif is_sparse and values.min(initial=1.0) > 0 and np.array_equal(values, np.floor(values)):
        must = "A sparse matrix of counts should hold zeros, if some are known."
        found = "only counts above 0"
        remedy = (
            "Cells that are not stored are missing here, not zeros as in scikit-learn's NMF. "
            'Pass `unseen="zero"` if they are zeros, or store a zero that was seen.'
        )
    else:
        return
    warnings.warn(DataWarning(must, found=found, remedy=remedy), stacklevel=stacklevel)


def with_row_labels(estimator: Any, X: Any, observed: Observed, W: Array) -> Any:
    """W as it is; for a long frame, if scikit-learn's `set_output` asks for pandas, with an index of its own.

    scikit-learn would take the index of X, which has a line for every cell.
    """
    if _kind_of(X) != "long" or _get_output_config("transform", estimator)["dense"] != "pandas":
        return W
    import pandas as pd

    return pd.DataFrame(W, index=observed.row_labels)


def is_list_of_histories(X: Any) -> bool:
    """Whether X is a list of dicts, each from column labels to values."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(history, dict) for history in X)


def is_row_data(rows: Any) -> bool:
    """Whether rows are data to be folded in, rather than labels of rows of the fit."""
    if isinstance(rows, Observed | dict) or is_list_of_histories(rows) or as_frame(rows) is not None:
        return True
    if isinstance(rows, list | tuple) and len(rows) > 0:
        return isinstance(rows[0], list | tuple | np.ndarray | dict)
    return getattr(rows, "ndim", 1) == 2


def observe_histories(estimator: Any, X: Any, strict: bool) -> tuple[Observed, list[DataWarning]]:
    """Histories of new rows over the columns of the fit; unless `strict`, unknown columns are left out, with a note."""
    model, notes = estimator.model_, []
    if isinstance(X, dict) or is_list_of_histories(X):
        observed: Observed
        observed, notes = model.read_histories([X] if isinstance(X, dict) else X, strict)
        return observed, notes

    def leave_out(labels: Array, n_cells: int) -> None:
        notes.append(
            DataWarning(
                f"Columns of histories should be among the {model.shape[1]} that were fitted.",
                found=f"{labels.size} that are not, the first {quoted(labels[0])}",
                remedy=f"Their cells were left out, {n_cells} in all. `strict=True` refuses them.",
            )
        )

    observed = observe_rows(estimator, X, on_unknown=None if strict else leave_out)
    return observed, notes


def warn_of(notes: Iterable[DataWarning]) -> None:
    """Warn the user of what was left out, at the call of a method of an estimator."""
    for note in notes:
        warnings.warn(note, stacklevel=3)


def _kind_of(X: Any) -> str:
    """What the columns of X are: "features", as of arrays, sparse matrices and wide frames of nothing but numbers;
    "long" for long frames; "other" for files, streams, an `Observed`, and wide frames that name their rows."""
    if isinstance(X, Observed | str | os.PathLike):
        return "other"
    frame = as_frame(X)
    if frame is None:
        return "other" if _is_table(X) else "features"
    if spelled_long(frame.columns, lambda _: False) is not None:
        return "long"
    only_numbers = all(dtype.is_numeric() for dtype in frame.schema.dtypes())
    names_rows = find_row_names(frame_table(frame), ReadOptions()).in_first_column
    return "features" if only_numbers and not names_rows else "other"


def _is_table(X: Any) -> bool:
    """Whether X is a frame or a stream, whose columns have names."""
    return not isinstance(X, np.ndarray | list | tuple) and (
        hasattr(X, "__arrow_c_stream__") or as_frame(X) is not None
    )


def observe_features(features: Any, labels: Array | None, count: int, parameter: str) -> sparse.csr_array:
    """Features of rows or columns as a sparse array, a row for each of the `count` rows or columns.

    Numbers other than 0 and 1 are standardised, but for those of a sparse matrix; each word of a column of words, or of
    lists of words, is a feature of its own. Where rows (or columns) have labels, a frame is matched by its first
    column, or by its index if that has a name and at least as many known labels; those that it does not list have no
    features. All else is matched by position.
    """
    frame, side = as_frame(features), parameter.removesuffix("_features")
    if frame is None:
        is_sparse = sparse.issparse(features)
        try:
            matrix: Any = (
                sparse.csr_array(features, dtype=np.float64, copy=True)
                if is_sparse
                else np.asarray(features, np.float64)
            )
        except (TypeError, ValueError):
            matrix = np.empty(0)
        if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0:
            raise DataError(
                f"must be a frame, or a matrix of numbers with a row for each of the {count} that were fitted.",
                parameter=parameter,
                found=f"shape {matrix.shape}" if matrix.size or is_sparse else type(features).__name__,
                remedy="Use a frame whose first column has the labels, if there are labels.",
            )
        if is_sparse:
            matrix.sum_duplicates()
        numbers: Array = matrix.data if is_sparse else matrix
        if not np.isfinite(numbers).all():
            found = f"{numbers[~np.isfinite(numbers)][0]}"
            raise DataError("must be finite.", parameter=parameter, found=found, remedy="Fill the holes.")
        if is_sparse and np.abs(numbers).max(initial=0.0) > LARGEST_FEATURE:  # whose squares would overflow
            raise DataError(
                f"must hold no number beyond {LARGEST_FEATURE:g}.",
                parameter=parameter,
                found=f"{np.abs(numbers).max():g}",
                remedy="Scale the features.",
            )
        return matrix if is_sparse else sparse.csr_array(np.column_stack([standardised(one) for one in matrix.T]))

    if labels is None and len(frame) != count:
        raise DataError(
            f"must have a line for each of the {count} that were fitted.",
            parameter=parameter,
            found=f"{len(frame)} lines",
            remedy="List them in their order. Lines are matched by label only where the data have labels.",
        )
    names, places = frame.columns, np.arange(len(frame))
    if labels is not None:
        places, names, _ = match_lines(frame, labels, side)
    listed = places[places >= 0]
    n_different = np.unique(listed).size
    if n_different != listed.size or not listed.size:
        raise DataError(
            f"must list {side}s of the data in its first column, each at most once.",
            parameter=parameter,
            found=f"{len(frame)} lines, {listed.size} of them with known labels, {n_different} different",
            remedy="Drop repeated lines, and check the labels. If they are in the index, use `reset_index()`.",
        )

    # a block of features for each column of the frame
    blocks: list[Any] = []
    for name in names:
        column = frame.get_column(name)
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            values = column.cast(nw.Float64).to_numpy().astype(np.float64)[places >= 0]
            if np.isinf(values).any():
                raise DataError(
                    "must be finite.",
                    parameter=parameter,
                    found=f"{values[np.isinf(values)][0]}",
                    where=f"in column {name!r}",
                    remedy="Use None where a number is unknown.",
                )
            if not np.isnan(values).all():
                cells = (standardised(values), (listed, np.zeros(listed.size, int)))
                blocks.append(sparse.csr_array(cells, (count, 1)))
        else:
            cells_of_lines = zip(places.tolist(), column.is_null().to_list(), column.to_list(), strict=True)
            words = [
                (place, word)
                for place, is_missing, cell in cells_of_lines
                if place >= 0 and not is_missing
                for word in {
                    str(one) for one in (cell if isinstance(cell, list | tuple | set | np.ndarray) else [cell])
                }
            ]
            if words:
                distinct, which = np.unique([word for _, word in words], return_inverse=True)
                cells = (np.ones(which.size), (np.array([place for place, _ in words]), which))
                blocks.append(sparse.csr_array(cells, (count, distinct.size)))
    if not blocks:
        raise DataError(
            "must have a feature with a known value, beside labels.",
            parameter=parameter,
            found="nothing but missing values" if names else "no other column",
            remedy="Add a column of numbers or words.",
        )
    if listed.size < count:
        unknown = len(frame) - listed.size
        lines = "line with an unknown label" if unknown == 1 else "lines with unknown labels"
        more = f", and {unknown} {lines}" if unknown else ""
        warning = DataWarning(
            f"Every {side} should have features.",
            found=f"features for {listed.size} of {count} {side}s{more}",
            remedy="The others are fitted as if all their features were 0. Check the labels, or add lines.",
            parameter=parameter,
        )
        warnings.warn(warning, stacklevel=6)
    return sparse.csr_array(sparse.hstack(blocks, format="csr"))


def match_lines(frame: Any, labels: Array, side: str) -> tuple[Array, list[str], Array]:
    """The row (or column) that each line of a frame is about, -1 if none; the frame's other columns; the labels in it.

    Labels are in its first column, or in an index that has a name and at least as many of them.
    """
    known, index, names = Index(labels), nw.maybe_get_index(frame), frame.columns
    candidates = [(frame.get_column(names[0]).to_list(), names[1:])] if names else []
    if index is not None and index.name is not None:
        candidates.append((index.tolist(), names))
    best, most = (np.full(len(frame), -1), names, labels[:0]), 0
    for ids, beside in candidates:
        try:
            listed = uniform(ids, side)
        except DataError:  # not labels, unless there is nothing else
            if len(candidates) == 1:
                raise
            continue
        places = known.find(listed)
        n_known = int(np.sum(places >= 0))
        if n_known >= most:
            best, most = (places, beside, listed), n_known
    return best


def add_listed(observed: Observed, features: Any, side: str) -> Observed:
    """With rows (or columns) without a cell for the labels that only a frame of their features lists."""
    frame, labels = as_frame(features), observed.row_labels if side == "row" else observed.column_labels
    if frame is None or labels is None:
        return observed
    places, _, listed = match_lines(frame, labels, side)
    new = np.unique(listed[places < 0]) if (places >= 0).any() else labels[:0]
    kinds = labels.dtype.kind, new.dtype.kind
    if kinds[0] == "O" and kinds[1] in "iu":
        new = text_array(new)
    elif kinds[0] in "iu" and kinds[1] in "Of":  # what is no whole number is no label of these data
        texts = [WHOLE_FLOAT.sub(r"\1", str(label)) for label in new]
        new = exact_integers([int(text) for text in texts if is_plain_integer(text)], side)
    elif kinds[0] == "f" and kinds[1] in "iu":
        new = new.astype(np.float64)
    elif set(kinds) not in ({"i"}, {"u"}, {"i", "u"}, {"f"}, {"M"}, {"O"}):
        return observed
    if not new.size:
        return observed
    both = np.concatenate([labels, new])
    if both.dtype.kind == "f" != labels.dtype.kind:  # NumPy would round
        both = exact_integers([*labels.tolist(), *new.tolist()], side)
    labels, (n, m) = both, observed.shape
    if side == "column":
        return replace(observed, shape=(n, m + new.size), column_labels=labels)
    indptr = np.append(observed.indptr, np.full(new.size, observed.indptr[-1]))
    return replace(observed, indptr=indptr, shape=(n + new.size, m), row_labels=labels)


def standardised(values: Array) -> Array:
    """Numbers with mean 0 and deviation 1, unless they are 0 and 1; holes are at the mean. All 0 if all are equal."""
    known = values[np.isfinite(values)]
    if np.isin(known, (0.0, 1.0)).all():
        return np.nan_to_num(values, nan=0.0)
    if known.min() == known.max():  # their mean need not be the same to the last digit
        return np.zeros_like(values)
    exponent = np.frexp(np.abs(known).max())[1]  # squares neither overflow nor vanish
    values, known = np.ldexp(values, -exponent), np.ldexp(known, -exponent)
    deviation = known.std()
    return np.nan_to_num((values - known.mean()) / (deviation if deviation > 0 else 1.0), nan=0.0)


# ---------------------------------------------------------------------------------------------------------------------
# tensors, as matrices whose rows are those of the first axis and whose columns are the cells of all others


def unfold_tensor(X: Any, cell_weight: Any = None) -> tuple[Any, Any, Shape | None]:
    """A tensor and its weights as matrices, and the shape of their rows; anything else as it is, and None."""
    if isinstance(X, list | tuple):
        is_tensor = bool(X) and isinstance(X[0], list | tuple | np.ndarray) and np.ndim(X[0][:1]) > 1
    else:
        is_tensor = isinstance(X, np.ndarray) and X.ndim > 2 and not sparse.issparse(X)
    if not is_tensor:
        return X, cell_weight, None
    values = with_holes(X, _as_array(X))
    _check_tensor(values)
    if cell_weight is not None:
        cell_weight = np.asarray(cell_weight)
        if cell_weight.shape != values.shape:
            raise DataError(
                f"must have the shape of X, {values.shape}.",
                parameter="cell_weight",
                found=f"{cell_weight.shape}",
                remedy="Pass a weight for each cell.",
            )
        cell_weight = cell_weight.reshape(len(cell_weight), -1)
    return values.reshape(len(values), -1), cell_weight, values.shape[1:]


def unfold_rows(X: Any, inner_shape: Shape | None, cell_weight: Any = None) -> tuple[Any, Any]:
    """New rows for a model and their weights: for that of a tensor, arrays whose rows have the fitted shape."""
    if inner_shape is None:
        return X, cell_weight
    shape = np.shape(_as_array(X))
    if shape[1:] != inner_shape:
        raise DataError(
            f"must have rows of the shape that was fitted, {inner_shape}.",
            parameter="X",
            found=f"an X of shape {shape}",
            remedy="Pass an array with these axes; NaN where a cell is unseen.",
        )
    return unfold_tensor(X, cell_weight)[:2]


def columns_of_axes(positions: tuple[Any, ...], inner_shape: Shape) -> Array:
    """Columns of cells given by their positions along all axes but the first."""
    if len(positions) != len(inner_shape):
        raise ParameterError(
            f"predict must be given a position on each of the {len(inner_shape) + 1} axes.",
            found=f"{len(positions) + 1}",
            remedy="Call predict(i, j, k, ...).",
        )
    try:
        return np.ravel_multi_index(np.broadcast_arrays(*positions), inner_shape)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Positions must be whole numbers within the fitted axes, of lengths {inner_shape} after the first.",
            found=f"others: {error}",
            remedy="Count from 0.",
        ) from None


def _as_array(X: Any) -> Array:
    try:
        return np.asarray(X)
    except ValueError:
        raise DataError(
            "The rows of X along every axis must be lists of one length.",
            found="different lengths",
            remedy="Fill them up.",
            parameter="X",
        ) from None


def _check_tensor(values: Array) -> None:
    if values.size == 0:
        raise DataError(
            "Every axis of X must have a length of 1 or more.", found=f"shape {values.shape}", remedy="Drop the axis."
        )
    with np.errstate(invalid="ignore"):
        low, high = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    if low > high:
        raise DataError(
            "At least one cell must be seen.", found=f"none in shape {values.shape}", remedy="Check the data."
        )
    for bad, must, remedy in (
        (np.isinf, "finite", "Replace it by NaN if it is unknown."),
        (lambda values: values < 0, "0 or larger under the Kullback-Leibler loss", "Shift or drop it."),
    ):
        wrong = bad(values) if must == "finite" or low < 0 else np.zeros(1, bool)
        if wrong.any():
            first = np.unravel_index(int(np.argmax(wrong)), values.shape)
            raise DataError(
                f"Values must be {must}.",
                found=f"{values[first]:g}",
                where=f"at position ({', '.join(str(int(position)) for position in first)})",
                remedy=remedy,
            )
