"""Where it runs. Nothing outside this room knows a device, a thread or a compiled loop."""

from halfseen.engines.base import Engine, Placed, Side
from halfseen.engines.opening import ENGINES, RULES, open_engine

__all__ = ["ENGINES", "RULES", "Engine", "Placed", "Side", "open_engine"]
