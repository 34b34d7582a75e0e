"""The GPU that tests run on, or Triton's interpreter in its place."""

import os

import pytest


def torch_device():
    """ "cuda"; "cpu" where there is no GPU, and Triton interprets its kernels. Skips if torch or Triton is missing."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # before kernels are imported
    pytest.importorskip("triton", reason="Triton is not installed")
    return "cuda" if torch.cuda.is_available() else "cpu"
