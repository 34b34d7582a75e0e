"""Figures of the thesis on generalized round-rank (GRR).

Figure 2.2: errors of low linear rank for matrices of GRR 2 or less. Figures 4.1 to 4.3: recovery of small matrices.
Figures 4.4 to 4.6: ratings by number of components.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.datasets import source
from halfseen.datasets.registry import data_folder
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.rank import approximation_errors
from halfseen.studies import framework
from halfseen.studies import grr_methods as grr
from halfseen.studies.framework import (
    Column,
    Figure,
    Goal,
    Picture,
    Progress,
    Result,
    RunSettings,
    Setting,
    Study,
    Table,
    mean_and_std,
)
from halfseen.studies.grr_methods import LINEAR, ROUND, ROUND_FIXED, SIGMOID, MatrixFamily, rmse, squared_errors

#: Colours and markers of the lines.
LOOKS = tuple(zip(framework.OKABE_ITO, "os^DvPX*", strict=True))

# Figure 2.2

FAMILIES = (grr.IDENTITY, grr.BAND, grr.UPPER_TRIANGLE, grr.RANDOM_SIGNS, grr.RANDOM)
SIZE, SEEDS = 100, 5
QUICK_SIZE, QUICK_SEEDS = 20, 2
#: Ranks in the table, as shares of the size.
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)


class Figure2_2(Study):
    """Error of the best approximation against its rank."""

    name = "grr/figure2.2"
    title = "Errors of the best approximations of rank k of matrices whose generalized round-rank is 2 or less"

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        size, seeds = (QUICK_SIZE, QUICK_SEEDS) if quick else (SIZE, SEEDS)
        errors: dict[str, Array] = {}
        for family in FAMILIES:
            progress(family.title)
            errors[family.title] = np.array([relative_errors(family, size, seed + draw) for draw in range(seeds)])
        ks = sorted({round(share * size) for share in SHARES})
        rows = framework.mean_and_std_rows(ks, [each.T[ks] for each in errors.values()])
        footnote = (
            f"The squared error of the best approximation of rank k, as a part of the squared norm; {size} x {size}. "
            f"Random matrices: mean and standard deviation of {seeds}. All have a generalized round-rank of 2 or less: "
            "there the error is 0 at k = 2. The thesis prints no numbers for this figure."
        )
        title = f"Relative error of the best approximation of rank k, {size} x {size}"
        columns = [Column("k"), *framework.mean_and_std_columns(errors, ".4f")]
        at_two = "; ".join(f"{title} {each[:, 2].mean():.1%}" for title, each in errors.items())
        summary = (
            f"With linear rank 2 there remains of the squared norm, at size {size} x {size}: {at_two}. With GRR 2: "
            "nothing."
        )
        picture = Picture("", f"Best approximations of rank k, size {size} x {size}", partial(draw_errors, errors))
        identity = errors[grr.IDENTITY.title] * size
        goals = [  # section 2.2.2 and the caption
            Goal.claim(
                "Identity: any linear factorization of rank k leaves a squared error of n - k",
                np.allclose(identity, size - np.arange(size + 1)),
            ),
            *(
                Goal.claim(
                    f"{title}: linear factorization is unable to approximate it with low rank (rank 2 leaves "
                    f"{each[:, 2].mean():.1%} of the squared norm, more than 1%)",
                    bool(each[:, 2].mean() > 0.01),
                )
                for title, each in errors.items()
            ),
            Goal.claim(
                "All of these matrices have a generalized round-rank of 2 or less",
                all(has_round_rank_two(family, size, seed + draw) for family in FAMILIES for draw in range(seeds)),
            ),
        ]
        return Result(summary, [Table(title, columns, rows, [footnote])], [picture], goals)


def relative_errors(family: MatrixFamily, size: int, seed: int) -> Array:
    """min over Y' of rank k of  ||Y - Y'||_F^2 / ||Y||_F^2,  k = 0..n  (Theorem 2.2.2)."""
    errors = approximation_errors(family.levels(size, seed))
    return errors / errors[0]


def has_round_rank_two(family: MatrixFamily, size: int, seed: int) -> bool:
    """Whether the factors by which the matrix was made, of rank 2 at most, round to it."""
    levels, W, H, thresholds = family.construct(size, seed)
    rounded = ((W @ H.T)[:, :, None] > thresholds).sum(axis=-1)
    return bool(max(W.shape[1], H.shape[1]) <= 2 and np.array_equal(rounded, levels))


def draw_errors(errors: Mapping[str, Array], figure: Figure) -> None:
    """Error against rank, one line per family."""
    axes = figure.add_subplot()
    for (title, each), (colour, marker) in zip(errors.items(), LOOKS, strict=False):
        k = np.arange(each.shape[1])
        axes.plot(k, each.mean(axis=0), color=colour, marker=marker, markevery=max(1, k.size // 10), label=title)
    size = k.size - 1
    axes.set(title=f"Best approximation of linear rank k, {size} x {size}", xlabel="rank k",
             ylabel="squared error / squared norm")  # fmt: skip
    axes.set_xlim(0, size)
    axes.set(yscale="log", ylim=(1e-4, 1.2))
    axes.legend()


# Figures 4.1 to 4.3

RECOVERY_SIZE = 10
THESIS, NEWTON = "the thesis's optimiser", "Newton's method"


class RecoveryConfig(NamedTuple):
    """Size of a run: seeds; iterations and steps of the thesis's optimiser; iterations and starts of Newton's method.

    Of the steps that with the lowest error in the end counts, of the starts that with the lowest loss.
    """

    seeds: int
    thesis_iterations: Sequence[int]
    steps: Sequence[float]
    newton_iterations: Sequence[int]
    starts: int

    def iterations(self, optimiser: str) -> Sequence[int]:
        """Numbers of iterations at which the error is shown."""
        return self.thesis_iterations if optimiser == THESIS else self.newton_iterations


FULL = RecoveryConfig(
    10, (10, 30, 100, 300, 1000, 3000, 10_000), (0.1, 0.03, 0.01, 0.003), (1, 2, 3, 5, 8, 12, 20, 40, 100, 200), 5
)
QUICK = RecoveryConfig(2, (100, 1000), (0.03,), (1, 60), 1)


class Recovery(NamedTuple):
    """A matrix to be recovered by every method."""

    family: MatrixFamily
    seed: int
    config: RecoveryConfig


def recover(item: Recovery) -> dict[tuple[str, str], list[float]]:
    """RMSE of the reconstruction by number of iterations, each time from the same starts; by optimiser and method."""
    family, seed, config = item
    cells: Observed = observe(family.levels(RECOVERY_SIZE, seed).astype(np.float64))

    def curve(method: grr.Method, iterations: Sequence[int], **setting: float) -> list[float]:
        fits = (method.fit(cells, {"max_iter": number, **setting}, seed) for number in iterations)
        return [rmse(squared_errors(model, cells)) for model in fits]

    curves = {}
    for method in grr.thesis_methods(family):
        tried = [curve(method, config.thesis_iterations, learning_rate=step) for step in config.steps]
        curves[THESIS, method.name] = min(tried, key=lambda errors: errors[-1])
    for method in grr.recovery_methods(family, config.starts):
        curves[NEWTON, method.name] = curve(method, config.newton_iterations)
    return curves


@dataclass(frozen=True)
class RecoveryFigure(Study):
    """A small matrix, all of it seen: RMSE of its reconstruction against iterations, by two optimisers."""

    name: str
    title: str
    family: MatrixFamily

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        config, seed = QUICK if settings.quick else FULL, settings.seed
        items = [Recovery(self.family, seed + draw, config) for draw in range(config.seeds)]
        done = framework.parallel_map(recover, items, settings.n_jobs, progress, lambda item: f"seed {item.seed}")
        # "For the upper triangle and the band diagonal, we fix threshold to 0.5"
        converging = ROUND if self.family is grr.RANDOM else ROUND_FIXED
        title = f"{self.family.title}, {RECOVERY_SIZE} x {RECOVERY_SIZE}, k = {self.family.k}"
        tables, pictures, goals, sentences = [], [], [], []
        notes = {
            THESIS: "Full gradients with a constant step, as in Tables 4.1 to 4.3; for each matrix, of the steps "
            f"{', '.join(f'{step:g}' for step in config.steps)} that with the lowest error in the end.",
            NEWTON: f"Of {config.starts} starts that with the lowest loss. An iteration moves all rows, all columns "
            "and the thresholds once; those of Round begin where Multi-sigmoid has come to after as many.",
        }
        for optimiser, note in notes.items():
            # RMSE of each method: (seeds, iterations)
            names = [name for key, name in done[0] if key == optimiser]
            curves: dict[str, Array] = {name: np.array([one[optimiser, name] for one in done]) for name in names}
            ends = {name: errors[:, -1] for name, errors in curves.items()}
            exact = {name: f"{int((errors == 0).sum())} of {config.seeds}" for name, errors in ends.items()}
            iterations = config.iterations(optimiser)
            rows = framework.mean_and_std_rows(iterations, [errors.T for errors in curves.values()])
            rows.append(["seeds at 0", *(value for name in curves for value in (exact[name], None))])
            columns = [Column("iterations"), *framework.mean_and_std_columns(curves, ".4f")]
            footnotes = [
                f"RMSE over all cells, which are all seen; mean and standard deviation of {config.seeds} seeds, each "
                f"with starts (and a random matrix) of its own. {note} The last line: how many seeds ended at exactly "
                "0. The thesis prints no numbers for this figure.",
            ]
            key = "thesis" if optimiser == THESIS else "newton"
            head = f"{title}, by {optimiser}"
            tables.append(Table(f"RMSE of the reconstruction: {head}", columns, rows, footnotes, key))
            pictures.append(Picture(key, head, partial(draw_recovery, head, iterations, curves)))
            means = {name: float(errors.mean()) for name, errors in ends.items()}
            others = min(mean for name, mean in means.items() if not name.startswith(ROUND))
            goals += [  # what the thesis says of the figure
                Goal.claim(
                    f"By {optimiser}: Round works far better than others by converging to zero: {converging} at 0 for "
                    f"{exact[converging]} seeds, the best of the others at {others:.3f}",
                    bool((ends[converging] == 0).all() and others > 0),
                ),
                Goal.claim(
                    f"By {optimiser}: Linear is outperformed by Multi-sigmoid without fixed thresholds: "
                    f"{means[SIGMOID]:.3f} against {means[LINEAR]:.3f}",
                    means[SIGMOID] < means[LINEAR],
                ),
            ]
            last = "; ".join(f"{name} {mean:.3f} (0 for {exact[name]} seeds)" for name, mean in means.items())
            sentences.append(f"RMSE in the end by {optimiser}: {last}.")
        return Result(" ".join(sentences), tables, pictures, goals)


def draw_recovery(title: str, iterations: Sequence[int], curves: Mapping[str, Array], figure: Figure) -> None:
    """Mean RMSE against iterations, with a band of one standard deviation."""
    axes = figure.add_subplot()
    for (name, errors), (colour, marker) in zip(curves.items(), LOOKS, strict=False):
        mean, width = errors.mean(axis=0), np.array([mean_and_std(each)[1] or 0.0 for each in errors.T])
        axes.plot(iterations, mean, color=colour, marker=marker, label=name)
        low = np.maximum(mean - width, 0.0)
        axes.fill_between(iterations, low, mean + width, color=colour, alpha=0.15, linewidth=0)
    axes.set(title=title, xscale="log", xlabel="iterations", ylabel="RMSE of the reconstruction")
    axes.set_ylim(bottom=-0.01)
    axes.legend()


# Figures 4.4 to 4.6

KS, STARTS = (2, 5, 10, 20, 30), 5
#: The number of components of the summary, that of Table 4.4.
SUMMARY_K = 10
QUICK_KS, QUICK_STARTS, QUICK_L2 = (1, 3), 2, (3.0, 6.0)
CURVES = (LINEAR, SIGMOID, ROUND)

#: Scores at held-out cells of every l2, so that two figures of the same data need them once.
_HELD_OUT: dict[tuple[grr.RatingsCells, str], list[tuple[grr.RatingsFit, grr.RatingsScores]]] = {}


class Measure(NamedTuple):
    """Field of `grr_methods.RatingsScores`, its title and format, and the thesis's claims: which is better than which.

    `sign` is 1 where larger is better, else -1.
    """

    field: str
    title: str
    form: str
    sign: int
    claims: Mapping[str, tuple[str, str]]


ACCURACY = Measure(
    "accuracy", "share of predictions within 0.5", ".2%", 1,
    {
        "Round outperforms the linear factorization in accuracy": (ROUND, LINEAR),
        "Multi-sigmoid outperforms the linear factorization in accuracy": (SIGMOID, LINEAR),
    },
)  # fmt: skip
RMSE = Measure(
    "rmse", "RMSE", ".4f", -1,
    {
        "Linear factorization is better than Round from the RMSE perspective": (LINEAR, ROUND),
        "Multi-sigmoid achieves better RMSE than the linear method": (SIGMOID, LINEAR),
    },
)  # fmt: skip


@dataclass(frozen=True)
class RatingCurves(Study):
    """A measure against the number of components, on the first of the datasets that is in the data folder."""

    name: str
    title: str
    measure: Measure
    datasets: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(grr.DATASETS[name].name for name in self.datasets)

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        absent = self.absent()
        key = next((one for one in self.datasets if grr.DATASETS[one].name not in absent), self.datasets[-1])
        dataset, first = grr.DATASETS[key], grr.DATASETS[self.datasets[0]]
        data, split = dataset.title, dataset.split
        if quick:
            data, split = f"{data} (a part)", f"{split}; of the training cells a part, {grr.QUICK_SAMPLE}"
        ks, starts, l2 = (QUICK_KS, QUICK_STARTS, QUICK_L2) if quick else (KS, STARTS, grr.RATINGS_L2)
        cells = grr.RatingsCells(key, seed, quick, str(data_folder()))
        methods = {(name, k): grr.ratings_method(name, k, False, l2, settings) for name in CURVES for k in ks}
        key_of_fits = (cells, settings.engine)
        if key_of_fits not in _HELD_OUT:
            _HELD_OUT[key_of_fits] = grr.held_out_scores(list(methods.values()), [cells], settings, progress)
        field, sign = grr.RatingsScores._fields.index(self.measure.field), self.measure.sign
        chosen: list[Setting] = []  # in the order of the methods
        for start in range(0, len(_HELD_OUT[key_of_fits]), len(l2)):
            of_method = _HELD_OUT[key_of_fits][start : start + len(l2)]
            chosen.append(max(of_method, key=lambda pair: sign * pair[1][field])[0].setting)
        fits = [
            grr.RatingsFit(cells, method, setting, seed + start)
            for method, setting in zip(methods.values(), chosen, strict=True)
            for start in range(starts)
        ]
        fitted = np.array(grr.score_fits(fits, settings, progress)).reshape(len(CURVES), len(ks), starts, -1)
        scores = dict(zip(CURVES, fitted[..., field], strict=True))  # (components, starts) by name

        title = f"{data}: {self.measure.title}"
        rows = framework.mean_and_std_rows(ks, scores.values())
        l2_of = np.array([setting["l2"] for setting in chosen]).reshape(len(CURVES), len(ks))
        words = "; ".join(
            f"{name} {', '.join(f'{x:g}' for x in each)}" for name, each in zip(CURVES, l2_of, strict=True)
        )
        footnotes = [
            f"Data: {dataset.title}, {split}. Without biases, as in the thesis. l2, out of "
            f"{', '.join(f'{value:g}' for value in l2)}, is chosen for each k by {self.measure.title} at "
            f"{grr.HELD_OUT:.0%} of the training cells ({words}). Mean and standard deviation of {starts} starts. The "
            "thesis prints no numbers for this figure.",
        ]
        if dataset is not first:
            footnotes.append(
                f"The thesis has {first.title} here, which is not in the data folder: get its two files from "
                f"{source(first.name).address}. What is shown is of {dataset.title}."
            )
        columns = [Column("k"), *framework.mean_and_std_columns(scores, self.measure.form)]
        table = Table(title, columns, rows, footnotes)
        at = ks.index(SUMMARY_K) if SUMMARY_K in ks else len(ks) - 1
        means = "; ".join(f"{name} {values[at].mean():{self.measure.form}}" for name, values in scores.items())
        picture = Picture("", title, partial(draw_curves, title, self.measure.title, ks, scores))
        goals = []
        for words, (better, worse) in self.measure.claims.items():
            gains = sign * (scores[better].mean(axis=1) - scores[worse].mean(axis=1))
            goals.append(
                Goal.claim(f"{words} (at every k; here at {int((gains > 0).sum())} of {len(ks)})", min(gains) > 0)
            )
        summary = f"{data}, k = {ks[at]}, {self.measure.title}: {means}."
        return Result(summary, [table], [picture], goals, "" if dataset is first else dataset.title)


def draw_curves(title: str, measure: str, ks: Sequence[int], scores: Mapping[str, Array], figure: Figure) -> None:
    """The measure against k, one line per method, with bars of one standard deviation."""
    axes = figure.add_subplot()
    for (name, values), (colour, marker) in zip(scores.items(), LOOKS, strict=False):
        deviations = [mean_and_std(each)[1] or 0.0 for each in values]
        axes.errorbar(ks, values.mean(axis=1), deviations, color=colour, marker=marker, capsize=3, label=name)
    axes.set(title=title, xlabel="components, k", ylabel=measure)
    axes.set_xticks(list(ks))
    axes.legend()


_RMSE, _COMPONENTS = "RMSE against iterations", "against the number of components"
_NETFLIX = f"on smallnetflix {_COMPONENTS} (without it MovieLens 1M)"
_SUBSTITUTED = ("smallnetflix", "movielens-1m")
STUDIES = (
    Figure2_2(),
    RecoveryFigure("grr/figure4.1", f"Recovery of a band diagonal matrix: {_RMSE}", grr.BAND),
    RecoveryFigure("grr/figure4.2", f"Recovery of random matrices of generalized round-rank 2: {_RMSE}", grr.RANDOM),
    RecoveryFigure("grr/figure4.3", f"Recovery of an upper triangular matrix: {_RMSE}", grr.UPPER_TRIANGLE),
    RatingCurves("grr/figure4.4", f"Accuracy {_NETFLIX}", ACCURACY, _SUBSTITUTED),
    RatingCurves("grr/figure4.5", f"RMSE {_NETFLIX}", RMSE, _SUBSTITUTED),
    RatingCurves("grr/figure4.6", f"Accuracy on MovieLens 100K {_COMPONENTS}", ACCURACY, ("u1",)),
)
