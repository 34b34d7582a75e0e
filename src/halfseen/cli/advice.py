"""The library's sentences, their advice in terms of this program."""

import re

import click

_QUOTED = r"""["']([^"']*)["']"""

#: What the library advises in Python, and how this program says it; before names of parameters become options.
_ADVICE = {
    r'observe\(X, duplicates="(\w+)"\), or (.*)\.$': r"--duplicates \1, or \2.",
    rf"columns=\({_QUOTED}, {_QUOTED}, {_QUOTED}\)": r"--columns \1,\2,\3",
    rf"columns=\({_QUOTED}, {_QUOTED}\)": r"--columns \1,\2",
    r"^columns must name (.*), such as \(.*?\), or (.*)\. Found \((.*?),?\)\.$": r"columns must name \1, or \2. Found "
    r"\3. Name them: --columns user,item,rating.",
    r'layout="(\w+)"': r"--layout \1",
    r'unseen="(\w+)"': r"--unseen \1",
    r'\b(loss|method)="([\w-]+)"': r"--\1 \2",
    r"Set early_stopping=False, or raise validation_fraction": "Leave out --early-stopping",
    r", or pass an array, a sparse matrix or a frame": "",
    r"from the lowest to the highest in levels": "from the lowest to the highest: --levels LOWEST,...,HIGHEST",
    r'must be None, "ordered", or different texts': "must be different texts, or rising numbers,",
    rf"levels=\[{_QUOTED}, {_QUOTED}, {_QUOTED}\]": r"--levels \1,\2,\3",
    r"out of levels": "out of --levels",
    r"(marks between thousands are not read)\.": r"\1. When imputing, --skip NAME leaves a column as it is.",
    r"Raise max_iter, lower tol, or set accelerate=True": "Raise --max-iter, or lower --tol",
    r"Raise max_iter, or tol": "Raise --max-iter, or --tol",
    r"or by tol while": "or by --tol while",
    r", or use float64": "",
    r"(add it to) levels": r"\1 --levels when fitting",
    r"Make levels of counts with Quantizer": "Make a few levels of the counts",
    r"skip the column\.$": "leave the column as it is: --skip NAME.",
    r"set them to NaN if they are unknown": "leave them empty if they are unknown, or --skip the column when imputing",
    r"Replace it by NaN if": "Leave it empty if",
    rf"\b(question|respondent|value|higher|lower)=(?:{_QUOTED}|(\.\.\.))": r"--\1 \2\3",
    r'faults="(\w+)"': r"--faults \1",
    r"""balance=["'](\w+)["']""": r"--balance \1",
    r", see diagnostics_\)": ")",
    r'halfseen\.datasets\.fetch\("([\w-]+)"\)': r"halfseen datasets \1 --fetch",
    r"halfseen\.data\.split_cells": "halfseen split",
    r"^ranks must be": "The numbers after -k auto: must be",
    r"List them, such as \[5, 10, 20\]": "List them: -k auto:5,10,20",
    r"Choose another metric, or see": "See",
    r"Make fewer folds(, or get more cells)?\.": "Get more cells, or say a number, such as -k 5.",
    r"must be None(?:,| or) ": "must be ",
    r" or None\.": ".",
    r"Use None for all processors, 1": "Leave it out for all processors, or use 1",
}

#: Where a parameter is named: first of all, in backticks, with a value, or after words that lists of a user's own names
#: do not have.
_NAMED = re.compile(
    r"^(?P<first>[a-z]\w*)(?= must )|`(?P<quoted>\w+)`|(?<![\w\"'])(?P<valued>[a-z]+(?:_[a-z]+)+)=|"
    r"(?P<before>\b(?:Raise|at|below|and) )(?P<after>[a-z]+(?:_[a-z]+)+)\b(?!=)"
)


def in_options(sentence: str) -> str:
    """The library's sentence, its advice in terms of this program and of the options of the command that runs."""
    name, command = _running()
    options = _options_of(command)
    for python, option in _ADVICE.items():
        sentence = re.sub(python, option, sentence, flags=re.IGNORECASE)
    sentence = _by_history(sentence, "history" in options)
    sentence = _by_method(sentence, name == "fit")

    def called(found: re.Match[str]) -> str:
        parameter = found["first"] or found["quoted"] or found["valued"] or found["after"]
        if parameter not in options:
            return found[0]
        return f"{found['before'] or ''}{options[parameter]}{' ' if found['valued'] else ''}"

    return _NAMED.sub(called, sentence)


def _running() -> tuple[str | None, click.Command | None]:
    """The command that runs, or has just failed, and its name."""
    ctx = click.get_current_context(silent=True)
    if ctx is None:
        return None, None
    if not isinstance(ctx.command, click.Group):
        return ctx.info_name, ctx.command
    name = ctx.invoked_subcommand
    return name, ctx.command.get_command(ctx, name) if name else None


def _options_of(command: click.Command | None) -> dict[str, str]:
    """What the library calls things, and which options of a command are for these."""
    options = [] if command is None else [one for one in command.params if isinstance(one, click.Option)]
    called = {_plain(name): one.opts[0] for one in options for name in (one.name or "", *one.opts)}
    further = {"random_state": "seed", "n_sweeps": "sweeps", "n_burn": "burn"}
    return called | {python: called[name] for python, name in further.items() if name in called}


def _plain(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _by_history(sentence: str, can: bool) -> str:
    """Of new rows: their history can be given to a command that has an option for it."""
    instead = ", or pass its history, --history FILE" if can else ""
    return sentence.replace(", or pass its history (a dict from columns to values)", instead)


def _by_method(sentence: str, is_fit: bool) -> str:
    """Estimators that are advised, by the names of their methods."""
    from halfseen.cli.fit import METHODS

    method_of = {estimator: method for method, estimator in METHODS.items()}
    fit = "--method" if is_fit else "halfseen fit --method"
    advised = rf"\b(use|or|fit) ({'|'.join(method_of)})\b"
    return re.sub(advised, lambda found: f"{found[1]} {fit} {method_of[found[2]]}", sentence)
