"""The answers that agents offer, matched by kind, never by id or label."""

from __future__ import annotations

from moot.types.approval import Option, OptionKind, OutsideAnswer
from moot.types.canonical import Json

YES_NO = (Option("yes", "Yes", "allow_once"), Option("no", "No", "reject_once"))
"""Used for an agent that offers no options."""

_WORDS: dict[str, OptionKind] = {
    "allow_once": "allow_once",
    "allow_always": "allow_always",
    "reject_once": "reject_once",
    "reject_always": "reject_always",
}


def options_of(offered: Json) -> tuple[Option, ...]:
    """Parse ACP options (`optionId`, `name`, `kind`). Options of unknown kinds are omitted, because their effect is unknown."""
    found: list[Option] = []
    for item in offered if isinstance(offered, list) else []:
        if isinstance(item, dict) and (kind := _WORDS.get(str(item.get("kind")))) is not None:
            id = str(item.get("optionId", ""))
            found.append(Option(id, str(item.get("name", id)), kind))
    return tuple(found)


def chosen(answer: OutsideAnswer, options: tuple[Option, ...]) -> str | None:
    """Return the id of the option that matches the answer, or None if the agent offers none: then the call must be refused."""
    if answer.option is not None:
        return answer.option.id
    kinds: tuple[OptionKind, ...] = ("allow_once", "allow_always") if answer.approved else ("reject_once", "reject_always")
    return next((option.id for kind in kinds for option in options if option.kind == kind), None)
