"""What is on a page: blocks of Python and of shell lines, in their order, and commands in the text."""

import ast
import inspect
import re
import shlex
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

import click

from halfseen.cli.app import COMMANDS, main
from halfseen.datasets import listing
from halfseen.studies import select

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PROGRAMS = ("halfseen", "make", "pip", "git", "cd", "source", "python", "cat")


class Block(NamedTuple):
    """What stands between two fences; the kind is the word at the first."""

    kind: str
    text: str


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    fenced = re.findall(r"^( *)```(\w*)\n(.*?)^\1```", text_of(page), re.DOTALL | re.MULTILINE)
    return [Block(kind, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)) for indent, kind, text in fenced]


def python_blocks(page: str) -> list[str]:
    return [block.text for block in blocks_of(page) if block.kind == "python"]


def lines_of_shell(block: Block) -> list[str]:
    """The commands of a block, without their comments; where some have a prompt, the others are what was printed."""
    if block.kind not in ("", "sh", "bash", "shell", "console"):
        return []
    lines = [re.sub(r"\s#\s.*", "", line).strip() for line in block.text.replace("\\\n", " ").splitlines()]
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return prompted or [line for line in lines if line.startswith(PROGRAMS)]


def shell_lines(page: str) -> list[str]:
    return [line for block in blocks_of(page) for line in lines_of_shell(block)]


def commands_in(line: str) -> list[list[str]]:
    """The words of each command of a line, those behind a pipe or a semicolon, too."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    words.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in words:
        if re.fullmatch(r"[|;&]+", word):
            commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def inline_code(page: str) -> list[str]:
    """Code in the text of a page, between backticks."""
    prose = re.sub(r"^( *)```.*?^\1```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    return [code.replace("\n", " ") for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose)]


def faults_of_command(words: list[str]) -> list[str]:
    """What the program would not understand of a command line: its command, an option, a study, a data set."""
    name, *rest = words[1:] or ["--help"]
    if name.startswith("-"):
        return []
    if name not in COMMANDS:
        return [name]
    command = main.get_command(click.Context(main), name)
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
    faults = [word for word in rest if re.match(r"--?[a-z]", word) and word.split("=")[0] not in options]
    if name == "reproduce":
        for word in _arguments(rest):
            select(word)  # which raises if it is none
    if name == "datasets":
        faults += [
            word for word in _arguments(rest) if word not in {entry.name for entry in listing()} and word.islower()
        ]
    return faults


def _arguments(words: list[str]) -> list[str]:
    """Words that belong to no option, of commands whose options have values of one word, if they have any."""
    flags = ("--quick", "--list", "--keep", "--fetch", "--path", "--json", "--quiet")
    taken = {place + 1 for place, word in enumerate(words) if word.startswith("-") and word not in flags}
    return [word for place, word in enumerate(words) if not word.startswith("-") and place not in taken]


def faults_of_code(code: str) -> list[str]:
    """Names of halfseen, and parameters of its functions, that some code in the text speaks of and are not there."""
    faults = [name for name in re.findall(r"\bhs\.([\w.]*\w)", code) if not _is_there(name)]
    try:
        tree = ast.parse(code, mode="eval")
    except SyntaxError:
        return faults
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func).removeprefix("hs.")
        if re.fullmatch(r"[\w.]+", name) and _is_there(name):
            known = _parameters(resolve_name(f"halfseen:{name}"))
            faults += [f"{name}({word.arg})" for word in call.keywords if known and word.arg not in known]
    return faults


def _is_there(name: str) -> bool:
    try:
        resolve_name(f"halfseen:{name}")
    except AttributeError:
        return False
    return True


def _parameters(thing: object) -> tuple[str, ...]:
    return tuple(inspect.signature(thing).parameters) if callable(thing) else ()
