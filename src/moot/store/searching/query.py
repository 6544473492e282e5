"""The query language: what a person types, as what is looked for. Pure; no text raises anything but UsageError."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from moot.errors import UsageError
from moot.store.searching.moments import KNOWN, parse_moment

__all__ = ["COLUMNS", "HAS", "OPERATORS", "ROLES", "STATUSES", "Column", "Condition", "Cost", "Query", "parse"]

Column: TypeAlias = Literal["text", "tools", "reasoning"]

COLUMNS: Final[tuple[Column, ...]] = ("text", "tools", "reasoning")
_SAID: tuple[Column, ...] = ("text", "tools")
"""Where words are looked for unless told otherwise."""
ROLES = ("user", "assistant", "system")
HAS = ("image", "file", "code", "tool", "reasoning", "error")
STATUSES = ("finished", "failed", "cancelled")
OPERATORS = {
    "agent": "a name, or the beginning of it",
    "model": "a name, or words of it",
    "project": "the name of a project",
    "role": ", ".join(ROLES),
    "in": ", ".join(COLUMNS),
    "before": KNOWN,
    "after": KNOWN,
    "has": ", ".join(HAS),
    "cost": ">0.05, >=1, <2 (dollars)",
    "status": ", ".join(STATUSES),
}
"""Each operator, and what may stand behind its colon."""

_VALUES: dict[str, Sequence[str]] = {"role": ROLES, "in": COLUMNS, "has": HAS, "status": STATUSES}
_ELSEWHERE = {"since": "after", "until": "before", "is": "status", "folder": "project", "provider": "model"}
"""What other programs call them."""
_LONG = 5
"""Letters of a name that may be a misspelled operator: among shorter ones too many are words (`mode:`, `hash:`, `rule:`)."""
_MOST = 32
"""Different words in one query: each is looked up by itself."""
_ITEM = re.compile(r'(?P<minus>-(?!-))?(?:(?P<name>[A-Za-z]+):(?=\S))?(?:"(?P<quoted>[^"]*)(?:"|$)|(?P<plain>\S+))')
_QUOTES = str.maketrans("\u201c\u201d\u201e\u201f", '""""')
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1f]")
_LETTER = re.compile(r"[^\W_]")
_COST = re.compile(r"(>=?|<=?)\$?(\d{0,9}(?:\.\d{0,9})?)", re.ASCII)
_NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Condition:
    """What a message has to be, or with `negated` must not be: any of the values."""

    operator: str
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """Nano-dollars that a message cost at least, or at most."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for."""

    terms: tuple[str, ...] = ()
    """Words and phrases that all have to occur; as typed, quotes off."""
    without: tuple[str, ...] = ()
    """Words and phrases none of which may."""
    columns: tuple[Column, ...] = _SAID
    conditions: tuple[Condition, ...] = ()
    after: int = 0
    """ms, included."""
    before: int | None = None
    """ms, not included; None = no end."""
    cost: Cost = field(default_factory=Cost)
    quoted: frozenset[str] = field(default=frozenset(), compare=False)
    """Those of `terms` that were typed between quotes."""

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return self != Query(columns=self.columns)


@dataclass(slots=True)
class _Reading:
    """A query as far as it has been read."""

    now: int
    terms: dict[str, None] = field(default_factory=dict[str, None])
    without: dict[str, None] = field(default_factory=dict[str, None])
    quoted: set[str] = field(default_factory=set[str])
    any_of: dict[tuple[str, bool], list[str]] = field(default_factory=dict[tuple[str, bool], list[str]])
    has: list[Condition] = field(default_factory=list[Condition])
    after: int = 0
    before: int | None = None
    least: int | None = None
    most: int | None = None


