"""Messages of the library, their advice in terms of the command line."""

import re

import click

_QUOTED = r"""["']([^"']*)["']"""

#: Advice in Python, and the same for the command line; applied before names of parameters become options.
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
    rf"\b(decimal|thousands|separator|comment)={_QUOTED}": r"--\1 '\2'",
    rf"\b(encoding|time|by)={_QUOTED}": r"--\1 \2",
    r"\btest_size=([\d.]+) makes": r"--share \1 makes",
    r"another test_size": "another --share",
    rf"na_values=\[{_QUOTED}\]": r"--na \1",
    r"Pass decimal and thousands to say": "Pass --decimal and --thousands to say",
    r"(is no amount|If so), skip it\.": r"\1, leave it as it is: --skip NAME.",
    r"Use fit and predict for these": "Use halfseen fit and halfseen predict for these",
    r"Raise max_iter, lower tol, or set accelerate=True": "Raise --max-iter, or lower --tol",
    r"Raise max_iter, or tol": "Raise --max-iter, or --tol",
    r"or by tol while": "or by --tol while",
    r", or use float64": "",
    r"(add it to) levels": r"\1 --levels when fitting",
    r"Make levels of counts with Quantizer": "Make a few levels of the counts",
    r"skip the column\.$": "leave the column as it is: --skip NAME.",
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

#: Where a parameter is named: at the beginning, in backticks, with a value, or after words that lists of a user's own
#: names do not have.
_NAMED = re.compile(
    r"^(?P<first>[a-z]\w*)(?= must )|`(?P<quoted>\w+)`|(?<![\w\"'])(?P<valued>[a-z]+(?:_[a-z]+)+)=|"
    r"(?P<before>\b(?:Raise|at|below|and) )(?P<after>[a-z]+(?:_[a-z]+)+)\b(?!=)"
)


def in_options(sentence: str) -> str:
    """A message of the library, its advice in terms of the options of the command that runs."""
    # the command that runs, or has just failed, and its name
    name, command, ctx = None, None, click.get_current_context(silent=True)
    if ctx is not None and isinstance(ctx.command, click.Group):
        name = ctx.invoked_subcommand
        command = ctx.command.get_command(ctx, name) if name else None
    elif ctx is not None:
        name, command = ctx.info_name, ctx.command
    # its options, by the library's names of parameters
    params = [] if command is None else [param for param in command.params if isinstance(param, click.Option)]
    options = {
        text.lstrip("-").replace("-", "_"): param.opts[0]
        for param in params
        for text in (param.name or "", *param.opts)
    }
    renamed = {"random_state": "seed", "n_sweeps": "sweeps", "n_burn": "burn"}
    options |= {parameter: options[option] for parameter, option in renamed.items() if option in options}

    for python, option in _ADVICE.items():
        sentence = re.sub(python, option, sentence, flags=re.IGNORECASE)
    history = ", or pass its history, --history FILE" if "history" in options else ""
    sentence = sentence.replace(", or pass its history (a dict from columns to values)", history)
    empty = f"leave them empty if they are unknown{', or --skip the column' if 'skip' in options else ''}"
    sentence = sentence.replace("set them to NaN if they are unknown", empty)
    # estimators by the names of their methods
    from halfseen.cli.fit import METHODS

    methods = {estimator: method for method, estimator in METHODS.items()}
    fit = "--method" if name == "fit" else "halfseen fit --method"
    advised = rf"\b(use|or|fit) ({'|'.join(methods)})\b"
    sentence = re.sub(advised, lambda found: f"{found[1]} {fit} {methods[found[2]]}", sentence)

    def option_of(found: re.Match[str]) -> str:
        parameter = found["first"] or found["quoted"] or found["valued"] or found["after"]
        if parameter not in options:
            return found[0]
        return f"{found['before'] or ''}{options[parameter]}{' ' if found['valued'] else ''}"

    return _NAMED.sub(option_of, sentence)
