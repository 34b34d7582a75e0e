"""Requests: what came over the network as checked fields, or a refusal with an HTTP status."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from halfseen.errors import HalfseenError
from halfseen.labels import is_plain_integer
from halfseen.validation import did_you_mean

#: Routes, the methods of each, and what it does.
ROUTES = {
    "/": (("GET",), "This list of routes."),
    "/recommend": (("GET", "POST"), "The best items for users of the fit, or for new users with a history."),
    "/similar": (("GET", "POST"), "The most similar items to items, or users to users."),
    "/model": (("GET",), "What is served: the model, its size, and the limits of a request."),
    "/health": (("GET",), "Whether the server is well, and whether the last new model file could be read."),
    "/openapi.json": (("GET",), "These routes for programs, as OpenAPI."),
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class RequestError(HalfseenError):
    """A request that is refused, with the HTTP status of the answer.

    Parameters
    ----------
    must : str
        What must hold.
    status : int, default=400
        HTTP status.
    **fields : str
        Further fields of the message.
    """

    def __init__(self, must: str, *, status: int = 400, **fields: Any) -> None:
        super().__init__(must, **fields)
        self.status = status


@dataclass(frozen=True)
class Limits:
    """What a request may ask for at most.

    Parameters
    ----------
    bytes : int, default=1,048,576
        Bytes of a body.
    n : int, default=1000
        Items per user.
    users : int, default=1000
        Users, histories or items asked about.
    answers : int, default=100,000
        Users times items per user.
    cells : int, default=10,000
        Cells of all histories together.
    seconds : float, default=10
        Time for an answer.
    threads : int, default=2
        Requests computed at the same time.
    waiting : int, default=64
        Requests that may wait for a thread.
    """

    bytes: int = 1 << 20
    n: int = 1000
    users: int = 1000
    answers: int = 100_000
    cells: int = 10_000
    seconds: float = 10.0
    threads: int = 2
    waiting: int = 64


def read_json(body: bytes) -> dict[str, Any]:
    """The object in a body, by the letter of the standard: no name twice, no NaN, no number that is not finite.

    Parameters
    ----------
    body : bytes
        As it came.

    Returns
    -------
    dict
        Names and values.
    """

    def no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named = dict(pairs)
        if len(named) < len(pairs):
            name = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise RequestError("Names of a JSON object must differ.", found=f"{name!r} twice", remedy="Leave one out.")
        return named

    def finite(text: str) -> float:
        value = float(text) if text[-1] not in "yN" else math.inf  # Infinity, NaN
        if not math.isfinite(value):
            must, remedy = "Numbers must be finite, and fit in double precision.", "Use null for what is unknown."
            raise RequestError(must, found=text[:40], remedy=remedy)
        return value

    def whole(text: str) -> int:
        if len(text) > 20:
            must, remedy = "Whole numbers must have at most 20 digits.", "Send the id as text."
            raise RequestError(must, found=f"{len(text)} characters", remedy=remedy)
        return int(text)

    remedy = 'Send an object such as {"users": ["bob"], "n": 10}.'
    try:
        text = body.decode()
        value = json.loads(
            text, object_pairs_hook=no_name_twice, parse_constant=finite, parse_float=finite, parse_int=whole
        )
    except UnicodeDecodeError as error:
        found, where = f"byte 0x{body[error.start]:02x}", f"at {error.start}"
        raise RequestError("A body must be UTF-8.", found=found, where=where, remedy="Encode it as UTF-8.") from None
    except json.JSONDecodeError as error:
        found, where = f"{error.msg[:1].lower()}{error.msg[1:]}", f"at character {error.pos}"
        raise RequestError("A body must be JSON.", found=found, where=where, remedy=remedy) from None
    except RecursionError:
        must = "A body must be an object of a few levels."
        raise RequestError(must, found="brackets within brackets", remedy=remedy) from None
    if not isinstance(value, dict):
        raise RequestError("A body must be a JSON object.", found=kind_of(value), remedy=remedy)
    return value


def read_query(query: bytes, fields: Iterable[str]) -> dict[str, Any]:
    """The fields of a query string, of the types that a JSON body would have; ids stay text.

    Parameters
    ----------
    query : bytes
        What follows the question mark.
    fields : iterable of str
        Names of the fields of this route.

    Returns
    -------
    dict
        Names and values. Lists are given by repeating a name; user stands for users, and item for items.
    """
    remedy = "Write name=value&name=value, with other characters percent-encoded as UTF-8."
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError:  # UnicodeError, too
        found = ascii(query[:40].decode("latin-1"))
        raise RequestError("A query must be readable.", found=found, remedy=remedy) from None
    asked: dict[str, Any] = {}
    for name, text in pairs:
        name = {"user": "users", "item": "items"}.get(name, name)
        if name in ("users", "items", "filter_items", "exclude") and name in fields:
            asked.setdefault(name, []).append(text)
        elif name in asked:
            must = "A parameter that is no list must be given once."
            raise RequestError(must, found=f"{name!r} twice", remedy="Leave one out.")
        elif name == "n":
            asked[name] = int(text) if is_plain_integer(text) else text
        elif name == "histories":
            raise RequestError("Histories must come in a body.", found="a query", remedy="POST a JSON object.")
        else:
            asked[name] = {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text)
    return asked


def check_fields(route: str, asked: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Fields of a request whose types and sizes are right.

    Parameters
    ----------
    route : {"/recommend", "/similar"}
        Route.
    asked : dict
        Fields as they came.
    limits : Limits
        What may be asked for at most.

    Returns
    -------
    dict
        With `n` in any case, and either "users", "items" or "histories".
    """
    subjects = ("users", "histories") if route == "/recommend" else ("items", "users")
    fields = {*subjects, "n", "filter_items", "exclude", *(["exclude_seen"] if route == "/recommend" else [])}
    for name in asked:
        if name not in fields:
            near = did_you_mean(name, fields)
            remedy = f"Did you mean {near!r}?" if near else f"The fields are {', '.join(sorted(fields))}."
            raise RequestError("A field must be known.", found=repr(name[:40]), remedy=remedy)
    given = [name for name in subjects if name in asked]
    if len(given) != 1:
        must = f"A request must have either {subjects[0]} or {subjects[1]}."
        raise RequestError(must, found="both" if given else "neither", remedy="Give one of the two.")
    (subject,) = given
    checked: dict[str, Any] = {"n": asked.get("n", 10), "exclude_seen": asked.get("exclude_seen", True)}
    n = checked["n"]
    if type(n) is not int or not 1 <= n <= limits.n:
        must = f"must be a whole number from 1 to {limits.n:,}."
        raise RequestError(must, parameter="n", found=shown(n), remedy="Ask for fewer.")
    if type(checked["exclude_seen"]) is not bool:
        found = shown(checked["exclude_seen"])
        raise RequestError("must be true or false.", parameter="exclude_seen", found=found, remedy="Use one of these.")
    for name in (subject, "filter_items", "exclude"):
        if name not in asked:
            continue
        if not isinstance(asked[name], list) or (name == subject and not asked[name]):
            must, remedy = f"must be a list{' with something in it' * (name == subject)}.", "Write [...]."
            raise RequestError(must, parameter=name, found=shown(asked[name]), remedy=remedy)
        for position, one in enumerate(asked[name]):
            if subject == name == "histories":
                check_history(one, position)
            elif type(one) not in (str, int, float) or (type(one) is str and _SURROGATE.search(one)):
                must = "must hold ids: valid text, or numbers."
                where, remedy = f"at position {position}", "Write the ids as the model has them."
                raise RequestError(must, parameter=name, found=shown(one), where=where, remedy=remedy)
        checked[name] = asked[name]
    asked_about = len(checked[subject])
    if asked_about > limits.users or asked_about * n > limits.answers:
        must = f"must be at most {limits.users:,}, and at most {limits.answers:,} with n to each."
        found = f"{asked_about:,} with n = {n:,}"
        raise RequestError(must, status=413, parameter=subject, found=found, remedy="Split the request.")
    cells = sum(map(len, checked["histories"])) if subject == "histories" else 0
    if cells > limits.cells:
        must = f"must have at most {limits.cells:,} cells together."
        raise RequestError(must, status=413, parameter=subject, found=f"{cells:,}", remedy="Split the request.")
    return checked


