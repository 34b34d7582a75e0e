"""Checkpoints: a fit that is stopped anywhere and started again ends with the same bits; what is no good is refused."""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from time import sleep

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import halfseen as hs
from halfseen import archive, array_files, checkpoint, fitting
from halfseen.checkpoint import CheckpointFolder, described, header_of
from halfseen.errors import DataError, DataWarning, EngineError, ParameterError
from halfseen.estimators.squared_models import SquaredFactorization
from halfseen.sampling import markov_chains
from halfseen.sampling.coupling_chain import CouplingChain
from halfseen.uncoupled import sampler
from tests.estimators.models import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RANDOM = np.random.default_rng(0)
TABLE = np.where(RANDOM.random((40, 30)) < 0.5, RANDOM.integers(1, 6, (40, 30)), np.nan)
FEATURES = RANDOM.normal(size=(40, 3)), np.eye(30)[:, ::7]
SMALL = {"n_components": 3, "random_state": 3}
DRAWN = {"inference": "gibbs", "n_sweeps": 14, "n_burn": 6, "n_draws": 6}

ESTIMATORS = [
    hs.WeightedNMF(**SMALL, max_iter=20, tol=0),
    hs.WeightedNMF(**SMALL, max_iter=30, tol=1e-3, accelerate=True, loss="frobenius", unseen="zero", init="rank-one"),
    hs.PoissonFactorization(**SMALL, max_iter=20, tol=0),
    hs.PoissonFactorization(**SMALL, max_iter=15, tol=0, accelerate=False, unseen="missing"),
    hs.BernoulliPoisson(**SMALL, max_iter=15),
    hs.CompoundPoisson(**SMALL, max_iter=15),
    hs.OrdNMF(**SMALL, max_iter=20),
    hs.OrdNMF(**SMALL, max_iter=10, noise="gamma", noise_shape=2.0),
    hs.SquaredOrdNMF(**SMALL, max_iter=15),
    hs.SquaredOrdNMF(**SMALL, max_iter=15, frequency_scaling=0.5, accelerate=False),
    hs.SquaredPoisson(**SMALL, max_iter=15),
    hs.ImplicitMF(**SMALL, max_iter=15, tol=0),
    hs.OrdinalMF(**SMALL, max_iter=15, tol=0),
    hs.OrdinalMF(**SMALL, max_iter=15, tol=0, accelerate=False, own_thresholds="rows"),
    hs.OrdinalMF(**SMALL, max_iter=25, early_stopping=True, n_init=3),
    hs.OrdinalMF(**SMALL, max_iter=10, solver="sgd", n_init=2),
    hs.OrdinalMF(**SMALL, max_iter=15, solver="sgd", early_stopping=True),
    hs.RoundMF(**SMALL, max_iter=10, loss="round", l2=0.1, n_init=2),
    hs.RoundMF(**SMALL, max_iter=20, solver="gd", learning_rate=1e-3),
    hs.RoundMF(**SMALL, max_iter=15, loss="linear"),
    hs.OrdinalMF(**SMALL, **DRAWN, implicit=True, n_chains=3),
    hs.OrdinalMF(**SMALL, **DRAWN, own_thresholds="rows", row_features=FEATURES[0], column_features=FEATURES[1]),
    hs.OrdinalMF(**SMALL, **DRAWN, own_thresholds="columns", biases=False, n_chains=1),
    hs.OrdinalMF(**SMALL, **DRAWN, thresholds=[-1, -0.3, 0.4, 1]),
    hs.UncoupledNMF(**SMALL, n_sweeps=9, n_burn=3, max_sweeps=30, n_draws=8, max_iter=12, tol=0),
    hs.UncoupledNMF(**SMALL, n_sweeps=9, n_burn=3, scale="question", n_chains=1, n_draws=50, max_iter=8),
    hs.UncoupledNMF(**SMALL, method="unmf", max_iter=12, tol=0),
    hs.UncoupledNMF(**SMALL, method="bayes", max_iter=12, prior_rate=None),
    hs.UncoupledNMF(**SMALL, method="decode", max_iter=12),
]


class Killed(Exception):
    """In the place of the end of the process."""


@pytest.fixture(autouse=True)
def no_wait_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def stop(monkeypatch):
    """A function: raise this, or call it, after so many iterations of all runs of fits to come; None lets them be."""
    iterate, left, what = fitting.iterate, [None], [Killed]

    def limited(steps, **options):
        def callback(iteration, state):
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    left[0] = None
                    if isinstance(what[0], type):
                        raise what[0]
                    what[0]()
            return bool(given(iteration, state)) if given is not None else False

        given = options["callback"]
        return iterate(steps, **options | {"callback": callback})

    monkeypatch.setattr(fitting, "iterate", limited)
    monkeypatch.setattr(markov_chains, "iterate", limited)

    def after(count, error=Killed):
        left[0], what[0] = count, error

    return after


