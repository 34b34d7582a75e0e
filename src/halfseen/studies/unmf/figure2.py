"""Figure 2: the true matrix and the estimated ones, as heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Array
from halfseen.studies.base import Column, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.unmf import PAPER
from halfseen.studies.unmf.methods import GIBBS, HALF
from halfseen.studies.unmf.protocol import FULL, QUICK, Effort, Fold, folds
from halfseen.studies.unmf.sets import SYNTHETIC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Comparisons a row, as in the paper.
N_PER = 12
TRUTH = "true matrix"
PANEL = (3.6, 3.6)


class Figure2(Study):
    name = "unmf/figure2"
    paper = PAPER
    title = f"Heat maps of the synthetic matrix, true and estimated from {N_PER} comparisons a row"

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        effort = QUICK if quick else FULL
        X = SYNTHETIC.load(seed)
        fold = folds(X, seed)[0]
        seen = fold.taken_apart(N_PER, seed)
        matrices = {TRUTH: X.to_dense()}
        for method in (HALF, GIBBS):
            tell(method.name)
            matrices[method.name] = method.fit(seen, SYNTHETIC.k, effort, fold.seed).complete(seen)
        table = _table(matrices, fold, effort)
        picture = Picture("", self.title, partial(draw, matrices, fold.places))
        return Result(_summary(table), [table], [picture])


def _table(matrices: Mapping[str, Array], fold: Fold, effort: Effort) -> Table:
    columns = [Column("estimate"), *(Column(where, "MAE", ".3f") for where in ("training cells", "test cells", "all"))]
    is_test = np.zeros(fold.test.shape, bool)
    is_test[fold.places] = True
    rows: list[list[Any]] = []
    for name, matrix in matrices.items():
        errors = np.abs(matrix - matrices[TRUTH])
        if name != TRUTH:
            rows.append([name, *(float(part.mean()) for part in (errors[~is_test], errors[is_test], errors))])
    footnote = (
        "One draw of the matrix, noise and all, and the first of its five folds. The paper does not tell which of its "
        "two versions it shows. At training cells gibbs has the mean of the answers that the cell may have, UNMF the "
        f"product of its factors. UNMF has {effort.iterations} iterations, gibbs {effort.sweeps} sweeps."
    )
    return Table(f"Distance from the true matrix with {N_PER} comparisons a row", columns, rows, [footnote])


def _summary(table: Table) -> str:
    told = "; ".join(
        f"{name} {error:.3f}" for name, error in zip(table.column("estimate"), table.column("MAE all"), strict=True)
    )
    return f"Mean absolute distance from the true matrix over all cells: {told}."


def draw(matrices: Mapping[str, Array], test_places: tuple[Array, Array], figure: Figure) -> None:
    """A heat map a matrix, all in one scale, that of the truth; dots where nobody was asked."""
    figure.set_size_inches(PANEL[0] * len(matrices) + 0.8, PANEL[1])
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    low, high = matrices[TRUTH].min(), matrices[TRUTH].max()
    for axes, letter, (name, matrix) in zip(panels, "abc", matrices.items(), strict=True):
        image = axes.imshow(matrix, cmap="cividis", vmin=low, vmax=high)
        axes.set(title=f"({letter}) {name}", xlabel="column")
        axes.set_xticks(range(0, matrix.shape[1], 2), range(1, matrix.shape[1] + 1, 2))
        axes.set_yticks(range(0, matrix.shape[0], 2), range(1, matrix.shape[0] + 1, 2))
        if name != TRUTH:
            axes.plot(*test_places[::-1], ".", color="white", markeredgecolor="black", label="test cell")
    panels[0].set_ylabel("row")
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center")
    figure.colorbar(image, ax=panels, label="value", extend="both")


STUDY = Figure2()
