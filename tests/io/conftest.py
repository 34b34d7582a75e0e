"""Fixtures of all tests here: files written, and read."""

from contextlib import contextmanager

import pytest

from halfseen.errors import DataError
from halfseen.io import observe


@pytest.fixture
def file(tmp_path):
    """Write text or bytes to a file, and return its path."""

    def write(content, name="t.csv"):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / name

    return write


@pytest.fixture
def read(file):
    """Write text to a file, and observe it."""
    return lambda content, **options: observe(file(content), **options)


@contextmanager
def refused(error=DataError, **fields):
    """Expect an error with these fields."""
    with pytest.raises(error) as caught:
        yield
    assert {name: getattr(caught.value, name) for name in fields} == fields
