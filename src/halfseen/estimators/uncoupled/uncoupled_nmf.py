"""Factorization of uncoupled data: the questions asked and the answers given are known, but not whose they are."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.coupling.sampling.posterior import SampledCoupling
from halfseen.coupling.sampling.units import SCALES
from halfseen.data.uncoupled import Uncoupled
from halfseen.engines import RULES as ENGINE_RULES
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.completing import MOST_CELLS
from halfseen.estimators.filing import save
from halfseen.estimators.labelling import labels_at, pair_positions
from halfseen.estimators.pairs import products_at
from halfseen.estimators.predictive import Interval
from halfseen.estimators.telling import tell_the_end
from halfseen.estimators.uncoupled.asked import Asked
from halfseen.estimators.uncoupled.filing import FURTHER, factor_of, further_arrays, restore
from halfseen.estimators.uncoupled.found import Found
from halfseen.estimators.uncoupled.looping import by_loop
from halfseen.estimators.uncoupled.sampling import by_sampling
from halfseen.likelihoods import likelihood_for


class Coupling(NamedTuple):
    """Of every asked cell, row by row: its row and column, the most likely answer, how likely it is, and the mean.

    An answer that was surely lost is NaN. `pandas.DataFrame(m.coupling()._asdict())` is a table.
    """

    row: Array
    """The row of the cell: its label, or its position where rows have none."""
    column: Array
    """The column of the cell, likewise."""
    answer: Array
    """The most likely answer."""
    probability: Array
    """How likely it is."""
    mean: Array
    """The mean of what the cell may hold."""


class UncoupledNMF(BaseEstimator):
    """A matrix as W H^T when values and indices were collected apart, helped by comparisons.

    What is known is who was asked which question, the answers to each question without the names, and some comparisons
    (`halfseen.Uncoupled`). Four methods:

    "gibbs" samples who gave which answer together with the factors. With x_ij the answers of question i in an unknown
    order,

        x_ij ~ N(a_i . b_j, rho_i s_j^2),    p(order) falls by exp(-trust) with every violated comparison,

    normal priors with Normal-Wishart hyper-priors for a_i and b_j, inverse-gamma ones for the noises of rows and of
    columns. It gives intervals and the risk that an answer is disclosed. `W_` and `H_` are then a non-negative
    factorization of the posterior mean.

    "unmf" is the method of Kohjima (2022): a non-negative factorization of the pseudo-observations of Eq. 4, by Eq. 5
    (squared error) or Eq. 6 (Kullback-Leibler). "bayes" is its Kullback-Leibler version with gamma priors. "decode"
    factorizes the answers read off at each cell's share of won comparisons, (wins + 1) / (comparisons + 2).

    Parameters
    ----------
    n_components : the number k of components.
    method : "gibbs", "unmf", "bayes" or "decode".
    loss : for "unmf" and "decode", "frobenius" (squared error), "kullback-leibler", "itakura-saito" or any number beta.
    balance : for "unmf" and "bayes", lambda of Eq. 4: "zero" or "half" of w_1 + w_2 as in the paper, "full" of it, or
        a number, or one for each question. With "full" a cell that was never compared counts as its question's mean.
    scale : for "gibbs", "all" counts all answers in units of their common deviation; "question" each question's in its
        own, for questions in different units, such as ages and incomes; "auto" the latter where deviations of
        questions are far apart: nine tenths of them span more than sevenfold, beyond chance.
    trust : for "gibbs", how much a comparison is believed: a violated one makes a coupling exp(trust) times less
        likely.
    n_sweeps, n_burn : for "gibbs", how many sweeps are drawn, and how many of the first are discarded.
    n_draws : for "gibbs", how many of the others are kept, for means, intervals and risks.
    prior_shape, prior_rate : for "bayes", of the gamma priors; None learns a rate for every row and every column.
    max_iter, tol : for the others, stop after max_iter iterations, or when one changes the objective by less than tol.
    init : for the others, "random" or a pair of arrays (W0, H0), W0 with a row for each row of the matrix.
    random_state : seed; the same seed gives the same numbers whatever the number of threads.
    verbose : 1 shows a progress bar on a terminal.
    engine : where to compute; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, k), H_ : (m, k), components_ : H_ transposed.
    n_iter_, status_ : how many iterations or sweeps, and why they ended.
    trace_ : dict of arrays with an entry an iteration: "objective" and "seconds"; for "gibbs" also "violated"
        comparisons, "noise" (a cell's typical deviation) and "spread" (that of the means), in units of `scale`.
    diagnostics_ : for "gibbs", by the name of a quantity its mean, split R-hat and effective number of draws; of
        "predicted cells", up to 20, what nine of ten do not exceed, or do not fall below.
    n_clipped_ : how many pseudo-observations, or posterior means, were below 0 and counted as 0.
    w_, balance_ : for "unmf" and "bayes", w_i (n, 2) and lambda_i of each question.
    row_labels_, column_labels_ : the names of rows and columns, if there were any.

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

    factor_type = staticmethod(factor_of)
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        "n_components": checks.whole(1, checks.MOST_COMPONENTS),
        "method": checks.one_of("gibbs", "unmf", "bayes", "decode"),
        "scale": checks.one_of(*SCALES),
        "trust": checks.number(0.0, above=True),
        "n_sweeps": checks.whole(1),
        "n_burn": checks.whole(0),
        "n_draws": checks.whole(1),
        "prior_shape": checks.number(0.0, above=True),
        "prior_rate": checks.number(0.0, above=True, or_none=True),
        "max_iter": checks.whole(1),
        "tol": checks.number(0.0),
        "init": checks.start("random"),
        "random_state": checks.seed(),
        **ENGINE_RULES,
    }

    def __init__(
        self,
        n_components: int = 5,
        *,
        method: str = "gibbs",
        loss: str | float = "frobenius",
        balance: Any = "full",
        scale: str = "auto",
        trust: float = 12.0,
        n_sweeps: int = 400,
        n_burn: int = 100,
        n_draws: int = 100,
        prior_shape: float = 1.0,
        prior_rate: float | None = 1.0,
        max_iter: int = 500,
        tol: float = 1e-5,
        init: Any = "random",
        random_state: Any = None,
        verbose: int = 0,
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.loss = loss
        self.balance = balance
        self.scale = scale
        self.trust = trust
        self.n_sweeps = n_sweeps
        self.n_burn = n_burn
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

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, `params`; an unknown name is answered with the one probably meant."""
        checks.check_names(params, self.get_params(deep=False), type(self).__name__)
        super().set_params(**params)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find W and H, and with method="gibbs" who gave which answer.

        Parameters
        ----------
        X : what was collected, as `halfseen.Uncoupled`.
        y : ignored, for scikit-learn's conventions.
        """
        checks.check_parameters(self.get_params(deep=False), self.parameter_rules)
        seen = _checked(X)
        self._check_plan()
        likelihood_for(self.loss)  # also where the method has no use for it: it was meant to be something
        self._keep(by_sampling(self, seen) if self.method == "gibbs" else by_loop(self, seen), seen)
        tell_the_end(self, stacklevel=3)
        return self

    def _check_plan(self) -> None:
        if self.method == "gibbs" and self.n_burn >= self.n_sweeps:
            raise ParameterError(
                f"n_burn must be below n_sweeps, so that some sweeps are kept. Found n_burn={self.n_burn} and "
                f"n_sweeps={self.n_sweeps}. Discard fewer, or draw more."
            )

    def _keep(self, found: Found, seen: Uncoupled) -> None:
        for name in FURTHER:
            self.__dict__.pop(name, None)  # of a fit before this one
        self.__dict__.update(found.further)
        self._turned = seen.questions_are == "columns"
        factors, labels = (found.questions, found.respondents), (seen.question_labels, seen.respondent_labels)
        self.factors_ = factors[::-1] if self._turned else factors
        self.row_labels_, self.column_labels_ = labels[::-1] if self._turned else labels
        self.W_, self.H_ = self.factors_[0].mean, self.factors_[1].mean
        self.trace_, self.status_, self.n_iter_ = found.trace, found.status, len(found.trace["objective"])
        self.n_clipped_, self._posterior = found.n_clipped, found.posterior
        self._asked = Asked.in_(seen)
        self.seen_ = self._asked.seen(self._turned)
        self.n_features_in_, self.fingerprint_ = seen.shape[1], seen.fingerprint()

    @property
    def objective_name(self) -> str:
        """What the objective in the trace is, in words."""
        return {"gibbs": "Log-likelihood", "bayes": "Evidence bound"}.get(self.method, "Loss")

    @property
    def components_(self) -> Array:
        """H transposed: a row for each component, as scikit-learn has it."""
        H: Array = self.H_
        return H.T

    def predict(self, rows: Any, cols: Any) -> Array:
        """The mean of the value at the pairs (rows[j], cols[j]), by label, else by position.

        With method="gibbs" it is the posterior mean: of the answers that an asked cell may have, or of the model where
        nobody was asked. With the others, W H^T.
        """
        check_is_fitted(self)
        u, i = pair_positions(self, rows, cols)
        if self._posterior is None:
            x = products_at(self.W_, self.H_, u, i)
            return x if x.shape else x[()]
        return self._at(u, i, lambda *places: [self._posterior.means_at(*places)])[0]

    def predict_interval(self, rows: Any, cols: Any, level: float = 0.9) -> Interval:
        """Where the value at each pair lies with this probability, given all that was collected: (low, high).

        An asked cell's value is one of the answers; elsewhere it is what an answer would be. For method="gibbs".

        Parameters
        ----------
        rows, cols : the pairs, by label, else by position, as in `predict`.
        level : the probability.
        """
        posterior = self._sampled("Intervals")
        checks.check_parameters({"level": level}, {"level": checks.between(0.0, 1.0)})
        shares = (0.5 - level / 2, 0.5 + level / 2)
        places = pair_positions(self, rows, cols)
        return Interval(*self._at(*places, lambda *at: posterior.quantiles_at(*at, shares)))

    def complete(self, X: Any) -> Array:
        """The whole matrix as an array: `predict` of every cell of X, which must be what was fitted."""
        check_is_fitted(self)
        if _checked(X).fingerprint() != self.fingerprint_:
            raise DataError(
                "complete(X) must be given what was fitted: nothing is known of the couplings of other data. Found "
                "other data. Fit them."
            )
        n, m = len(self.W_), len(self.H_)
        if n * m > MOST_CELLS:
            raise DataError(
                f"A completed matrix must have at most {MOST_CELLS:,} cells. Found {n:,} x {m:,}. "
                "Use predict for the cells of interest."
            )
        if self._posterior is None:
            whole: Array = self.W_ @ self.H_.T
            return whole
        means = self._posterior.means()
        means[self._asked.rows(), self._asked.respondents] = self._posterior.likeliest().mean
        return means.T if self._turned else means

    def coupling(self) -> Coupling:
        """Who most likely gave which answer. For method="gibbs"."""
        likeliest = self._sampled("The coupling").likeliest()
        places = (self._asked.rows(), self._asked.respondents)
        rows, columns = places[::-1] if self._turned else places
        return Coupling(labels_at(self, rows, "row"), labels_at(self, columns, "column"), *likeliest)

    def disclosure_risk(self, *, comparisons: bool = True) -> Array:
        """For every asked cell, in the order of `coupling()`: the probability of its most likely answer.

        Who knows all that was collected, and guesses this answer, is right so often. For method="gibbs".

        comparisons : False tells the risk that there would be without any: the share of the question's most frequent
            answer.
        """
        posterior = self._sampled("The disclosure risk")
        if not comparisons:
            posterior = self._asked.any_coupling(posterior.answers, posterior.answer_indptr)
        risk: Array = posterior.likeliest().probability
        return risk

    def _sampled(self, what: str) -> Any:
        """The posterior, for what only several draws give."""
        check_is_fitted(self)
        if isinstance(self._posterior, SampledCoupling) and len(self._posterior.draws.coupling) < 2:
            raise ParameterError(
                f"{what} must come from at least two draws. Found {self.n_iter_} sweeps in all, and one draw. "
                "Fit again with more sweeps and draws."
            )
        if self._posterior is None:
            raise ParameterError(
                f'{what} must come from sampled couplings, method="gibbs". Found method={self.method!r}. '
                'Fit with "gibbs".'
            )
        return self._posterior

    def _at(self, u: Array, i: Array, ask: Callable[..., list[Array]]) -> list[Array]:
        """What the posterior says at pairs of positions, in the shape of the pairs."""
        shape = np.broadcast_shapes(u.shape, i.shape)
        rows, columns = (np.broadcast_to(places, shape).reshape(-1) for places in ((i, u) if self._turned else (u, i)))
        found = (array.reshape(shape) for array in ask(rows, columns, self._asked.cells_at(rows, columns)))
        return [array if shape else array[()] for array in found]

    def save(self, path: Any) -> None:
        """Write the fitted model to one file at `path` that `halfseen.load` reads; no pickle in it."""
        check_is_fitted(self)
        save(self, path)

    def _further_arrays(self) -> dict[str, Array]:
        return further_arrays(self)

    def _restore(self, further: dict[str, Array]) -> None:
        restore(self, further)


def _checked(X: Any) -> Uncoupled:
    if not isinstance(X, Uncoupled):
        raise DataError(
            f"UncoupledNMF must be given a halfseen.Uncoupled. Found {type(X).__name__}. Make one of three lists, "
            "Uncoupled(asked, answers, comparisons); or take a matrix apart, Uncoupled.from_coupled(X)."
        )
    return X