def parse(text: str, *, now: int) -> Query:
    """The query; `now` in ms is what `7d` counts from. Raises UsageError for an operator that is none, or a value that it does not take."""
    reading = _Reading(now)
    for match in _ITEM.finditer(_NOT_TEXT.sub(" ", text.encode("utf-8", "replace").decode()).translate(_QUOTES)):
        name, negated = (match["name"] or "").lower(), match["minus"] is not None
        value = match["plain"] if match["quoted"] is None else match["quoted"]
        if name in OPERATORS:
            if value.strip():
                _operator(name, value.strip(), negated, reading)
            continue
        if name and not value.startswith("//"):
            _check_unknown(match[0], name)
        said = f"{match['name']}:{value}" if name else value
        if _LETTER.search(said):
            (reading.without if negated else reading.terms)[said.strip()] = None
            reading.quoted.update(() if match["quoted"] is None else (said.strip(),))
    if len(reading.terms) + len(reading.without) > _MOST:
        raise UsageError(f"a query has at most {_MOST} different words, this one has more", fix="leave some out")
    columns = _columns(reading)
    conditions = [Condition(name, tuple(values), no) for (name, no), values in reading.any_of.items() if name != "in"]
    cost = Cost(reading.least, reading.most)
    conditions += reading.has
    return Query(
        tuple(reading.terms),
        tuple(reading.without),
        columns,
        tuple(conditions),
        reading.after,
        reading.before,
        cost,
        quoted=frozenset(reading.quoted & reading.terms.keys()),
    )


def _columns(reading: _Reading) -> tuple[Column, ...]:
    wanted: Sequence[str] = reading.any_of.get(("in", False), _SAID)
    unwanted = reading.any_of.get(("in", True), [])
    columns: tuple[Column, ...] = tuple(column for column in COLUMNS if column in wanted and column not in unwanted)
    if not columns:
        raise UsageError("nothing is left to search in", fix=f"leave -in: out, or say where: {', '.join(f'in:{one}' for one in COLUMNS)}")
    return columns


def _operator(name: str, value: str, negated: bool, reading: _Reading) -> None:
    known = _VALUES.get(name)
    if known is not None:
        value = value.lower()
        if value not in known:
            raise _bad(name, value, f"known: {', '.join(known)}")
    special = _SPECIAL.get(name)
    if special is not None:
        special(reading, name, value, negated)
    elif known is None and not _LETTER.search(value):
        raise _bad(name, value, f"it takes {OPERATORS[name]}")
    elif name == "has":  # several have to be there together
        reading.has.append(Condition("has", (value,), negated))
    else:
        reading.any_of.setdefault((name, negated), []).append(value)


def _moment(reading: _Reading, name: str, value: str, negated: bool) -> None:
    moment = parse_moment(value, reading.now)
    if moment is None:
        raise _bad(name, value, f"a time is one of: {KNOWN}")
    if (name == "after") is not negated:
        reading.after = max(reading.after, moment)
    else:
        reading.before = moment if reading.before is None else min(reading.before, moment)


def _cost(reading: _Reading, name: str, value: str, negated: bool) -> None:
    match = _COST.fullmatch(value)
    if match is None or not match[2].strip("."):
        raise _bad(name, value, "a cost is one in dollars behind > or <, such as cost:>0.05")
    sign, (whole, _, rest) = match[1], match[2].partition(".")
    nano = int(whole or 0) * _NANO + int(rest.ljust(9, "0") or 0)
    if negated:
        sign = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}[sign]
    if sign[0] == ">":
        least = nano + (sign == ">")
        reading.least = least if reading.least is None else max(reading.least, least)
    else:
        most = nano - (sign == "<")
        reading.most = most if reading.most is None else min(reading.most, most)


_SPECIAL: dict[str, Callable[[_Reading, str, str, bool], None]] = {"before": _moment, "after": _moment, "cost": _cost}


def _bad(name: str, value: str, expected: str) -> UsageError:
    return UsageError(f"{name}:{value!r} can't be searched for; {expected}", fix=_quoted_fix(f"{name}:{value}"))


def _check_unknown(item: str, name: str) -> None:
    """Words with a colon are text, unless they are a known operator misspelled or called as elsewhere."""
    meant = _ELSEWHERE.get(name) or next(iter(get_close_matches(name, OPERATORS, 1, 0.8) if len(name) >= _LONG else ()), None)
    if meant is not None:
        raise UsageError(
            f"{name}: is no operator of a search; did you mean {meant}:? Known: {', '.join(f'{one}:' for one in OPERATORS)}",
            fix=_quoted_fix(item.lstrip("-")),
        )


def _quoted_fix(said: str) -> str:
    plain = said.replace('"', "")
    return f'to search for these words as they are, put quotes around them: "{plain}"'