def collected(n_comparisons=200):
    """Answers collected apart, some of them lost."""
    whole = hs.Uncoupled.from_coupled(TABLE, n_comparisons, random_state=0)
    questions, respondents = whole.row_of_cell(), whole.respondents
    names = np.repeat(np.arange(whole.n_questions), np.diff(whole.answer_indptr))
    cells = [list(zip(questions[places], respondents[places], strict=True)) for places in (whole.higher, whole.lower)]
    compared = [(*higher, lower) for higher, (_, lower) in zip(*cells, strict=True)]
    kept = np.arange(names.size) % 20 > 0
    return hs.Uncoupled(
        list(zip(questions, respondents, strict=True)),
        list(zip(names[kept], whole.answers[kept], strict=True)),
        compared,
    )


def data_of(estimator):
    if isinstance(estimator, hs.UncoupledNMF):
        return collected()
    return np.nan_to_num(TABLE) if estimator.unseen == "zero" else TABLE


def numbers_of(model):
    """All that must be the same, to the last bit."""
    record, arrays = model.model_, {}
    likelihood = archive.pack(record.likelihood, "likelihood", arrays)
    for side, factor in (("rows", record.rows), ("columns", record.columns)):
        arrays |= {f"{side} {name}": array for name, array in factor._asdict().items()}
    arrays |= {name: array for name, array in model.trace_.items() if name != "seconds"}
    draws = getattr(record, "draws", None) or getattr(getattr(model, "posterior_", None), "draws", None)
    if draws is not None:
        of_draws = draws._asdict() if isinstance(draws, tuple) else {name: getattr(draws, name) for name in draws.state}
        of_draws = {name: np.array(array) for name, array in of_draws.items() if array is not None}
        diagnostics = {f"{name}, mixing": np.array(numbers) for name, numbers in model.diagnostics_.items()}
        arrays |= {f"draws {name}": array for name, array in of_draws.items()} | diagnostics
    arrays = {name: (np.dtype(array.dtype).str, array.shape, array.tobytes()) for name, array in arrays.items()}
    return arrays | {"likelihood": likelihood, "end": (model.n_iter_, model.status_)}


def state_files(folder):
    return {name for name in os.listdir(folder) if name.startswith("state-")}


def iteration_in(folder, stage="fit"):
    body = (folder / "checkpoint.json").read_bytes().splitlines()[0]
    return json.loads(body)["stages"][stage]["iteration"]


def model_with(folder, **params):
    params = {**SMALL, "max_iter": 8, "tol": 0} | params
    return hs.WeightedNMF(**params, checkpoint=hs.Checkpoint(folder, iterations=1))


def name_of(estimator):
    return re.sub(r"array\(.*?\]\)|\s+", " ", str(estimator), flags=re.DOTALL)


# ---------------------------------------------------------------------------------------------------------------------
# the law


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_a_fit_that_is_stopped_and_started_again_ends_with_the_same_bits(estimator, tmp_path, stop):
    expected = numbers_of(clone(estimator).fit(data_of(estimator)))
    moments, stops = random.Random(1), 0
    while True:
        every, threads = moments.choice([1, 1, 2, 3]), moments.choice([1, 2, 3])
        model = clone(estimator).set_params(checkpoint=hs.Checkpoint(tmp_path, iterations=every), n_jobs=threads)
        stop(moments.randint(1, 9) if stops < 8 else None)
        try:
            model.fit(data_of(estimator))
            break
        except Killed:
            stops += 1
    assert stops
    assert numbers_of(model) == expected
    again = clone(estimator).set_params(checkpoint=tmp_path)
    stop(0)  # nothing is left to do
    assert numbers_of(again.fit(data_of(estimator))) == expected


def test_a_larger_max_iter_goes_on_and_a_smaller_one_is_refused(tmp_path, stop):
    expected = numbers_of(hs.WeightedNMF(**SMALL, max_iter=20, tol=0, accelerate=True).fit(TABLE))
    model_with(tmp_path, accelerate=True).fit(TABLE)
    stop(12)  # from the eighth to the twentieth
    assert numbers_of(model_with(tmp_path, max_iter=20, accelerate=True).fit(TABLE)) == expected
    with pytest.raises(ParameterError, match=r"at least the 20 iterations of the checkpoint\. Found 8"):
        model_with(tmp_path, accelerate=True).fit(TABLE)


def test_what_converged_before_stays_so_with_a_larger_max_iter(tmp_path):
    first = model_with(tmp_path, tol=1e-3, max_iter=200).fit(TABLE)
    assert first.status_ is hs.Status.CONVERGED
    assert numbers_of(model_with(tmp_path, tol=1e-3, max_iter=500).fit(TABLE)) == numbers_of(first)


