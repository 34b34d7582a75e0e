"""Models that rank, for `benchmarks/libraries.py`: of halfseen, implicit, cmfrec, LensKit, hpfrec and scikit-learn.

implicit, cmfrec and LensKit fit one and the same model, of Hu, Koren and Volinsky (2008), by alternating least squares,
and choose from the same sizes, regularisations and weights of a star. Those with a `seen` choose whether they see the
stars, or only that there are any.
"""

from typing import Any

import numpy as np
from sklearn.decomposition import NMF

import halfseen
from benchmarks.contenders import SEED, THREADS, Contender, Setting, coo, grid, lenskit_dataset, lenskit_trained, ones
from halfseen import Observed
from halfseen.studies import ordnmf_methods

#: Sizes of those whose factors are held down by a ridge, and of those that are not.
LARGE, SMALL = (64, 128), (50, 20, 10)
REGULARIZATION, ALPHA = (30.0, 50.0, 80.0), (1.0, 2.0, 4.0)
SEEN = ("stars", "ones")


def _squared(cells: Observed, setting: Setting) -> Any:
    """`l2_share` is a part of sqrt(n) + sqrt(m), as the default is."""
    l2 = setting["l2_share"] * float(np.sqrt(cells.shape).sum())
    return halfseen.SquaredOrdNMF(setting["n_components"], l2=l2, random_state=SEED, n_jobs=THREADS).fit(cells)


def _ordnmf(cells: Observed, setting: Setting) -> Any:
    return halfseen.OrdNMF(**setting, random_state=SEED, n_jobs=THREADS).fit(cells)


def _poisson(cells: Observed, setting: Setting) -> Any:
    model = halfseen.PoissonFactorization(setting["n_components"], random_state=SEED, n_jobs=THREADS)
    return model.fit(_as_seen(cells, setting))


def _implicit(cells: Observed, setting: Setting) -> Any:
    return ordnmf_methods.als(cells, **setting, seed=SEED)


def _cmfrec(cells: Any, setting: Setting) -> Any:
    from cmfrec import CMF_implicit

    return CMF_implicit(**setting, random_state=SEED, nthreads=THREADS).fit(cells)


def _lenskit_cells(cells: Observed) -> Any:
    return cells.shape, lenskit_dataset(cells)


def _lenskit(cells: Any, setting: Setting) -> Any:
    from lenskit.als import ImplicitMFScorer

    shape, dataset = cells
    return shape, lenskit_trained(ImplicitMFScorer(**setting, use_ratings=True), dataset)


def _factors_of_lenskit(fitted: Any) -> Any:
    """Rows and columns without a cell are unknown to it, and get zeros."""
    (n, m), model = fitted
    size = model.config.embedding_size
    W, H = np.zeros((n, size), np.float32), np.zeros((m, size), np.float32)
    W[model.users.ids()], H[model.items.ids()] = model.user_embeddings, model.item_embeddings
    return W, H


def _hpfrec(cells: Observed, setting: Setting) -> Any:
    return ordnmf_methods.hpf(_as_seen(cells, setting), setting["k"], SEED)


def _scikit_learn(cells: Observed, setting: Setting) -> Any:
    how = {"beta_loss": setting["beta_loss"], "solver": "cd" if setting["beta_loss"] == "frobenius" else "mu"}
    model = NMF(setting["n_components"], random_state=SEED, **how)
    return model.fit_transform(coo(_as_seen(cells, setting)).tocsr()), model.components_.T.copy()


def _as_seen(cells: Observed, setting: Setting) -> Observed:
    return cells if setting["seen"] == "stars" else ones(cells)


def _itself(fitted: Any) -> Any:
    return fitted


RANKERS = (
    Contender(
        "halfseen SquaredOrdNMF", "halfseen", _squared, _itself,
        grid(n_components=LARGE, l2_share=(0.4, 0.55, 0.72, 0.85, 1.0, 1.35)),
    ),
    Contender("halfseen OrdNMF", "halfseen", _ordnmf, _itself, grid(n_components=SMALL)),
    Contender(
        "halfseen PoissonFactorization", "halfseen", _poisson, _itself, grid(seen=SEEN, n_components=SMALL)
    ),
    Contender(
        "implicit ALS", "implicit", _implicit, _itself, grid(factors=LARGE, regularization=REGULARIZATION, alpha=ALPHA)
    ),
    Contender(
        "cmfrec CMF_implicit", "cmfrec", _cmfrec, lambda model: (model.A_, model.B_),
        grid(k=LARGE, lambda_=REGULARIZATION, alpha=ALPHA), coo,
    ),
    Contender(
        "LensKit ImplicitMF", "lenskit", _lenskit, _factors_of_lenskit,
        grid(embedding_size=LARGE, regularization=REGULARIZATION, weight=ALPHA), _lenskit_cells,
    ),
    Contender("hpfrec HPF", "hpfrec", _hpfrec, _itself, grid(seen=SEEN, k=SMALL), takes_minutes=True),
    Contender(
        "scikit-learn NMF", "sklearn", _scikit_learn, _itself,
        grid(seen=SEEN, beta_loss=("frobenius", "kullback-leibler"), n_components=SMALL), takes_minutes=True,
    ),
    Contender("popularity", "halfseen", lambda cells, _: ordnmf_methods.popularity(cells), _itself, [{}]),
)  # fmt: skip
