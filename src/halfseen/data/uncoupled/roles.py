"""Which columns of the three lists of an uncoupled collection hold what, by the usual spellings or by their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from halfseen.data.headers import (
    BESIDES,
    COLUMNS,
    ROWS,
    VALUES,
    id_headers,
    names_listed,
    plain_spelling,
    without_letters,
    words,
)
from halfseen.errors import DataError

#: What each list must tell, in the order in which its columns stand where nothing else is known.
ROLES = {
    "asked": ("question", "respondent"),
    "answers": ("question", "value"),
    "comparisons": ("question", "higher", "lower"),
}
ORDERED = ("row", "column", "col")  # say nothing of who was asked what: these go by their order
QUESTIONS = words("question q topic query statement task prompt") + tuple(w for w in COLUMNS if w not in ORDERED)
RESPONDENTS = words("respondent worker annotator employee panelist j") + tuple(w for w in ROWS if w not in ORDERED)
HIGHER = words("higher larger greater winner more plus better bigger high above older richer")
LOWER = words("lower smaller lesser loser less minus worse fewer low below younger poorer")
WIDEST_OF_LETTERS = 4  # headers of one letter are for narrow tables


def noun_of(role: str) -> str:
    """What the ids of a role are ids of."""
    return "question" if role == "question" else "respondent"


def places_of(what: str, names: Sequence[Any], given: Mapping[str, Any]) -> dict[str, int]:
    """The position of the column of each role in the list `what`, among columns of these names.

    A name given for a role is taken; then the usual spellings; the roles and columns that remain go by their order.
    """
    found = {role: _given_place(what, role, names, given[role]) for role in ROLES[what] if given.get(role) is not None}
    candidates = _candidates(what, names, found)
    _check_not_torn(what, names, candidates)
    found |= {role: places[0] for role, places in candidates.items() if places}
    lacking = [role for role in ROLES[what] if role not in found]
    free = [place for place in range(len(names)) if place not in found.values()]
    if lacking and len(free) > len(lacking):
        free = [place for place in free if plain_spelling(names[place]) not in BESIDES]
    if lacking and len(free) != len(lacking):
        raise _no_columns(what, names)
    return found | dict(zip(lacking, free, strict=False))


def speaks(what: str, names: Sequence[Any]) -> bool:
    """Whether one of the names at least is a usual spelling of something that the list tells."""
    return any(_candidates(what, names, {}).values())


def shared_name(asked: Sequence[Any], answers: Sequence[Any]) -> Any:
    """The header that both lists have, which then heads the questions; None if there is none, or more than one."""
    both = [name for name in asked if isinstance(name, str) and name in answers and plain_spelling(name) not in BESIDES]
    return both[0] if len(both) == 1 else None


def _given_place(what: str, role: str, names: Sequence[Any], name: Any) -> int:
    if name not in names:
        raise DataError(
            f"The column named as {role}={name!r} must be in the list {what}. Found only: {names_listed(names)}. "
            "Name one of these, or rename the column."
        )
    return list(names).index(name)


def _candidates(what: str, names: Sequence[Any], found: Mapping[str, int]) -> dict[str, list[int]]:
    """The columns that are spelled as each role that was not found yet, the usual spelling first."""
    free = {place: _spelling(name) for place, name in enumerate(names) if place not in found.values()}
    candidates = {}
    for role in ROLES[what]:
        if role not in found:
            rank = {word: position for position, word in enumerate(_spellings(role, len(names)))}
            candidates[role] = sorted((place for place in free if free[place] in rank), key=lambda it: rank[free[it]])
    return candidates


def _spelling(name: Any) -> str:
    """A header in plain letters, the paper's j+ and j- as words."""
    text = str(name).strip()
    sign = {"+": "plus", "-": "minus"}.get(text[-1:], "")
    return plain_spelling(text) + sign


def _spellings(role: str, width: int) -> list[str]:
    words = {
        "question": id_headers(QUESTIONS),
        "respondent": id_headers(RESPONDENTS),
        "value": [*VALUES, "x"],
        "higher": _sides(HIGHER),
        "lower": _sides(LOWER),
    }[role]
    words = list(dict.fromkeys(words))
    return words if width <= WIDEST_OF_LETTERS else without_letters(words)


def _sides(words: Sequence[str]) -> list[str]:
    """The ways to head a side of a comparison: higher, higher_id, higher_user, user_higher."""
    both = [one for word in words for who in RESPONDENTS for one in (word + who, who + word)]
    return id_headers([*words, *both])


def _check_not_torn(what: str, names: Sequence[Any], candidates: Mapping[str, list[int]]) -> None:
    """Refuse two columns of values, and two spelled as one role while another has none: one may well be the other."""
    torn = next((role for role, places in candidates.items() if len(places) > 1), None)
    empty = next((role for role, places in candidates.items() if not places), None)
    if torn is not None and (empty is not None or torn == "value"):
        first, second = (names[place] for place in sorted(candidates[torn][:2]))
        lacking = "" if empty is None else f", and nothing that is headed as the {empty}"
        raise DataError(
            f"The list {what} must say which column holds what. Found {first!r} and {second!r}, which may both be the "
            f"{torn}{lacking}. Say which it is: {torn}={first!r} or {torn}={second!r}."
        )


def _no_columns(what: str, names: Sequence[Any]) -> DataError:
    roles = ROLES[what]
    wanted = ", ".join(f"{role}=..." for role in roles)
    return DataError(
        f"The list {what} must have {len(roles)} columns: {', '.join(roles)}. Found {len(names)}: "
        f"{names_listed(names)}. "
        f"Name the columns: {wanted}; or check that the right list was passed."
    )