def test_a_fit_killed_after_its_last_iteration_and_before_its_end_was_saved_ends_there(tmp_path, monkeypatch):
    expected = model_with(tmp_path / "whole", tol=1e-3, max_iter=200).fit(TABLE)
    stages = iter(range(expected.n_iter_))

    def step(self, iteration, value, engine=None):
        next(stages)
        return real(self, iteration, value, engine)

    def keep_open(self, iteration, status, value, engine=None):
        real(self, iteration, value, engine)
        raise Killed

    real = checkpoint.Stage.step
    monkeypatch.setattr(checkpoint.Stage, "step", step)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Stage, "end", keep_open)
        with pytest.raises(Killed):
            model_with(tmp_path / "cut", tol=1e-3, max_iter=200).fit(TABLE)
    assert iteration_in(tmp_path / "cut") == expected.n_iter_
    assert numbers_of(model_with(tmp_path / "cut", tol=1e-3, max_iter=200).fit(TABLE)) == numbers_of(expected)


def test_without_a_seed_the_same_draws_go_on(tmp_path, stop):
    """The second start of stochastic steps needs what is drawn after the stop."""
    model = hs.OrdinalMF(3, solver="sgd", n_init=2, max_iter=5, tol=0)
    stop(3)
    with pytest.raises(Killed):
        model.set_params(checkpoint=hs.Checkpoint(tmp_path / "a", iterations=1)).fit(TABLE)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    stop(None)
    first, second = (clone(model).set_params(checkpoint=tmp_path / name).fit(TABLE) for name in "ab")
    assert numbers_of(first) == numbers_of(second)


def test_a_generator_ends_where_it_would_have_without_a_stop(tmp_path, stop):
    whole, stopped, resumed = (np.random.RandomState(5) for _ in range(3))
    expected = hs.OrdinalMF(3, solver="sgd", max_iter=6, tol=0, random_state=whole).fit(TABLE)
    params = {"solver": "sgd", "max_iter": 6, "tol": 0, "checkpoint": hs.Checkpoint(tmp_path, iterations=1)}
    stop(4)
    with pytest.raises(Killed):
        hs.OrdinalMF(3, random_state=stopped, **params).fit(TABLE)
    stop(None)
    assert numbers_of(hs.OrdinalMF(3, random_state=resumed, **params).fit(TABLE)) == numbers_of(expected)
    assert resumed.randint(2**31) == whole.randint(2**31)


def test_the_search_for_l2_is_done_once(tmp_path, stop, monkeypatch):
    ratings = hs.data.planted(200, 120, 3, seen=0.3, noise="poisson", random_state=0)[0]
    model = hs.SquaredPoisson(3, max_iter=6, tol=0, random_state=np.random.RandomState(2))
    expected = numbers_of(clone(model).fit(np.nan_to_num(ratings)))
    model.set_params(checkpoint=hs.Checkpoint(tmp_path, iterations=1))
    shares = []
    real = SquaredFactorization._best_share

    def best_share(*args):
        shares.append(real(*args))
        stop(3)
        return shares[-1]

    monkeypatch.setattr(SquaredFactorization, "_best_share", best_share)
    with pytest.raises(Killed):
        clone(model).fit(np.nan_to_num(ratings))
    stop(None)
    assert numbers_of(clone(model).fit(np.nan_to_num(ratings))) == expected
    assert len(shares) == 1
    assert shares[0] is not None


def test_of_several_starts_only_the_best_keeps_its_factors(tmp_path):
    estimator = hs.OrdinalMF(**SMALL, max_iter=10, tol=0, n_init=4, checkpoint=tmp_path)
    estimator.fit(TABLE)
    one = hs.OrdinalMF(**SMALL, max_iter=10, tol=0, checkpoint=tmp_path / "one").fit(TABLE)
    assert one.n_iter_ == 10
    assert len(state_files(tmp_path)) == len(state_files(tmp_path / "one"))


# ---------------------------------------------------------------------------------------------------------------------
# what is refused


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model_with(folder, n_components=60).fit(TABLE)  # factors large enough for files
    return folder


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"l2": 0.5}, "l2=0.0 where 0.5 is asked for"),
        ({"random_state": 4}, "random_state=3 where 4 is asked for"),
        ({"tol": 1e-3}, "tol=0 where 0.001 is asked for"),
        ({"init": (np.ones((40, 3)), np.ones((30, 3)))}, 'init="random" where ["ndarray'),
    ],
)
def test_a_checkpoint_of_other_parameters_is_refused_by_name(params, found, tmp_path):
    model_with(tmp_path).fit(TABLE)
    with pytest.raises(DataError, match=re.escape(f"Found {found}")):
        model_with(tmp_path, **params).fit(TABLE)


def test_a_checkpoint_of_other_data_or_another_class_is_refused(tmp_path):
    model_with(tmp_path).fit(TABLE)
    other = TABLE.copy()
    other[np.isfinite(other)] += 1
    with pytest.raises(DataError, match="Found a checkpoint of other data in "):
        model_with(tmp_path).fit(other)
    with pytest.raises(DataError, match="Found a checkpoint of WeightedNMF where OrdinalMF is fitted in"):
        hs.OrdinalMF(**SMALL, checkpoint=tmp_path).fit(TABLE)


def test_one_of_another_engine_is_refused_unless_it_gives_the_same_bits():
    headers = {name: header_of(hs.OrdNMF(engine=name), "data") for name in ("cpu", "dask", "cuda")}
    assert headers["cpu"] == headers["dask"] != headers["cuda"]


