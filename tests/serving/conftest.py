"""Models to serve, and a way to ask an application without a network."""

import asyncio
import json
from dataclasses import dataclass

import httpx
import numpy as np
import pytest

from halfseen import SquaredOrdNMF, observe
from halfseen.serving.application import application
from halfseen.serving.requests import Limits
from halfseen.serving.service import Service

ROWS, COLUMNS = 30, 20
ITEMS = [f"item {number}" for number in range(COLUMNS)]


def counts(seed=0):
    """A matrix of small counts, most of them zero; the first item is in every row, the last in one."""
    random = np.random.default_rng(seed)
    X = random.poisson(random.gamma(1.0, 1.0, (ROWS, 1)) * random.gamma(1.0, 1.0, COLUMNS) * 0.7)
    X[:, 0], X[:, -1], X[3, -1] = X[:, 0] + 1, 0, 1
    return X.astype(float)


def fit(X, path, rows=None, columns=None, seed=0):
    """A small model of a matrix in which zeros are unseen, saved."""
    u, i = np.nonzero(X)
    frame = {
        "row": (np.arange(len(X)) * 10 if rows is None else np.array(rows))[u],
        "column": np.array(ITEMS if columns is None else columns)[i],
        "value": X[u, i],
    }
    import pandas as pd

    model = SquaredOrdNMF(3, max_iter=30, tol=0, random_state=seed)
    model.fit(observe(pd.DataFrame(frame), unseen="zero")).save(path)
    return model


@pytest.fixture(scope="session")
def X():
    return counts()


@pytest.fixture(scope="session")
def path(X, tmp_path_factory):
    """A model file: users 0, 10, 20, ..., items by name."""
    path = tmp_path_factory.mktemp("served") / "model.hs"
    fit(X, path)
    return path


@pytest.fixture(scope="session")
def names(tmp_path_factory):
    """Titles of all items but the last, and of one that the model does not know."""
    path = tmp_path_factory.mktemp("names") / "names.csv"
    lines = [f"{item},{2000 + number},Title of {number}" for number, item in enumerate(ITEMS[:-1])]
    path.write_text("\n".join(["id,year,title", *lines, "item 99,1999,Unknown"]) + "\n")
    return path


@pytest.fixture(scope="session")
def service(path):
    return Service(path, limits=Limits(n=50, users=40, answers=1000, cells=200))


@dataclass
class Answer:
    status: int
    headers: dict
    text: str

    @property
    def json(self):
        return json.loads(self.text)


def ask(service, method, path, app=None, **options):
    """One request to the application, in this process."""

    async def send():
        transport = httpx.ASGITransport(app or application(service), raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            return await client.request(method, path, **options)

    answer = asyncio.run(send())
    return Answer(answer.status_code, answer.headers, answer.text)


def get(service, path, **params):
    return ask(service, "GET", path, params=params or None)


def post(service, path, payload):
    return ask(service, "POST", path, json=payload)


def check_refused(answer, statuses=range(400, 500)):
    """A refusal is one sentence or two, and its fields; never a traceback."""
    assert answer.status in statuses, (answer.status, answer.text[:300])
    error = answer.json["error"]
    subject = error["parameter"] if error["must"].startswith("must ") else error["must"]
    assert error["message"].startswith(subject)
    assert "Traceback" not in answer.text
    assert "\n" not in error["message"]
    assert len(error["message"]) < 500
    return error
