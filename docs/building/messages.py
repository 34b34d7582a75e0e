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
    "RequestError",
}  # fmt: skip
FIELDS = ("parameter", "found", "where", "remedy", "remedy_cli")


#: Values of local names, by name and line.
Names = dict[str, list[tuple[int, ast.expr]]]


def template(node: ast.expr, names: Names) -> str:
    """A text as its source writes it, with the expressions that are filled in; local names that are texts resolved."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(value, names) for value in node.values)
    if isinstance(node, ast.FormattedValue):
        inner = template(node.value, names) if isinstance(node.value, ast.Name) else ""
        return inner if inner[:1] not in ("", "{") else f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left, names) + template(node.right, names)
    if isinstance(node, ast.Name):
        before = [value for line, value in names.get(node.id, ()) if line < node.lineno]
        if before and isinstance(before[-1], ast.Constant | ast.JoinedStr | ast.BinOp):
            return template(before[-1], names)
    return f"{{{ast.unparse(node)}}}"


def local_names(tree: ast.AST) -> Names:
    """What names are assigned in a file, in the order of lines."""
    names: Names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            for one, text in pairs:
                if isinstance(one, ast.Name):
                    names.setdefault(one.id, []).append((node.lineno, text))
    return {name: sorted(values, key=lambda pair: pair[0]) for name, values in names.items()}


def messages(path: Path) -> Iterator[str]:
    """The messages of a file, in the order of their lines."""
    tree = ast.parse(path.read_text())
    calls, names = [node for node in ast.walk(tree) if isinstance(node, ast.Call)], local_names(tree)
    for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        if node.args or node.keywords:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CLASSES:
                fields = {keyword.arg: template(keyword.value, names) for keyword in node.keywords}
                must = template(node.args[0], names) if node.args else fields.get("must", "")
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