def test_of_several_runs_max_iter_must_be_the_same(tmp_path):
    hs.OrdinalMF(**SMALL, max_iter=3, n_init=2, checkpoint=tmp_path).fit(TABLE)
    with pytest.raises(DataError, match="max_iter=3 where 5 is asked for"):
        hs.OrdinalMF(**SMALL, max_iter=5, n_init=2, checkpoint=tmp_path).fit(TABLE)


def test_threads_and_the_bar_may_differ(tmp_path):
    model_with(tmp_path).fit(TABLE)
    model_with(tmp_path, n_jobs=1, verbose=1).fit(TABLE)


def edited(finished, folder, edit):
    """A copy of a checkpoint with another manifest, whose checksum is right."""
    shutil.copytree(finished, folder)
    file = folder / "checkpoint.json"
    text = edit
    if callable(edit):
        body = json.loads(file.read_bytes().splitlines()[0])
        edit(body)
        text = json.dumps(body).encode()
    file.write_bytes(text + b"\n" + checkpoint.blake2b(text, digest_size=16).hexdigest().encode() + b"\n")
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda body: body.update(version=2),
            "has format 1 and the same numbers. Found format 2, written by halfseen 9.1 in",
        ),
        (
            lambda body: body["header"].update(numbers=0),
            "has format 1 and the same numbers. Found other numbers, written by halfseen 9.1 in",
        ),
    ],
    ids=["format", "numbers"],
)
def test_another_version_is_refused(change, said, finished, tmp_path):
    def edit(body):
        body["halfseen"] = "9.1"
        change(body)

    with pytest.raises(DataError, match=re.escape(said)):
        model_with(edited(finished, tmp_path / "run", edit), n_components=60).fit(TABLE)


def piece_of(body, along="rows"):
    return next(one for one in body["arrays"].values() if one["along"] == along)["pieces"][0]


def replaced(folder, body, array, along="columns"):
    """Another array, whose checksum is right, in the place of one."""
    piece = piece_of(body, along)
    piece.update(array_files.write_array(array, folder / piece["path"])._asdict(), path=piece["path"])
    piece.update(shape=list(array.shape))


FILES = {"shape": [[1, 60], [-1, 60], [1 << 40, 60], [1 << 62, 4], [40, "60"], 40, []], "dtype": ["|O", "zz", [], None],
         "path": ["../run/state-00000001-0", "/etc/hostname", 3], "crc": [None, "0", -1]}  # fmt: skip
FIELDS = {"iteration": ["a", -5, None], "status": ["FOO", []], "random": [[], 3], "value": [None, 3]}
STATE = {"factor": ["Foo", []], "rows": [[{"$file": "nope"}], [{"$file": []}], [{"$array": ["<f8", [1 << 40, 8], ""]}],
         [{"$array": ["<f8", [40, 60], ""]}], [], 3], "objective": ["x", None], "likelihood": [None], "kept": [3, []],
         }  # fmt: skip
