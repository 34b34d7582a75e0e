"""Blend: several recommenders as one, weighted by held-out cells."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from halfseen import validation
from halfseen.arrays import Array
from halfseen.blending import BlendModel, Candidates, find_weights, standard_error
from halfseen.errors import DataError
from halfseen.estimators.base import BaseRecommender, fitted
from halfseen.estimators.implicit_mf import ImplicitMF
from halfseen.estimators.item_graph import DirectRecommender, ItemGraph
from halfseen.estimators.squared_models import SquaredOrdNMF
from halfseen.held_out import HeldOut, hold_out, mean_ndcg
from halfseen.model import FittedModel
from halfseen.observed import Observed
from halfseen.ranking import Seen, index_of

#: What `models` must be, and what to do.
MUST_BE_MODELS = (
    "None, or a list of recommenders of halfseen, each alone or as (name, recommender), names different and without __",
    "Pass `[SquaredOrdNMF(), ItemGraph()]`, say.",
)
#: Rows by whose held-out cells weights are chosen, at most.
MOST_ROWS = 2000
#: With fewer rows, cells are held out several times, at most so often.
ROWS_WANTED, MOST_TIMES = 3000, 3


class Blend(DirectRecommender):
    """Several recommenders as one: their standardised scores, weighted by how they rank held-out cells together.

    Unseen cells are *zeros*, or what they are to a model by its own `unseen`. A fifth of the cells is held out, and
    all models are fitted to the rest. Their scores are standardised row by row, to mean 0 and deviation 1 over the
    columns, and the weights are those of the highest NDCG@100 of the held-out cells, in the mean over relevance
    thresholds. With fewer than 3,000 rows that is done twice or three times, with other cells. Then all models are
    fitted again, to all cells. Models that see different things (parts, factors of any sign, pairs of columns) rank
    better together than the best of them alone.

    Parameters
    ----------
    models : list of estimators, list of (str, estimator) or None, default=None
        Recommenders that are not fitted; None: `SquaredOrdNMF()`, `ImplicitMF()` and `ItemGraph()`. Parameters of one
        can be set as ``itemgraph__l2``: without a name, its class in lower case.
    random_state : int, RandomState or None, default=None
        Seed of the held-out cells, and of models that have none.
    engine : {{"cpu", "cuda"}}, default={{}}
        Where new rows are folded in. Models are fitted where their own `engine` says.
    n_jobs : int or None, default=None
        Number of threads, also of models that have none; None uses all processors.

    Attributes
    ----------
    weights_ : ndarray of shape (n_models,)
        Weights of the standardised scores, of sum 1.
    models_ : dict of str to record
        The `model_` of every model, fitted to all cells, by name.
    quality_ : dict of ndarray
        An entry per model, and one for the blend: "model", its name; "weight"; "ndcg", NDCG@100 of the held-out cells
        in the mean over relevance thresholds, and its "standard_error" by rows. The weights were chosen by the same
        cells. NaN where no cells could be held out.
    trace_ : dict of ndarray
        "objective", NDCG@100 of held-out cells after each step towards the weights; "seconds" until these were found.
    status_ : Status
        DIRECT.
    model_ : BlendModel
        All that ranking needs, as a record that later changes of parameters do not touch.
    n_features_in_ : int
        Number of columns.
    row_labels_, column_labels_ : ndarray or None
        Labels of rows and columns, if the data had any.

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [(f"u{u}", f"i{i}", 1 + (u * i) % 5) for u in range(20) for i in range(15) if (u + i) % 3]
    >>> blend = hs.Blend([hs.SquaredOrdNMF(2), hs.ItemGraph()], random_state=0).fit(stars)
    >>> list(blend.models_), round(float(blend.weights_.sum()), 6)
    (['squaredordnmf', 'itemgraph'], 1.0)
    >>> blend.recommend(["u3"], n=2).ids.shape
    (1, 2)
    """

    record = BlendModel
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "models": lambda value: None if is_list_of_models(value) else MUST_BE_MODELS,
        "random_state": validation.seed(),
        **BaseRecommender.parameter_rules,
    }

    weights_ = fitted(lambda model: model.weights, "Weights of the standardised scores.")

    def __init__(
        self,
        models: Sequence[Any] | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.models = models
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs

    #: Models with the parameters that were found, by name; not kept in files.
    _fitted: Mapping[str, Any] = MappingProxyType({})

    @property
    def models_(self) -> dict[str, Any]:
        """Records of the models, by name."""
        return dict(zip(self.model_.names, self.model_.models, strict=True))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with those of the models under their names.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list the models and their parameters, too.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep and self.models is not None and is_list_of_models(self.models):
            for name, model in named_models(self.models):
                params[name] = model
                params |= {f"{name}__{key}": value for key, value in model.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of a model as ``name__parameter``, a model in the place of another by its name.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator.
        """
        own = {name: params.pop(name) for name in list(params) if name in self._get_param_names()}
        super().set_params(**own)
        models = dict(named_models(self.models or ()) if is_list_of_models(self.models) else ())
        for name in [name for name in params if name in models]:
            given = [list(pair) for pair in named_models(self.models or ())]
            replaced = [(one, params[name] if one == name else model) for one, model in given]
            are_named = isinstance((self.models or [None])[0], tuple | list)
            self.models = replaced if are_named else [model for _, model in replaced]
            models[name] = params.pop(name)
        of_models: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            model, _, parameter = name.partition("__")
            validation.check_names([model], [*models, *self._get_param_names()], type(self).__name__)
            of_models.setdefault(model, {})[parameter] = value
        for name, values in of_models.items():
            models[name].set_params(**values)
        return self

    def _fit_observed(self, observed: Observed) -> tuple[BlendModel, dict[str, Array]]:
        random = check_random_state(self.random_state)
        given = [(name, self._prepared(model, random)) for name, model in named_models(self.models or default_models())]
        n_models = len(given)
        weights, scores = np.full(n_models, 1 / n_models), []
        path: list[float] = []
        started, seconds = perf_counter(), 0.0
        n_times = int(np.clip(np.ceil(ROWS_WANTED / max(observed.shape[0], 1)), 1, MOST_TIMES))
        trials = []
        for inner, held in hold_out(observed, random, n_times) if n_models > 1 else []:
            cells = observed.select_cells(inner)
            held_out = HeldOut.draw(observed.select_cells(held), MOST_ROWS, random)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fits to all cells warn again
                fits = [without_checkpoint(model).fit(as_seen_by(model, cells)) for _, model in given]
            for (_, model), fit in zip(given, fits, strict=True):
                found = [name for name in getattr(fit, "finds", ()) if getattr(model, name) is None]
                model.set_params(**{name: getattr(fit, f"{name}_") for name in found})
            seen = Seen(cells.indptr, cells.indices, cells.shape[1])
            trials.append(Candidates.find([fit.model_ for fit in fits], held_out, seen, self.n_jobs))
            del fits
        if trials:

            def score(blend: Array) -> float:
                return float(np.mean([mean_ndcg(trial.ndcg(blend, self.n_jobs)) for trial in trials]))

            weights, path = find_weights(score, n_models)
            for one in [*np.eye(n_models), weights]:
                of_rows = [trial.ndcg(one, self.n_jobs) for trial in trials]
                errors = [standard_error(of_trial) for of_trial in of_rows]
                scores.append((np.mean([*map(mean_ndcg, of_rows)]), np.sqrt(np.square(errors).sum()) / len(trials)))
            seconds = perf_counter() - started
        names = [name for name, _ in given]
        ndcg, standard_errors = np.array(scores).T if scores else (None, None)
        index, seen = index_of(observed), Seen.from_observed(observed)
        models = [model.fit(as_seen_by(model, observed)).model_ for _, model in given]
        self._fitted = dict(given)
        model = BlendModel(
            tuple(models), names, weights, ndcg, standard_errors, index, seen, observed.unseen, observed.fingerprint(),
            observed.level_names,
        )  # fmt: skip
        return model, {"objective": np.array(path), "seconds": np.full(len(path), seconds)}

    def _updated(self, new: Observed) -> BlendModel:
        blend: BlendModel = self.model_
        cells, _ = blend.merged(new, np.float64)
        models: list[Any] = []
        for name, record in zip(blend.names, blend.models, strict=True):
            if isinstance(record, FittedModel) and record.can_update:
                models.append(record.updated(replace(new, unseen=record.unseen), self.engine, self.n_jobs, name))
                continue
            if name not in self._fitted:
                raise DataError(
                    "To take in new cells, a blend must know the parameters of its models.",
                    found=f"none of {name}, as the blend was read from a file",
                    remedy="Fit it again.",
                )
            models.append(without_checkpoint(self._fitted[name]).fit(as_seen_by(record, cells)).model_)
        index, seen = index_of(cells), Seen.from_observed(cells)
        return replace(blend, models=tuple(models), index=index, seen=seen, fingerprint=cells.fingerprint())

    def _prepared(self, model: Any, random: np.random.RandomState) -> Any:
        """An unfitted copy with a seed and a number of threads."""
        params = model.get_params(deep=False)
        drawn = random.randint(np.iinfo(np.int32).max)
        missing = {"random_state": drawn, "n_jobs": self.n_jobs}
        return clone(model).set_params(**{name: missing[name] for name in missing if params.get(name, 0) is None})

    @property
    def quality_(self) -> dict[str, Array]:
        """How each model and the blend rank held-out cells."""
        model = self.model_
        names = np.array([*model.names, "blend"], dtype=object)
        unknown = np.full(names.size, np.nan)
        ndcg, errors = (unknown if one is None else one for one in (model.ndcg, model.standard_errors))
        return {"model": names, "weight": np.append(model.weights, 1.0), "ndcg": ndcg, "standard_error": errors}