def check_history(history: Any, position: int) -> None:
    """Refuse a history that is no object from ids to numbers, texts or null."""
    where, remedy = f"at position {position}", 'Write it as {"an item": 5, "another": 3}.'
    if not isinstance(history, dict):
        must, found = "must hold objects from items to values.", shown(history)
        raise RequestError(must, parameter="histories", found=found, where=where, remedy=remedy)
    for item, value in history.items():
        if _SURROGATE.search(item):
            found = ascii(item[:40])
            raise RequestError("Items must be valid text.", found=found, where=where, remedy="Encode it as UTF-8.")
        if isinstance(value, bool | list | dict) or (isinstance(value, str) and _SURROGATE.search(value)):
            must, found = "Values of a history must be numbers, texts or null.", shown(value)
            raise RequestError(must, found=found, where=f"{where}, item {item[:40]!r}", remedy=remedy)


def kind_of(value: Any) -> str:
    """The kind of a JSON value, in JSON's words."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds[type(value)]


def shown(value: Any) -> str:
    """A JSON value as a message shows it: scalars cut to a line, else its kind."""
    return kind_of(value) if isinstance(value, dict | list) else ascii(value)[:60]


def too_slow() -> RequestError:
    """The error of a request that takes too long."""
    must, remedy = "An answer must be found in the time allowed.", "Ask for fewer users at a time, or try again later."
    return RequestError(must, status=503, found="more work than that", remedy=remedy)


def openapi(limits: Limits) -> dict[str, Any]:
    """The routes in OpenAPI's form.

    Parameters
    ----------
    limits : Limits
        What a request may ask for.

    Returns
    -------
    dict
    """
    from halfseen import __version__

    one_id: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}]}
    ids = {"type": "array", "items": one_id, "maxItems": limits.users}
    value = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]}
    choice = {
        "n": {"type": "integer", "minimum": 1, "maximum": limits.n, "default": 10},
        "filter_items": {"type": "array", "items": one_id, "description": "Only these items."},
        "exclude": {"type": "array", "items": one_id, "description": "None of these items."},
    }
    histories = {
        "type": "array", "maxItems": limits.users, "description": "New users: objects from items to values.",
        "items": {"type": "object", "additionalProperties": value},
    }  # fmt: skip
    fields = {
        "/recommend": {
            "users": ids, "histories": histories, "exclude_seen": {"type": "boolean", "default": True}, **choice,
        },
        "/similar": {"items": ids, "users": ids, **choice},
    }  # fmt: skip
    good = {"description": "The answer.", "content": {"application/json": {"schema": {"type": "object"}}}}
    names = ("must", "found", "where", "remedy", "message")
    described = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    error = {"type": "object", "properties": {"error": described}}
    bad = {"description": "What must hold, what was found, and what to do.",
           "content": {"application/json": {"schema": error}}}  # fmt: skip
    paths: dict[str, Any] = {}
    for path, (methods, does) in ROUTES.items():
        paths[path] = {}
        for method in methods:
            about: dict[str, Any] = {"summary": does, "responses": {"200": good, "4XX": bad, "503": bad}}
            about["operationId"] = f"{method.lower()}_{path[1:].partition('.')[0] or 'routes'}"
            own = fields.get(path, {})
            if method == "POST":
                about["requestBody"] = {
                    "required": True,
                    "content": {"application/json": {"schema": {"type": "object", "properties": own}}},
                }
            elif own:
                about["parameters"] = [
                    {"name": {"users": "user", "items": "item"}.get(name, name), "in": "query", "schema": schema}
                    for name, schema in own.items()
                    if name != "histories"
                ]
            paths[path][method.lower()] = about
    return {"openapi": "3.1.0", "info": {"title": "halfseen", "version": __version__}, "paths": paths}
