"""Where it runs. Nothing outside this room knows a device, a thread or a compiled loop."""

from halfseen.engines.base import Cells, Engine, Side
from halfseen.engines.opening import ENGINES, open_engine

__all__ = ["ENGINES", "Cells", "Engine", "Side", "open_engine"]
