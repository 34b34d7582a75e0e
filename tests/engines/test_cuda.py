"""What the CUDA engine refuses, and leaves as it was; no GPU is needed."""

import numpy as np
import pytest

from halfseen import observe
from halfseen.errors import EngineError
from halfseen.likelihoods import CompoundPoisson, Poisson
from tests.engines.devices import torch_device


@pytest.fixture
def engine():
    torch_device()
    from halfseen.engines.cuda import CudaEngine

    return CudaEngine("cpu")


@pytest.mark.parametrize(("free", "fits"), [(1e9, (True, True)), (7_000, (True, False)), (1_000, (False, False))])
def test_a_fit_without_room_is_refused_with_the_arithmetic(engine, monkeypatch, free, fits):
    """60 cells of 64 and 144 bytes, and 20 factors of 16 x 1 numbers of 8."""
    import torch

    engine.device = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, free))
    for name in ("memory_reserved", "memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda device: 0)
    for likelihood, fit in zip((Poisson(), CompoundPoisson(1.0)), fits, strict=True):
        if fit:
            engine.check_memory(observe(np.ones((10, 6))), 1, likelihood)
            continue
        with pytest.raises(EngineError) as refusal:
            engine.check_memory(observe(np.ones((10, 6))), 1, likelihood)
        assert refusal.value.parameter == "engine"
        assert "60 cells of" in refusal.value.must


def test_memory_that_runs_out_is_an_engine_error_and_settings_are_restored(engine):
    import torch

    torch.set_float32_matmul_precision("high")
    seen = []

    def run_out():
        with engine:
            seen.append(torch.get_float32_matmul_precision())
            raise torch.OutOfMemoryError("CUDA out of memory")

    try:
        with pytest.raises(EngineError):
            run_out()
        assert (*seen, torch.get_float32_matmul_precision()) == ("highest", "high")
    finally:
        torch.set_float32_matmul_precision("highest")


def test_arrays_that_may_not_be_written_are_copied(engine):
    fixed = np.arange(6.0)
    fixed.flags.writeable = False
    assert engine.asarray(fixed).tolist() == fixed.tolist()
