"""The methods for uncoupled data that are compared: the paper's, and those of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import halfseen
from halfseen.data import Uncoupled
from halfseen.studies.unmf.protocol import Effort, quietly


@dataclass(frozen=True)
class Method:
    """A way to fit `UncoupledNMF`; `k` components, or as many as the paper has for the data."""

    name: str
    how: Mapping[str, Any]
    k: int | None = None

    def fit(self, seen: Uncoupled, k: int, effort: Effort, seed: int) -> Any:
        """The fitted model. What loops does so for a fixed number of iterations: nothing looks at what is predicted."""
        if self.how["method"] == "gibbs":
            length: dict[str, Any] = {"n_sweeps": effort.sweeps, "n_burn": effort.burn}
        else:
            length = {"max_iter": effort.iterations, "tol": 0.0}
        with quietly():
            return halfseen.UncoupledNMF(self.k or k, **self.how, **length, random_state=seed).fit(seen)


ZERO = Method("UNMF, λ zero", {"method": "unmf", "balance": "zero"})
HALF = Method("UNMF, λ half", {"method": "unmf", "balance": "half"})
WHOLE = Method("UNMF, λ full", {"method": "unmf", "balance": "full"})
KL = Method("UNMF, λ full, KL", {"method": "unmf", "balance": "full", "loss": "kullback-leibler"})
BAYES = Method("bayes", {"method": "bayes"})
DECODE = Method("decode, k = 1", {"method": "decode"}, k=1)
GIBBS = Method("gibbs, k = 5", {"method": "gibbs"}, k=5)

#: The first two are the paper's.
METHODS = (ZERO, HALF, WHOLE, KL, BAYES, DECODE, GIBBS)