def is_list_of_models(value: Any) -> bool:
    """Whether `models` may have this value."""
    if value is None:
        return True
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        return False
    is_named = [isinstance(one, tuple | list) for one in value]
    if any(is_named) and not all(is_named):
        return False
    if all(is_named) and not all(len(one) == 2 and isinstance(one[0], str) and "__" not in one[0] for one in value):
        return False
    names = [one[0] for one in value] if all(is_named) else []
    models = [one[1] for one in value] if all(is_named) else value
    own = {"models", "random_state", "engine", "n_jobs"}
    are_models = all(isinstance(model, BaseRecommender) for model in models)
    return are_models and len(set(names)) == len(names) and not own & set(names)


def named_models(models: Sequence[Any]) -> list[tuple[str, Any]]:
    """Models with their names: without one, the class in lower case, with a number if there are several."""
    if all(isinstance(one, tuple | list) for one in models):
        return [(name, model) for name, model in models]
    names = [type(model).__name__.lower() for model in models]
    numbered = [
        f"{name}-{names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]
    return list(zip(numbered, models, strict=True))


def default_models() -> list[Any]:
    """Parts with ordinal levels, factors of any sign, and pairs of columns."""
    return [SquaredOrdNMF(), ImplicitMF(), ItemGraph()]


def without_checkpoint(model: Any) -> Any:
    """A copy that saves nothing while it is fitted: a checkpoint is of one fit, that to all cells."""
    return clone(model).set_params(**{"checkpoint": None} if "checkpoint" in model.get_params(deep=False) else {})


def as_seen_by(model: Any, observed: Observed) -> Observed:
    """The cells, with what unseen ones mean to a model."""
    return replace(observed, unseen=model.unseen)
