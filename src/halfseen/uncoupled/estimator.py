"""Factorization of uncoupled data: the questions asked and the answers given are known, but not whose they are."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from halfseen import checkpoint as checkpoints
from halfseen import validation
from halfseen.archive import save_model
from halfseen.arrays import Array
from halfseen.checkpoint import Checkpoint
from halfseen.docstrings import insert_parameters
from halfseen.encoders import Encoder
from halfseen.engines import RULES as ENGINE_RULES
from halfseen.engines import check_is_cpu
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.base import MAX_COMPLETED_CELLS, fitted
from halfseen.fitting import warn_if_not_converged
from halfseen.io.tables import FilePath
from halfseen.labels import Index
from halfseen.likelihoods import likelihood_for
from halfseen.model import Fit, FittedModel, Interval
from halfseen.ranking import Seen
from halfseen.sampling.coupling import SCALES
from halfseen.sampling.markov_chains import Mixing
from halfseen.uncoupled.collection import Uncoupled
from halfseen.uncoupled.posterior import (
    AnyCoupling,
    Posterior,
    SampledCoupling,
    check_array,
    from_state,
    to_state,
)
from halfseen.uncoupled.pseudo_observations import fit_by_loop
from halfseen.uncoupled.sampler import fit_by_sampling


class Coupling(NamedTuple):
    """The most likely answer of every asked cell, in the order of questions and respondents.

    An answer that was certainly lost is NaN. `pandas.DataFrame(m.coupling()._asdict())` is a table.
    """

    row: Array
    """Row of the cell: its label, or its position where rows have none."""
    column: Array
    """Column of the cell, likewise."""
    answer: Array
    """Most likely answer."""
    probability: Array
    """Probability of this answer."""
    mean: Array
    """Posterior mean of the cell."""


@insert_parameters
class UncoupledNMF(CallbackSupportMixin, BaseEstimator):
    """A matrix as W H^T when values and indices were collected apart, with the help of comparisons.

    Given are who was asked which question, the answers to each question without the names, and some comparisons
    (`halfseen.Uncoupled`). Cells that were not asked are missing (unseen="missing"). Four methods:

    "gibbs" samples who gave which answer together with the factors. With x_ij the answers of question i in an unknown
    order,

        x_ij ~ N(a_i . b_j, rho_i s_j^2),    p(order) falls by exp(-trust) with every violated comparison,

    normal priors with Normal-Wishart hyper-priors for a_i and b_j, inverse-gamma ones for the noise variances of rows
    and of columns. It gives intervals and the risk that an answer is disclosed. `W_` and `H_` are then a non-negative
    factorization of the posterior mean.

    "unmf" is the method of Kohjima [1]_: a non-negative factorization of the pseudo-observations of Eq. 4, by Eq. 5
    (squared error) or Eq. 6 (Kullback-Leibler). "bayes" is its Kullback-Leibler version with gamma priors. "decode"
    factorizes the answers at each cell's share of won comparisons, (wins + 1) / (comparisons + 2).

    Callbacks (`set_callbacks`) are called after every iteration, which for "gibbs" is a sweep. The model that they see
    then predicts by the draws so far; its `W_` and `H_` are those of the last draw, in k + 1 components of any sign (in
    units of each question k + 2), because the factorization of the posterior mean takes longer than a sweep, and comes
    at the end.

    Parameters
    ----------
    n_components : int or "auto", default=5
        Number of components k. "auto", for "gibbs", chooses it from 1 to 8: a tenth of the compared pairs are hidden,
        and of the numbers that predict which of the two is above about as well as the best (within one standard error
        of the log-score), the smallest is taken.
    method : {"gibbs", "unmf", "bayes", "decode"}, default="gibbs"
        How to fit.
    loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, default="frobenius"
        Loss of "unmf" and "decode"; a number is the beta of a beta divergence.
    balance : {"zero", "half", "full"}, float or array-like of shape (n_questions,), default="full"
        lambda of Eq. 4, for "unmf" and "bayes": "zero" or "half" of w_1 + w_2 as in the paper, "full" of it, or
        numbers. With "full" a cell that was never compared counts as its question's mean.
    scale : {"auto", "all", "question"}, default="auto"
        Units of the answers, for "gibbs": "all" divides all answers by their common standard deviation; "question" each
        question's by its own, for questions in different units, such as ages and incomes, and samples how uncertain
        that and the question's mean are; "auto" does the latter where deviations of questions are far apart: nine
        tenths of them span more than sevenfold, beyond chance.
    trust : float, default=12.0
        Trust in a comparison, for "gibbs": a violated one makes a coupling exp(trust) times less likely.
    n_sweeps, n_burn : int, default=300 and 100
        Number of sweeps of each chain, and of those discarded at the start, for "gibbs".
    max_sweeps : int or None, default=None
        Chains that have not mixed after n_sweeps go on for as many again, up to max_sweeps; None: twice n_sweeps.
        The share that is discarded stays. Not above n_sweeps, chains end after n_sweeps.
    n_chains : int, default=2
        Number of chains, which run side by side, for "gibbs".
    n_draws : int, default=100
        Number of draws kept of all chains together, at least one per chain, for means, intervals and risks.
    prior_shape, prior_rate : float, default=1.0
        Gamma priors, for "bayes"; a rate of None learns one for every row and every column.
    max_iter, tol : int and float, default=500 and 1e-5
        Stop after max_iter iterations, or when one changes the objective by less than tol; not for the sweeps.
    init : "random" or tuple of two array-likes, default="random"
        Start (W0, H0), W0 with a row for each row of the matrix; not for "gibbs".
    random_state : int, RandomState or None, default=None
        Random seed; the same seed gives the same numbers whatever the number of threads.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    engine : {"cpu"}, default="cpu"
        Where to compute.
    n_jobs : int or None, default=None
        Number of threads; None uses all processors.
    {checkpoint}

    Attributes
    ----------
    W_ : ndarray of shape (n, k)
        Factor of the rows.
    H_ : ndarray of shape (m, k)
        Factor of the columns; components_ is its transpose.
    n_components_ : int
        Number of components.
    n_iter_ : int
        Number of iterations or sweeps (of each chain).
    status_ : Status
        Why the fit ended.
    trace_ : dict of ndarray
        An entry per iteration: "objective" and "seconds"; for "gibbs" also "violated" comparisons, "noise" (a cell's
        typical deviation) and "spread" (that of the means), in units of `scale`.
    diagnostics_ : dict of Mixing
        For "gibbs", mean, split R-hat over all chains and effective number of draws of some quantities; of "predicted
        cells", up to 20, and of the "noise of cells", their standard deviations, the values that nine of ten do not
        exceed, or do not fall below. These two decide between the statuses SAMPLED and UNMIXED.
    n_clipped_ : int
        Number of pseudo-observations, or posterior means, that were below 0 and counted as 0.
    w_, balance_ : ndarray of shape (n_questions, 2) and (n_questions,)
        w_i and lambda_i of each question, for "unmf" and "bayes". Of all best w_i, that with the lowest |w_i1 - w_i2|.
    error_bounds_ : ndarray of shape (n_questions,)
        Err_i(w_i) of Eq. 3, for "unmf" and "bayes": how far the answers x of a question are on average from
        2 w_i1 F(x) + 2 w_i2 (1 - F(x)), in their units; 0 if they are uniformly distributed. By Theorem 4.2 the loss
        of a question is approximated to within M Err_i, M the largest |psi(x)| (|x| for the squared error). NaN for
        questions without answers.
    row_labels_, column_labels_ : ndarray or None
        Labels of rows and columns, if there were any.
    questions_are_ : {"rows", "columns"}
        What questions are in the matrix.
    asked_ : AskedCells
        Cells that were asked.
    posterior_ : SampledCoupling, AnyCoupling or None
        Posterior of "gibbs", questions as rows; without comparisons, `AnyCoupling`. None for the other methods.

    References
    ----------
    .. [1] M. Kohjima, "Uncoupled nonnegative matrix factorization with pairwise comparison data", ICTIR 2022.

    Examples
    --------
    >>> import halfseen as hs
    >>> asked = [(what, who) for what in ("rent", "food") for who in ("ann", "bob", "cy")]
    >>> answers = [("rent", 640), ("rent", 820), ("rent", 990), ("food", 310), ("food", 350), ("food", 420)]
    >>> collected = hs.Uncoupled(asked, answers, [("rent", "cy", "ann"), ("rent", "bob", "ann"), ("food", "cy", "bob")])
    >>> model = hs.UncoupledNMF(n_components=1, n_sweeps=1000, random_state=0).fit(collected)
    >>> round(float(model.predict("rent", "ann")))  # both others are above ann
    640
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "n_components": validation.or_else(validation.whole(1, validation.MOST_COMPONENTS), "auto"),
        "method": validation.one_of("gibbs", "unmf", "bayes", "decode"),
        "scale": validation.one_of(*SCALES),
        "trust": validation.number(0.0, above=True),
        "n_sweeps": validation.whole(1),
        "n_burn": validation.whole(0),
        "max_sweeps": validation.or_else(validation.whole(1), None),
        "n_chains": validation.whole(1),
        "n_draws": validation.whole(1),
        "prior_shape": validation.number(0.0, above=True),
        "prior_rate": validation.number(0.0, above=True, or_none=True),
        "max_iter": validation.whole(1),
        "tol": validation.number(0.0),
        "init": validation.start("random"),
        "random_state": validation.seed(),
        "checkpoint": checkpoints.rule,
        **ENGINE_RULES,
    }
    #: Neither levels nor a likelihood of cells: see `BaseFactorization.offers`.
    offers: ClassVar[frozenset[str]] = frozenset()
    #: Class of `model_`, and the type of `_more_state`, for files.
    record: ClassVar[type[FittedModel]] = FittedModel
    more_state: ClassVar[type] = dict

    def __init__(
        self,
        n_components: int | str = 5,
        *,
        method: str = "gibbs",
        loss: str | float = "frobenius",
        balance: str | ArrayLike = "full",
        scale: str = "auto",
        trust: float = 12.0,
        n_sweeps: int = 300,
        n_burn: int = 100,
        max_sweeps: int | None = None,
        n_chains: int = 2,
        n_draws: int = 100,
        prior_shape: float = 1.0,
        prior_rate: float | None = 1.0,
        max_iter: int = 500,
        tol: float = 1e-5,
        init: str | tuple[ArrayLike, ArrayLike] = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: str = "cpu",
        n_jobs: int | None = None,
        checkpoint: FilePath | Checkpoint | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.loss = loss
        self.balance = balance
        self.scale = scale
        self.trust = trust
        self.n_sweeps = n_sweeps
        self.n_burn = n_burn
        self.max_sweeps = max_sweeps
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.prior_shape = prior_shape
        self.prior_rate = prior_rate
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint

    W_ = fitted(lambda model: model.W, "Row factors, of shape (n_rows, n_components).")
    H_ = fitted(lambda model: model.H, "Column factors, of shape (n_columns, n_components).")
    components_ = fitted(lambda model: model.H.T, "`H_` transposed, as scikit-learn has it.")
    row_labels_ = fitted(lambda model: model.labels.row_labels, "Labels of rows, None without any.")
    column_labels_ = fitted(lambda model: model.labels.column_labels, "Labels of columns, None without any.")
    n_components_ = fitted(lambda model: model.H.shape[1], "Number of components.")
    seen_ = fitted(lambda model: model.seen, "Cells that were asked.")

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; an unknown name is answered with the one probably meant.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator.
        """
        validation.check_names(params, self.get_params(deep=False), type(self).__name__)
        super().set_params(**params)
        return self

    @with_callbacks
    def fit(self, X: Uncoupled, y: None = None) -> Self:
        """Find W and H, and with method="gibbs" who gave which answer.

        Parameters
        ----------
        X : Uncoupled
            The collection.
        y : None
            Ignored, for scikit-learn's conventions.
        """
        validation.check_parameters(self.get_params(deep=False), self.parameter_rules)
        check_is_cpu(self.engine, type(self).__name__)
        seen = _check_collection(X)
        if self.method == "gibbs" and self.n_burn >= self.n_sweeps:
            must, remedy = "must be below `n_sweeps`, so that some sweeps are kept.", "Discard fewer, or draw more."
            found = f"{self.n_burn} of {self.n_sweeps} sweeps"
            raise ParameterError(must, found=found, remedy=remedy, parameter="n_burn")
        if self.method != "gibbs" and self.n_components == "auto":
            must, remedy = 'must be a number unless `method="gibbs"`, which alone predicts comparisons.', "Choose one."
            raise ParameterError(must, found="'auto'", remedy=remedy, parameter="n_components")
        likelihood_for(self.loss)  # also where the method does not use it: it was meant to be something
        questions, respondents = seen.question_labels, seen.respondent_labels
        index = (
            None if questions is None else Index(questions),
            None if respondents is None else Index(respondents),
        )
        asked = seen.asked_cells
        indptr, indices = asked.indptr, asked.respondents
        is_upright = seen.questions_are == "rows"
        if not is_upright:  # labels and asked cells as the rows of the matrix have them
            index = index[::-1]
            order = np.argsort(indices, kind="stable")
            counts = np.bincount(indices, minlength=seen.n_respondents)
            indptr, indices = np.append(0, np.cumsum(counts)), asked.rows()[order]
        cells, fingerprint = Seen(indptr, indices, seen.shape[1]), seen.fingerprint()

        def attributes(fit: Fit, n_clipped: int, posterior: Posterior | None, **further: Any) -> dict[str, Any]:
            """Fitted attributes; the fit has questions as rows, whatever they are in the matrix."""
            factors = (fit.rows, fit.columns) if is_upright else (fit.columns, fit.rows)
            likelihood = likelihood_for("frobenius") if fit.likelihood is None else fit.likelihood
            return {
                "model_": FittedModel(*factors, likelihood, Encoder(), index, cells, "missing", None, fingerprint),
                "trace_": dict(fit.trace),
                "status_": fit.status,
                "n_iter_": fit.n_iter,
                "questions_are_": seen.questions_are,
                "n_clipped_": n_clipped,
                "posterior_": posterior,
                "asked_": asked,
                "n_features_in_": seen.shape[1],
                **further,
            }

        with checkpoints.opened(self.checkpoint, self, fingerprint) as folder:
            (fit_by_sampling if self.method == "gibbs" else fit_by_loop)(self, seen, attributes, folder)
        warn_if_not_converged(self, stacklevel=4)
        return self

    @property
    def objective_name(self) -> str:
        """What the objective in the trace is, in words; of a fitted model, whatever `method` was set since."""
        method = self.method
        if hasattr(self, "model_"):
            by_loop = "bayes" if self.model_.has_posterior else "unmf"
            method = by_loop if self.posterior_ is None else "gibbs"
        return {"gibbs": "Log-likelihood", "bayes": "Evidence bound"}.get(method, "Loss")

    def predict(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Mean of the value at pairs of rows and columns.

        With method="gibbs" it is the posterior mean: of the answers that an asked cell may have, or of the model where
        nobody was asked. With the others, W H^T.

        Parameters
        ----------
        rows, cols : label or array-like of labels
            The pairs (rows[j], cols[j]), by label, else by position; one row serves for many columns, or one column
            for many rows.
        """
        check_is_fitted(self)
        u, i = self.model_.pairs(rows, cols)
        posterior = self.posterior_
        if posterior is None:
            x = self.model_.products(u, i)
            return x if x.shape else x[()]
        return self._posterior_at(u, i, lambda *places: [posterior.means_at(*places)])[0]

    def predict_interval(self, rows: ArrayLike, cols: ArrayLike, level: float = 0.9) -> Interval:
        """Credible interval (low, high) of the value at pairs of rows and columns, for method="gibbs".

        The value of an asked cell is one of the answers; elsewhere it is what an answer would be.

        Parameters
        ----------
        rows, cols : label or array-like of labels
            The pairs, as in `predict`.
        level : float, default=0.9
            Probability that the value lies in the interval, given all that was collected.
        """
        posterior = sampled_posterior(self, "Intervals")
        validation.check_parameters({"level": level}, {"level": validation.between(0.0, 1.0)})
        shares = (0.5 - level / 2, 0.5 + level / 2)
        places = self.model_.pairs(rows, cols)
        return Interval(*self._posterior_at(*places, partial(posterior.quantiles_at, shares=shares)))

    def _posterior_at(self, u: Array, i: Array, ask: Callable[..., list[Array]]) -> list[Array]:
        """Arrays that the posterior gives at pairs of positions, in the shape of the pairs."""
        shape = np.broadcast_shapes(u.shape, i.shape)
        places = (u, i) if self.questions_are_ == "rows" else (i, u)
        rows, columns = (np.broadcast_to(place, shape).reshape(-1) for place in places)
        arrays = (array.reshape(shape) for array in ask(rows, columns, self.asked_.find(rows, columns)))
        return [array if shape else array[()] for array in arrays]

    def complete(self, X: Uncoupled) -> Array:
        """The whole matrix as an array: `predict` of every cell.

        Parameters
        ----------
        X : Uncoupled
            The collection that was fitted.
        """
        check_is_fitted(self)
        if _check_collection(X).fingerprint() != self.model_.fingerprint:
            must = "complete(X) must be given what was fitted: nothing is known of the couplings of other data."
            raise DataError(must, found="other data", remedy="Fit them.", parameter="X")
        n, m = len(self.W_), len(self.H_)
        if n * m > MAX_COMPLETED_CELLS:
            must = f"A completed matrix must have at most {MAX_COMPLETED_CELLS:,} cells."
            remedy = "Use predict for the cells of interest."
            raise DataError(must, found=f"{n:,} x {m:,}", remedy=remedy, parameter="X")
        if self.posterior_ is None:
            return np.asarray(self.W_ @ self.H_.T)
        means = self.posterior_.means()
        means[self.asked_.rows(), self.asked_.respondents] = self.posterior_.likeliest().mean
        return means if self.questions_are_ == "rows" else means.T

    def coupling(self) -> Coupling:
        """Who most likely gave which answer, for method="gibbs"."""
        likeliest = sampled_posterior(self, "The coupling").likeliest()
        places = (self.asked_.rows(), self.asked_.respondents)
        rows, columns = places if self.questions_are_ == "rows" else places[::-1]
        labels = self.model_.labels_at(rows, "row"), self.model_.labels_at(columns, "column")
        return Coupling(*labels, *likeliest)

    def disclosure_risk(self, *, comparisons: bool = True) -> Array:
        """Probability of the most likely answer of every asked cell, in the order of `coupling()`.

        Whoever knows all that was collected, and guesses this answer, is right so often. For method="gibbs".

        Parameters
        ----------
        comparisons : bool, default=True
            False gives the risk that there would be without any comparison: the share of the question's most frequent
            answer.
        """
        posterior = sampled_posterior(self, "The disclosure risk")
        if not comparisons:
            posterior = AnyCoupling(self.asked_, posterior.answers, posterior.answer_indptr)
        return posterior.likeliest().probability

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that `halfseen.load` reads; it holds no pickle.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        """
        check_is_fitted(self)
        save_model(self, path)

    def _more_state(self) -> dict[str, Array]:
        """Arrays that a model file keeps beside the record and the trace."""
        arrays = {"turned": np.array(self.questions_are_ == "columns"), "n_clipped": np.array(self.n_clipped_)}
        arrays |= to_state(self.asked_, self.posterior_)
        arrays |= {name: getattr(self, name) for name in ("w_", "balance_") if getattr(self, name, None) is not None}
        if hasattr(self, "error_bounds_"):
            arrays["error_bounds_"] = np.nan_to_num(self.error_bounds_, nan=-1.0)  # arrays of files are finite
        if isinstance(self.posterior_, SampledCoupling):
            arrays["diagnosed"] = np.array(list(self.diagnostics_), dtype=object)
            arrays["diagnostics"] = np.array(list(self.diagnostics_.values()))
        return arrays

    def _set_state(self, model: FittedModel, trace: dict[str, Array], further: Mapping[str, Array]) -> None:
        """Take back what a file kept; raises a ValueError if its arrays contradict each other."""
        self.model_, self.trace_ = model, trace
        self.questions_are_ = "columns" if check_array(further, "turned", "b", ()) else "rows"
        self.n_clipped_ = int(check_array(further, "n_clipped", "i", ()))
        n, m = (len(factor) for factor in ((self.W_, self.H_) if self.questions_are_ == "rows" else (self.H_, self.W_)))
        for name, shape in (("w_", (n, 2)), ("balance_", (n,))):
            if name in further:
                setattr(self, name, check_array(further, name, "f", shape))
        if "error_bounds_" in further:  # not in files of 0.1
            bounds = check_array(further, "error_bounds_", "f", (n,))
            self.error_bounds_ = np.where(bounds < 0, np.nan, bounds)
        self.asked_, self.posterior_ = from_state(further, n, m)
        if isinstance(self.posterior_, AnyCoupling):
            self.diagnostics_ = {}
        elif isinstance(self.posterior_, SampledCoupling):
            names = check_array(further, "diagnosed", "O", (None,)).tolist()
            numbers = check_array(further, "diagnostics", "f", (len(names), 3) if names else (0,), finite=False)
            self.diagnostics_ = {name: Mixing(*row) for name, row in zip(names, numbers.tolist(), strict=True)}
        if further.keys() != self._more_state().keys():
            unknown = ", ".join(sorted(further.keys() - self._more_state().keys()))
            raise ValueError(f"the arrays must be those of such a model, without {unknown}")


def sampled_posterior(model: UncoupledNMF, what: str) -> Posterior:
    """The posterior of a fitted model, for what only several draws give; `what` is the subject of a refusal."""
    check_is_fitted(model)
    posterior: Posterior | None = model.posterior_
    if posterior is None:
        must, found = f'{what} must come from sampled couplings, `method="gibbs"`.', "a fit by another method"
        raise ParameterError(must, found=found, remedy='Fit with "gibbs".', parameter="method")
    if isinstance(posterior, SampledCoupling) and len(posterior.draws.coupling) < 2:
        must, found = f"{what} must come from at least two draws.", f"{model.n_iter_} sweeps in all, and one draw"
        raise ParameterError(must, found=found, remedy="Fit again with more sweeps and draws.", parameter="n_draws")
    return posterior


def _check_collection(X: Any) -> Uncoupled:
    if not isinstance(X, Uncoupled):
        must = "UncoupledNMF must be given a halfseen.Uncoupled."
        made = "Make one of three lists, `Uncoupled(asked, answers, comparisons)`"
        remedy = f"{made}; or take a matrix apart, `Uncoupled.from_coupled(X)`."
        raise DataError(must, found=type(X).__name__, remedy=remedy, parameter="X")
    return X
