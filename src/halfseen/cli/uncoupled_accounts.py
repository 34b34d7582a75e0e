"""What is told of three lists that were collected apart, and of a model of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from halfseen.cli.accounts import count
from halfseen.cli.app import in_options
from halfseen.cli.streams import said

#: From this probability on an answer counts as one that can be guessed.
CERTAIN = 0.9


def of_lists(paths: Mapping[str, str | None], named: Mapping[str, Any]) -> Iterator[str]:
    """Which column of each list was taken for what: by its name where that was known, else by its number."""
    from halfseen.data.uncoupled.lists import opened_list
    from halfseen.data.uncoupled.roles import places_of, shared_name

    given = list(named.values())
    there = {what: path for what, path in paths.items() if path is not None}
    lists = {what: opened_list(what, path, given) for what, path in there.items()}
    shared = shared_name(lists["asked"].names, lists["answers"].names)
    for what, source in lists.items():
        common = {"question": shared} if shared in source.names else {}
        places = places_of(what, source.names, common | dict(named))
        columns = (f"{role} from {_column(source, place)}" for role, place in places.items())
        yield f"Read {said(there[what])}: {', '.join(columns)}."


def _column(source: Any, place: int) -> str:
    """A name that is no usual spelling may turn out to be an id of a file without a header."""
    is_sure = getattr(source, "is_headed", True) and isinstance(source.names[place], str)
    return f"column {source.names[place]!r}" if is_sure else f"column {place + 1}"


def step_of(model: Any) -> str:
    """What one iteration of a model's method is called."""
    return "sweep" if model.method == "gibbs" else "iteration"


def of_fit(model: Any) -> Iterator[str]:
    """The model, how it ended, how well it has mixed, and what is disclosed."""
    yield f"UncoupledNMF: {count(model.n_components, 'component')}, {_chosen(model)}."
    yield _of_end(model)
    yield from _of_mixing(model)
    if model.method == "gibbs":
        yield of_disclosure(model.disclosure_risk())


def _chosen(model: Any) -> str:
    parameters = {"gibbs": ("trust", "scale"), "unmf": ("loss", "balance"), "bayes": ("balance",), "decode": ("loss",)}
    told = (f"{name} {getattr(model, name)}" for name in parameters[model.method])
    return ", ".join([f"method {model.method}", *told])


def _of_end(model: Any) -> str:
    if not model.n_iter_:
        return "Nothing was drawn: without comparisons, a question's answers are all that is known of its cells."
    seconds = model.trace_["seconds"][-1]
    clipped = f" {count(model.n_clipped_, 'value')} below 0 counted as 0 in W and H." if model.n_clipped_ else ""
    steps = count(model.n_iter_, step_of(model))
    return f"{model.status_.name} after {steps} in {seconds:.2f} s. {in_options(model.status_.value)}{clipped}"


def _of_mixing(model: Any) -> Iterator[str]:
    """A small table: R-hat should be near 1, and the draws worth some dozens of independent ones."""
    mixings = getattr(model, "diagnostics_", {})
    if not mixings:
        return
    width = max(map(len, mixings))
    yield f"{'':{width}}  {'mean':>11}  {'R-hat':>6}  effective draws"
    for name, (mean, r_hat, effective) in mixings.items():
        yield f"{name:{width}}  {mean:>11.5g}  {r_hat:>6.3f}  {effective:>15,.0f}"


def of_disclosure(risk: Any) -> str:
    """How many answers are as good as known, and how often a guess is right on average."""
    certain = int((risk >= CERTAIN).sum())
    return (
        f"Of {count(risk.size, 'answer')} asked for, {certain:,} can be guessed with at least {CERTAIN:.0%} certainty; "
        f"on average a guess is right {risk.mean():.0%} of the time."
    ).replace("%", " %")
