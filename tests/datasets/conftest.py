"""Fixtures of all tests here."""

from tests.datasets.server import folder, offered, published, put  # noqa: F401