EDITS = {
    "list": b"[]", "dict": b"{}", "deep": b"[" * 200_000, "text": b"hello", "bytes": b"\xff\xfe{}",
    **{f"without {name}": lambda body, name=name: body.pop(name)
       for name in ("format", "version", "generation", "seed", "header", "stages", "arrays")},
    **{f"{name}={new}": lambda body, name=name, new=new: body.update({name: new})
       for name, new in (("version", "x"), ("header", [1]), ("stages", []), ("generation", -1), ("seed", 1 << 32))},
    **{f"{name}={new}": lambda body, name=name, new=new: piece_of(body).update({name: new})
       for name, news in FILES.items() for new in news},
    **{f"{name}={new}": lambda body, name=name, new=new: body["stages"]["fit"].update({name: new})
       for name, news in FIELDS.items() for new in news},
    **{f"{name}={new}": lambda body, name=name, new=new: body["stages"]["fit"]["value"]["state"].update({name: new})
       for name, news in STATE.items() for new in news},
    "no state": lambda body: body["stages"]["fit"]["value"].pop("state"),
    "no file": lambda body: next(iter(body["arrays"].values())).update(pieces=[]),
    "along": lambda body: next(iter(body["arrays"].values())).update(along="foo"),
    "trace": lambda body: body["stages"]["fit"]["value"]["trace"]["seconds"].pop(),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_manifest_that_no_fit_has_written_is_refused(edit, finished, tmp_path):
    with pytest.raises(DataError, match=r"A checkpoint must be whole\. Found missing, cut off or changed bytes in"):
        model_with(edited(finished, tmp_path / "run", edit), n_components=60).fit(TABLE)


@pytest.mark.parametrize(
    ("along", "array"),
    [
        ("columns", np.ones((1, 60))),
        ("columns", np.ones((30, 61))),
        ("columns", np.ones((30, 60), np.float32)),
        ("rows", np.ones((20, 120))),
        ("rows", np.ones(40)),
        ("rows", np.ones((41, 60))),
    ],
)
def test_arrays_of_other_shapes_or_types_are_refused(along, array, finished, tmp_path):
    """Compiled code would read what is not there."""
    folder = tmp_path / "run"
    edited(finished, folder, lambda body: replaced(folder, body, array, along))
    with pytest.raises(DataError, match=r"A checkpoint must be whole\."):
        model_with(folder, n_components=60).fit(TABLE)


@pytest.mark.parametrize(
    ("model", "harm"),
    [
        (hs.WeightedNMF(**SMALL, max_iter=4, accelerate=True), lambda saved: saved["momentum"][2].popitem()),
        (hs.OrdinalMF(**SMALL, max_iter=4, early_stopping=True), lambda saved: saved["stopping"]["losses"].pop()),
        (hs.OrdinalMF(**SMALL, max_iter=4, early_stopping=True), lambda saved: saved["stopping"]["best"].popitem()),
        (hs.OrdinalMF(**SMALL, max_iter=4, solver="sgd"), lambda saved: saved["state"]["kept"].reverse()),
        (hs.OrdinalMF(**SMALL, max_iter=4), lambda saved: saved["state"]["likelihood"]["$arrays"].popitem()),
    ],
    ids=["momentum", "losses", "best", "sums", "thresholds"],
)
def test_other_memories_are_refused(model, harm, tmp_path):
    model = clone(model).set_params(tol=0, checkpoint=tmp_path / "run").fit(TABLE)
    stage = "start 0" if isinstance(model, hs.OrdinalMF) else "fit"
    edited(tmp_path / "run", tmp_path / "other", lambda body: harm(body["stages"][stage]["value"]))
    with pytest.raises(DataError, match=r"A checkpoint must be whole\."):
        clone(model).set_params(checkpoint=tmp_path / "other").fit(TABLE)


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "delete"])
def test_a_damaged_file_is_refused_whichever_it_is(harm, finished, tmp_path):
    names = [*sorted(state_files(finished)), "checkpoint.json"]
    assert len(names) > 2
    for name in names:
        folder = shutil.copytree(finished, tmp_path / name)
        file = folder / name
        content = bytearray(file.read_bytes())
        if harm == "flip":
            content[len(content) // 2] ^= 1
        content = {
            "cut": content[:-1] if name.startswith("state") else content[:-40],
            "flip": content,
            "empty": b"",
        }.get(harm)
        file.unlink() if content is None else file.write_bytes(content)
        before = {one: (folder / one).read_bytes() for one in os.listdir(folder) if one != "checkpoint.lock"}
        with pytest.raises(DataError, match=r"A checkpoint must be whole\. Found missing, cut off or changed bytes"):
            model_with(folder, n_components=60).fit(TABLE)
        after = {one: (folder / one).read_bytes() for one in os.listdir(folder) if one != "checkpoint.lock"}
        assert after == before  # a backup of one file is enough


def test_a_folder_with_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(DataError, match=r"must have a folder of its own\. Found 'thesis\.tex'"):
        model_with(tmp_path).fit(TABLE)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(DataError, match=r"must have a writable folder with room enough\. Could not write .*run"):
        model_with(tmp_path / "run").fit(TABLE)


def test_only_files_of_checkpoints_are_deleted(tmp_path):
    model_with(tmp_path, n_components=60).fit(TABLE)
    ours = set(os.listdir(tmp_path))
    theirs = {"notes.txt", "state-1", "state-00000099", ".state-00000001-0.part"}
    left = {".state-00000099-0.0123456789abcdef.part", ".checkpoint.json.0123456789abcdef.part", "state-00000099-0"}
    for name in theirs | left:
        (tmp_path / name).write_text("")
    model_with(tmp_path, n_components=60).fit(TABLE)
    assert set(os.listdir(tmp_path)) == ours | theirs


@pytest.mark.skipif(array_files.fcntl is None, reason="no locks here")
def test_a_second_process_in_the_same_folder_is_refused(tmp_path):
    model, said = model_with(tmp_path), r"of one fit at a time\. Found another fit that writes to"
    with CheckpointFolder(hs.Checkpoint(tmp_path), header_of(model, "data")), pytest.raises(DataError, match=said):
        model.fit(TABLE)
    shutil.rmtree(tmp_path)
    model.fit(TABLE)


@pytest.mark.parametrize(("name", "value"), [("seconds", -1.0), ("iterations", 0)])
def test_how_often_is_checked(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        hs.Checkpoint("run", **{name: value})


@pytest.mark.parametrize("value", [3, "", "\0", b"run", None])
def test_what_is_no_folder_is_refused(value):
    if value is not None:
        with pytest.raises(ParameterError, match="checkpoint must be None, the path of a folder, or a Checkpoint"):
            hs.WeightedNMF(checkpoint=value).fit(TABLE)
    with pytest.raises(ParameterError, match="folder must be the path of a folder"):
        hs.Checkpoint(value)


def test_parameters_are_told_apart_by_all_that_is_in_them():
    frame = pd.DataFrame({"item": ["a", "b"], "genre": ["x", "y"]})
    other = frame.assign(genre=["x", "z"])
    large, changed = np.zeros(1000), np.zeros(1000)
    changed[500] = 1e-300
    assert described(frame) == described(frame.copy()) != described(other)
    assert described(large) == described(large.copy()) != described(changed)
    assert described(np.random.RandomState(0)) == described(np.random.RandomState(0))
    assert described(np.random.RandomState(0)) != described(np.random.RandomState(1))


# ---------------------------------------------------------------------------------------------------------------------
# signals


def test_ctrl_c_saves_the_last_iteration(tmp_path, stop):
    expected = numbers_of(hs.WeightedNMF(**SMALL, max_iter=20, tol=0).fit(TABLE))
    model = hs.WeightedNMF(**SMALL, max_iter=20, tol=0, checkpoint=tmp_path)  # no save is due within a minute
    stop(7, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(TABLE)
    assert iteration_in(tmp_path) == 7
    stop(13)
    assert numbers_of(clone(model).fit(TABLE)) == expected


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_saves_and_ends_the_process(name, tmp_path, stop):
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        stop(4, lambda: os.kill(os.getpid(), number))
        with pytest.raises(SystemExit) as ended:
            hs.WeightedNMF(**SMALL, max_iter=20, tol=0, checkpoint=tmp_path).fit(TABLE)
        assert ended.value.code == 128 + number
        assert iteration_in(tmp_path) >= 4
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_the_handler_of_the_caller_comes_after_the_save_and_is_put_back(tmp_path, stop):
    saved = []

    def handler(number, frame):
        saved.append(iteration_in(tmp_path))

    before = signal.signal(signal.SIGTERM, handler)
    try:
        stop(4, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(KeyboardInterrupt):
            hs.WeightedNMF(**SMALL, max_iter=20, tol=0, checkpoint=tmp_path).fit(TABLE)
        assert len(saved) == 1
        assert saved[0] >= 4
        assert signal.getsignal(signal.SIGTERM) is handler
        stop(4)
        with pytest.raises(Killed):
            model_with(tmp_path / "other").fit(TABLE)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signal")
def test_what_nohup_ignores_stays_ignored(tmp_path, stop):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop(4, lambda: os.kill(os.getpid(), signal.SIGHUP))
        assert model_with(tmp_path).fit(TABLE).n_iter_ == 8
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_states_that_change_in_place_are_saved_before_the_next_iteration_begins(tmp_path):
    """As those of samplers."""
    state, before = np.zeros(5000), signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def sample(stage):
        for sweep in range(1, 9):
            state[:] += 1.0
            if sweep == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            state[:] += 1.0
            stage.step_in_place(sweep, lambda: {"state": state})

    try:
        with pytest.raises(SystemExit), CheckpointFolder(hs.Checkpoint(tmp_path), header_of(hs.OrdinalMF(), "")) as one:
            sample(one.stage("sampling", np.random.default_rng(0)))
    finally:
        signal.signal(signal.SIGTERM, before)
    with CheckpointFolder(hs.Checkpoint(tmp_path), header_of(hs.OrdinalMF(), "")) as one:
        record = one.stage("sampling", np.random.default_rng(1)).load()
        assert record.iteration == 3
        assert (one.unpack(record.value)["state"] == 6.0).all()


def test_a_fit_in_a_thread_saves_without_signals(tmp_path):
    fitted = []
    thread = threading.Thread(target=lambda: fitted.append(model_with(tmp_path).fit(TABLE)))
    thread.start()
    thread.join()
    assert fitted[0].n_iter_ == iteration_in(tmp_path) == 8


# ---------------------------------------------------------------------------------------------------------------------
# when, and what for


def test_saves_take_at_most_a_fiftieth_of_the_time(tmp_path, monkeypatch):
    """With iterations of 2 s and saves of 1 s, it is due every 50 s, though it was asked for every 10."""
    clock, writes = [0.0], []

    def write_array(array, path):
        clock[0] += 1.0
        writes.append(clock[0])
        return real(array, path)

    real = checkpoint.write_array
    monkeypatch.setattr(checkpoint, "write_array", write_array)
    monkeypatch.setattr(checkpoint, "perf_counter", lambda: clock[0])
    with CheckpointFolder(hs.Checkpoint(tmp_path, seconds=10.0), header_of(hs.OrdNMF(), "")) as folder:
        stage, array = folder.stage("fit"), np.zeros(5000)
        for iteration in range(1, 501):
            clock[0] += 2.0
            stage.step(iteration, lambda: array)
    assert len(writes) / clock[0] <= checkpoint.SHARE_OF_TIME
    assert np.diff(writes).max() < 60.0
    assert writes[0] == 11.0


def test_a_full_disk_is_no_reason_to_lose_the_fit(tmp_path, monkeypatch):
    params = {"n_components": 60, "max_iter": 8}
    expected = numbers_of(hs.WeightedNMF(**SMALL | params, tol=0).fit(TABLE))
    model_with(tmp_path, **params | {"max_iter": 2}).fit(TABLE)
    real, before = checkpoint.write_array, state_files(tmp_path)

    def full(array, path):
        real(array, path)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_array", full)
        with pytest.warns(DataWarning, match="writable folder with room enough.*the fit goes on"):
            assert numbers_of(model_with(tmp_path, **params).fit(TABLE)) == expected
    assert iteration_in(tmp_path) == 2
    assert state_files(tmp_path) == before
    assert numbers_of(model_with(tmp_path, **params).fit(TABLE)) == expected


@pytest.mark.parametrize("lose", [shutil.rmtree, lambda folder: folder.rename(folder.with_name("other"))])
def test_a_folder_that_is_gone_is_no_reason_to_lose_the_fit(lose, tmp_path, stop):
    params = {"n_components": 60, "max_iter": 8}
    expected = numbers_of(hs.WeightedNMF(**SMALL | params, tol=0).fit(TABLE))
    stop(4, lambda: lose(tmp_path / "run"))
    with pytest.warns(DataWarning, match=r"Could not write .*: No such file or directory\. .*the fit goes on"):
        assert numbers_of(model_with(tmp_path / "run", **params).fit(TABLE)) == expected


@pytest.mark.parametrize("is_about_the_folder", [True, False])
def test_of_errors_of_an_engine_those_about_the_folder_are_failed_saves(is_about_the_folder, tmp_path):
    class Engine:
        def store(self, arrays, folder):
            found = f"a worker that does not see '{folder}/state'" if is_about_the_folder else "no workers"
            raise EngineError("All must be well.", found=found)

    with CheckpointFolder(hs.Checkpoint(tmp_path), header_of(hs.OrdNMF(), "")) as folder:
        expected = pytest.warns(DataWarning) if is_about_the_folder else pytest.raises(EngineError)
        with expected:
            folder.stage("fit").end(1, None, lambda: checkpoint.Placed("an array", None), Engine())


def test_model_files_know_nothing_of_it(tmp_path):
    model_with(tmp_path / "run").fit(TABLE).save(tmp_path / "model.hs")
    assert hs.load(tmp_path / "model.hs").checkpoint is None


def test_the_last_fit_of_a_search_and_of_a_blend_has_the_checkpoint(tmp_path):
    search = hs.RankSearch(model_with(tmp_path / "search", max_iter=4), [1, 2], n_folds=2, random_state=0).fit(TABLE)
    assert search.best_estimator_.n_iter_ == iteration_in(tmp_path / "search")
    models = [hs.ImplicitMF(2, max_iter=3, tol=0, checkpoint=tmp_path / "blend"), hs.Popularity()]
    blend = hs.Blend(models, random_state=0).fit(np.nan_to_num(TABLE))
    assert iteration_in(tmp_path / "blend") == 3
    again = hs.Blend(models, random_state=0).fit(np.nan_to_num(TABLE))
    assert np.array_equal(blend.models_["implicitmf"].W, again.models_["implicitmf"].W)


# ---------------------------------------------------------------------------------------------------------------------
# chains


def chains_with(folder, **params):
    params = {**SMALL, "n_sweeps": 9, "n_burn": 3, "max_sweeps": 30, "n_draws": 8, "max_iter": 5, "tol": 0} | params
    return hs.UncoupledNMF(**params, checkpoint=folder and hs.Checkpoint(folder, iterations=2))


def test_each_draw_is_written_once(tmp_path, stop, monkeypatch):
    estimator = hs.OrdinalMF(**SMALL, **DRAWN)
    expected = numbers_of(clone(estimator).fit(TABLE))
    sizes, real = [], checkpoint.write_array

    def write_array(array, path):
        sizes.append(array.dtype == np.uint8)
        return real(array, path)

    monkeypatch.setattr(checkpoint, "write_array", write_array)
    monkeypatch.setattr(checkpoint, "_LARGEST_INLINE", 100)
    model = clone(estimator).set_params(checkpoint=hs.Checkpoint(tmp_path, iterations=1))
    stop(11)
    with pytest.raises(Killed):
        clone(model).fit(TABLE)
    stop(None)
    assert 0 < sum(sizes) < DRAWN["n_draws"] // 2
    assert numbers_of(clone(model).fit(TABLE)) == expected
    assert sum(sizes) == DRAWN["n_draws"] // 2  # of both chains together


def test_the_choice_of_the_number_of_components_goes_on(tmp_path, stop, monkeypatch):
    """Of the numbers that are done, the scores are kept."""
    monkeypatch.setattr(sampler, "CHOICES", (1, 2, 3))
    monkeypatch.setattr(sampler, "SHORT", markov_chains.Plan(8, 2, 16))
    expected = numbers_of(chains_with(None, n_components="auto").fit(collected()))
    for count in (13, 10):  # in the second chains, and after the six that are left of them in the third
        stop(count)
        with pytest.raises(Killed):
            chains_with(tmp_path, n_components="auto").fit(collected())
    assert iteration_in(tmp_path, "k = 1") == iteration_in(tmp_path, "k = 2") == 0
    assert iteration_in(tmp_path, "k = 3") > 0
    stop(None)
    assert numbers_of(chains_with(tmp_path, n_components="auto").fit(collected())) == expected


def test_chains_that_a_callback_or_ctrl_c_ended_go_on(tmp_path, stop):
    """Ctrl-C comes in the middle of a sweep, as a rule: what was saved before counts."""
    expected = chains_with(None).fit(collected())
    first = chains_with(tmp_path).set_callbacks(Recorder(stop_after=5)).fit(collected())
    assert (first.status_, first.n_iter_) == (hs.Status.STOPPED, 5)
    assert iteration_in(tmp_path, "sweeps") == 5
    stop(6, KeyboardInterrupt)
    second = chains_with(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        second.fit(collected())
    assert (second.status_, iteration_in(tmp_path, "sweeps")) == (hs.Status.INTERRUPTED, 11)
    recorder = Recorder()
    assert numbers_of(chains_with(tmp_path).set_callbacks(recorder).fit(collected())) == numbers_of(expected)
    seen = [model for model in recorder.models if model is not None][:-1]  # the last one is the fit
    assert [model.n_iter_ for model in seen] == list(range(12, expected.n_iter_ + 1))
    assert all(len(numbers) == model.n_iter_ for model in seen for numbers in model.trace_.values())


def test_chains_of_other_arrays_are_refused(tmp_path, monkeypatch):
    chains_with(tmp_path).fit(collected())
    monkeypatch.setattr(CouplingChain, "state", property(lambda self: {"A": self.A}))
    with pytest.raises(DataError, match=r"the arrays that this version of halfseen asks for\. Found others in"):
        chains_with(tmp_path).fit(collected())


SCRIPT = """
import sys
from time import sleep
import numpy as np
import halfseen as hs

class Slow:
    def setup(self, estimator, context): pass
    def teardown(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context): pass
    def on_fit_task_end(self, estimator, context):
        print("sweep", flush=True)
        sleep(0.02)

model = hs.OrdinalMF(3, inference="gibbs", n_sweeps=100, n_burn=10, random_state=3, checkpoint="run")
model.set_callbacks(Slow()).fit(np.load("table.npy"))
"""


def test_a_sweep_is_finished_and_saved_after_sigterm(tmp_path):
    np.save(tmp_path / "table.npy", TABLE)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    for _ in range(5):
        assert process.stdout.readline() == "sweep\n"
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 128 + signal.SIGTERM
    assert iteration_in(tmp_path / "run", "sweeps") == 5 + rest.count("sweep")
    model = hs.OrdinalMF(3, inference="gibbs", n_sweeps=100, n_burn=10, random_state=3)
    resumed = clone(model).set_params(checkpoint=tmp_path / "run").fit(TABLE)
    assert numbers_of(resumed) == numbers_of(model.fit(TABLE))


# ---------------------------------------------------------------------------------------------------------------------
# the command line


def test_the_same_command_resumes_after_sigterm(tmp_path):
    rows, columns = np.nonzero(RANDOM.random((600, 400)) < 0.2)  # tens of thousands of iterations would not be enough
    stars = RANDOM.integers(1, 6, rows.size)
    pd.DataFrame({"user": rows, "item": columns, "stars": stars}).to_csv(tmp_path / "stars.csv", index=False)
    command = [sys.executable, "-c", "from halfseen.cli import main; main()", "fit", "stars.csv", "--method", "ordnmf"]
    command += ["-k", "20", "--tol", "0", "--checkpoint", "run/", "-o", "model.hs", "-q", "--max-iter"]
    for seconds in (0.3, 1, 2, 4, 8, 16):  # until an iteration is done
        first = subprocess.Popen([*command, "1000000"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        while not (tmp_path / "run" / "checkpoint.json").exists() and first.poll() is None:
            sleep(0.02)
        sleep(seconds)
        first.send_signal(signal.SIGTERM)
        text = first.communicate(timeout=60)[1]
        assert first.returncode in (143, -signal.SIGTERM), text  # as a command, or before it had begun to fit
        found = re.search(r"Saved iteration (\d+) in run/; the same command resumes.\n", text)
        if found:
            break
        shutil.rmtree(tmp_path / "run")
    saved = int(found[1])
    assert first.returncode == 143
    assert iteration_in(tmp_path / "run") == saved
    assert not (tmp_path / "model.hs").exists()
    second = subprocess.run([*command, str(saved + 5)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert second.stderr.splitlines()[0] == f"Resuming from iteration {saved} of run/."
    model = hs.load(tmp_path / "model.hs")
    expected = hs.OrdNMF(20, max_iter=saved + 5, tol=0, random_state=0).fit(tmp_path / "stars.csv")
    assert np.array_equal(model.W_, expected.W_)
    assert np.array_equal(model.H_, expected.H_)
    assert np.array_equal(model.trace_["objective"], expected.trace_["objective"])
