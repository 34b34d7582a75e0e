"""Values and indices collected apart: three lists read, checked against each other, and put into row order."""

from halfseen.data.uncoupled.uncoupled import Uncoupled

__all__ = ["Uncoupled"]
