"""Where it runs. Nothing outside this room knows a device, a thread or a compiled loop."""

from halfseen.engines.base import Descent, Engine, Placed, Pulled, Side
from halfseen.engines.opening import ENGINES, RULES, open_engine

__all__ = ["ENGINES", "RULES", "Descent", "Engine", "Placed", "Pulled", "Side", "open_engine"]
