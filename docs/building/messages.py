"""All messages of the library in one text: what must hold, what was found and where, what to do.

    python docs/building/messages.py > tests/messages.txt

Read from the source, so that none is left out; what is filled in stands in braces.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "halfseen"
CLASSES = {
    "ParameterError", "DataError", "ModelFileError", "EngineError", "DataWarning", "ConvergenceWarning", "UsageError",
}  # fmt: skip
FIELDS = ("parameter", "found", "where", "remedy", "remedy_cli")


def template(node: ast.expr) -> str:
    """A text as its source writes it, with the expressions that are filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(value) for value in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return f"{{{ast.unparse(node)}}}"


def messages(path: Path) -> Iterator[str]:
    """The messages of a file, in the order of their lines."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        if node.args or node.keywords:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CLASSES:
                fields = {keyword.arg: template(keyword.value) for keyword in node.keywords}
                must = template(node.args[0]) if node.args else fields.get("must", "")
                lines = [f"{name}: {must}", *(f"    {field}: {fields[field]}" for field in FIELDS if field in fields)]
                yield "\n".join(lines)


def all_messages() -> str:
    """The messages of all files."""
    parts = []
    for path in sorted(SOURCE.rglob("*.py")):
        found = list(messages(path))
        if found:
            parts.append("\n".join([f"# {path.relative_to(SOURCE).as_posix()}", *found]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(all_messages())
