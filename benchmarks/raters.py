"""Models that predict ratings, for `benchmarks/libraries.py`: of halfseen, Surprise, cmfrec and LensKit.

Each chooses among its defaults, and a few strengths of regularisation and sizes around what others report as good. The
default l2 of OrdinalMF and RoundMF depends on the data; the numbers in their grids stand around it.
"""

from typing import Any

import numpy as np

import halfseen
from benchmarks.contenders import SEED, THREADS, Contender, Setting, coo, frame, grid, lenskit_dataset, lenskit_trained
from halfseen import Observed


def _ours(kind: Any) -> Any:
    return lambda cells, setting: kind(**setting, random_state=SEED, n_jobs=THREADS).fit(cells)


def _of_ours(model: Any, rows: Any, columns: Any) -> Any:
    return model.predict(rows, columns)


def _surprise_cells(cells: Observed) -> Any:
    from surprise import Dataset, Reader

    return Dataset.load_from_df(frame(cells), Reader(rating_scale=(1, 5))).build_full_trainset()


def _surprise(cells: Any, setting: Setting) -> Any:
    from surprise import SVD

    return SVD(**setting, random_state=SEED).fit(cells)


def _of_surprise(model: Any, rows: Any, columns: Any) -> Any:
    asked = [(row, column, None) for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
    return np.array([model.predict(*pair, clip=False).est for pair in asked])


def _cmfrec(cells: Any, setting: Setting) -> Any:
    from cmfrec import CMF

    return CMF(**setting, random_state=SEED, nthreads=THREADS).fit(cells)


def _of_cmfrec(model: Any, rows: Any, columns: Any) -> Any:
    return model.predict(user=rows, item=columns)


def _lenskit(dataset: Any, setting: Setting) -> Any:
    from lenskit.als import BiasedMFScorer

    return lenskit_trained(BiasedMFScorer(**setting), dataset)


def _of_lenskit(model: Any, rows: Any, columns: Any) -> Any:
    u, i = model.users.numbers(rows), model.items.numbers(columns)
    biases = model.bias.global_bias + model.bias.user_biases[u] + model.bias.item_biases[i]
    return biases + np.einsum("ck,ck->c", model.user_embeddings[u], model.item_embeddings[i])


RATERS = (
    Contender(
        "halfseen OrdinalMF", "halfseen", _ours(halfseen.OrdinalMF), _of_ours,
        [{}, *grid(n_components=(10, 20), l2=(7.0, 10.0, 14.0)), {"n_components": 20}],
    ),
    Contender(
        "halfseen RoundMF", "halfseen", _ours(halfseen.RoundMF), _of_ours,
        [{}, *grid(n_components=(10, 20), l2=(18.0, 26.0, 37.0)), {"n_components": 20}],
    ),
    Contender(
        "Surprise SVD", "surprise", _surprise, _of_surprise,
        [
            {}, *grid(reg_all=(0.05, 0.1), n_epochs=(20, 60)),
            *grid(n_factors=(20,), reg_all=(0.05, 0.07, 0.1), n_epochs=(60,)),
        ],
        _surprise_cells,
    ),
    Contender(
        "cmfrec CMF", "cmfrec", _cmfrec, _of_cmfrec,
        [
            {}, *grid(lambda_=(12.0, 15.0, 20.0, 30.0)), *grid(lambda_=(0.1, 0.12), scale_lam=(True,)),
            {"lambda_": 15.0, "k": 10},
        ],
        coo,
    ),
    Contender(
        "LensKit BiasedMF", "lenskit", _lenskit, _of_lenskit,
        [
            {}, *grid(regularization=(0.07, 0.12, 0.15)),
            *grid(embedding_size=(100,), regularization=(0.1, 0.12, 0.15)), {"epochs": 30},
        ],
        lenskit_dataset,
    ),
)  # fmt: skip
