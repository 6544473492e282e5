"""Parsing the query language, and queries as FTS5 expressions. No I/O; raises only UsageError."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.store.search.documents import conversation_fact, cost_fact, owner_fact
from moot.store.search.text import phrase, quoted

KNOWN = "2026, 2026-11, 2026-11-01, 2026-11-01T14:30, today, yesterday, 12h, 7d, 2w, 3m, 1y"

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T_](\d{1,2}):(\d{2})(?::(\d{2}))?)?)?)?", re.ASCII)
_AGO = re.compile(r"(\d{1,6})([hdwmy])", re.ASCII)
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


def parse_moment(text: str, now: int) -> int | None:
    """Return the start of a day, month or year in local time, or a time relative to `now`, in ms since 1970; None if invalid."""
    today = datetime.fromtimestamp(now / 1000).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if text.lower() in ("today", "yesterday"):
            return _ms(today - timedelta(days=text.lower() == "yesterday"))
        if match := _AGO.fullmatch(text.lower()):
            amount, unit = int(match[1]), match[2]
            ago = timedelta(hours=amount) if unit == "h" else timedelta(days=amount * _DAYS[unit])
            return max(0, now - int(ago.total_seconds() * 1000))
        if match := _DATE.fullmatch(text.upper()):
            year, month, day, hour, minute, second = match.groups()
            return _ms(datetime(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0)))
    except (ValueError, OverflowError, OSError):
        return None  # February 31, or a year out of range
    return None


def _ms(moment: datetime) -> int:
    return max(0, int(moment.timestamp() * 1000))


Column: TypeAlias = Literal["text", "tools", "reasoning"]

COLUMNS: Final[tuple[Column, ...]] = ("text", "tools", "reasoning")
_DEFAULT_COLUMNS: tuple[Column, ...] = ("text", "tools")  # columns that are searched by default
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
"""Operators with a description of their values."""

CONTEXT = 100
"""Maximum number of lines before and after a match that can be requested."""
_VALUES: dict[str, Sequence[str]] = {"role": ROLES, "in": COLUMNS, "has": HAS, "status": STATUSES}
_ELSEWHERE = {"since": "after", "until": "before", "is": "status", "folder": "project", "provider": "model"}
"""Operators of other programs, with their equivalents here."""
_LONG = 5  # minimum length of a misspelled operator; too many shorter names are words (`mode:`, `hash:`, `rule:`)
_MOST = 32  # maximum number of different words in a query; each is looked up separately
_REGEX = re.compile(r"(?<!\S)(?P<minus>-)?/(?P<regex>(?:[^/\\]|\\.)+)/(?!\S)")
_ITEM = re.compile(r'(?P<minus>-(?!-))?(?:(?P<name>[A-Za-z]+):(?=\S))?(?:"(?P<quoted>[^"]*)(?:"|$)|(?P<plain>\S+))')
_QUOTES = str.maketrans("\u201c\u201d\u201e\u201f", '""""')
_COMPILE = "moot.store.search.regexes:compiled"
"""Loaded by path, because most queries have no regular expression."""
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1f]")
_LETTER = re.compile(r"[^\W_]")
_COST = re.compile(r"(>=?|<=?)\$?(\d{0,9}(?:\.\d{0,9})?)", re.ASCII)
_NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a message: it must have one of the values, or none of them if `negated`."""

    operator: str
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """The minimum and maximum cost of a message in nano-dollars."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    terms: tuple[str, ...] = ()
    """Words and phrases that must all occur; without quotes."""
    without: tuple[str, ...] = ()
    """Words and phrases that must not occur."""
    columns: tuple[Column, ...] = _DEFAULT_COLUMNS
    conditions: tuple[Condition, ...] = ()
    after: int = 0
    """Start time in milliseconds since 1970, inclusive. 0 means no limit."""
    before: int | None = None
    """End time in milliseconds since 1970, exclusive. None means no limit."""
    cost: Cost = field(default_factory=Cost)
    patterns: tuple[str, ...] = ()
    """Regular expressions that must all match in one column."""
    quoted: frozenset[str] = field(default=frozenset(), compare=False)
    """The terms in `terms` that were quoted."""

    def __bool__(self) -> bool:
        """Return True if the query contains anything to search for."""
        return self != Query(columns=self.columns)


@dataclass(slots=True)
class _Draft:
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
    """Parse a query; `now` (ms) is the base of relative times such as `7d`. Raise UsageError for an invalid operator or value."""
    draft = _Draft(now)
    patterns, text = _patterns(_NOT_TEXT.sub(" ", text.encode("utf-8", "replace").decode()))
    for match in _ITEM.finditer(text.translate(_QUOTES)):
        name, negated = (match["name"] or "").lower(), match["minus"] is not None
        value = match["plain"] if match["quoted"] is None else match["quoted"]
        if name in OPERATORS:
            if value.strip():
                _operator(name, value.strip(), negated, draft)
            continue
        if name and not value.startswith("//"):
            # other words with a colon are text
            meant = _ELSEWHERE.get(name) or next(iter(get_close_matches(name, OPERATORS, 1, 0.8) if len(name) >= _LONG else ()), None)
            if meant is not None:
                raise UsageError(
                    f"Unknown operator {name}:. Did you mean {meant}:? Known operators: {', '.join(f'{one}:' for one in OPERATORS)}.",
                    fix=_quoted_fix(match[0].lstrip("-")),
                )
        term = f"{match['name']}:{value}" if name else value
        if _LETTER.search(term):
            (draft.without if negated else draft.terms)[term.strip()] = None
            draft.quoted.update(() if match["quoted"] is None else (term.strip(),))
    if len(draft.terms) + len(draft.without) > _MOST:
        raise UsageError(f"The query has more than {_MOST} different words.", fix="Use fewer words.")
    columns = _columns(draft)
    conditions = [Condition(name, tuple(values), no) for (name, no), values in draft.any_of.items() if name != "in"]
    cost = Cost(draft.least, draft.most)
    conditions += draft.has
    return Query(
        tuple(draft.terms),
        tuple(draft.without),
        columns,
        tuple(conditions),
        draft.after,
        draft.before,
        cost,
        patterns,
        quoted=frozenset(draft.quoted & draft.terms.keys()),
    )


def _patterns(text: str) -> tuple[tuple[str, ...], str]:
    """Return the regular expressions in a query, and the rest of the query. Raise UsageError if an expression is invalid."""
    if "/" not in text:
        return (), text
    found: list[str] = []
    for match in _REGEX.finditer(text):
        if match["minus"]:
            raise UsageError("A regular expression can't be excluded.", fix="Exclude words instead: -word.")
        attribute(_COMPILE)(match["regex"])
        found.append(match["regex"])
    return tuple(dict.fromkeys(found)), _REGEX.sub(" ", text)


def _columns(draft: _Draft) -> tuple[Column, ...]:
    wanted: Sequence[str] = draft.any_of.get(("in", False), _DEFAULT_COLUMNS)
    unwanted = draft.any_of.get(("in", True), [])
    columns: tuple[Column, ...] = tuple(column for column in COLUMNS if column in wanted and column not in unwanted)
    if not columns:
        raise UsageError("The query excludes every column.", fix=f"Remove -in:, or use one of {', '.join(f'in:{one}' for one in COLUMNS)}.")
    return columns


def _operator(name: str, value: str, negated: bool, draft: _Draft) -> None:
    known = _VALUES.get(name)
    if known is not None:
        value = value.lower()
        if value not in known:
            raise _bad(name, value, f"Known values: {', '.join(known)}.")
    special = _SPECIAL.get(name)
    if special is not None:
        special(draft, name, value, negated)
    elif known is None and not _LETTER.search(value):
        raise _bad(name, value, f"Expected {OPERATORS[name]}.")
    elif name == "has":  # several values must all be present
        draft.has.append(Condition("has", (value,), negated))
    else:
        draft.any_of.setdefault((name, negated), []).append(value)


def _moment(draft: _Draft, name: str, value: str, negated: bool) -> None:
    moment = parse_moment(value, draft.now)
    if moment is None:
        raise _bad(name, value, f"Expected a time such as {KNOWN}.")
    if (name == "after") is not negated:
        draft.after = max(draft.after, moment)
    else:
        draft.before = moment if draft.before is None else min(draft.before, moment)


def _cost(draft: _Draft, name: str, value: str, negated: bool) -> None:
    match = _COST.fullmatch(value)
    if match is None or not match[2].strip("."):
        raise _bad(name, value, "Expected dollars after > or <, such as cost:>0.05.")
    sign, (whole, _, rest) = match[1], match[2].partition(".")
    nano = int(whole or 0) * _NANO + int(rest.ljust(9, "0") or 0)
    if negated:
        sign = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}[sign]
    if sign[0] == ">":
        least = nano + (sign == ">")
        draft.least = least if draft.least is None else max(draft.least, least)
    else:
        most = nano - (sign == "<")
        draft.most = most if draft.most is None else min(draft.most, most)


_SPECIAL: dict[str, Callable[[_Draft, str, str, bool], None]] = {"before": _moment, "after": _moment, "cost": _cost}


def _bad(name: str, value: str, expected: str) -> UsageError:
    return UsageError(f"Invalid value {value!r} for the operator {name!r}. {expected}", fix=_quoted_fix(f"{name}:{value}"))


def _quoted_fix(text: str) -> str:
    plain = text.replace('"', "")
    return f'To search for the text itself, put it in quotes: "{plain}"'


_COSTS = 63
_WORDY = ("agent", "model")


def expression(
    query: Query, terms: Sequence[Sequence[str]], *, owner: str | None = None, conversation: int | None = None, exclude: int | None = None
) -> str:
    """Return an FTS5 expression that requires one phrase of each entry in `terms`; owner or conversation None = any.

    Costs are matched only approximately; projects and times are not part of it.
    """
    columns = f"{{{' '.join(query.columns)}}}"
    wanted = [f"{columns} : {_any(phrases)}" for phrases in terms]
    wanted += [_condition(each) for each in query.conditions if not each.negated and each.operator != "project"]
    if query.cost != Cost():
        wanted.append(_facts(cost_fact(1 << bits >> 1) for bits in _bits(query.cost)))
    if owner is not None:
        wanted.append(_facts([owner_fact(owner)]))
    if conversation is not None:
        wanted.append(_facts([conversation_fact(conversation)]))
    unwanted = [f"{columns} : {phrase(term)}" for term in query.without]
    unwanted += [_condition(each) for each in query.conditions if each.negated and each.operator != "project"]
    if exclude is not None:
        unwanted.append(_facts([conversation_fact(exclude)]))
    found = " AND ".join(wanted or [_facts(["all"])])
    return f"({found}) NOT ({' OR '.join(unwanted)})" if unwanted else found


def _condition(condition: Condition) -> str:
    if condition.operator in _WORDY:
        return f"{condition.operator} : {_any(map(quoted, condition.values))}"
    return _facts(f"{condition.operator}{value}" for value in condition.values)


def _facts(facts: Iterable[str]) -> str:
    return f"facts : {_any(map(quoted, facts))}"


def _any(phrases: Iterable[str]) -> str:
    return f"({' OR '.join(phrases)})"


def _bits(cost: Cost) -> range:
    most = _COSTS if cost.most is None else min(cost.most.bit_length(), _COSTS)
    return range(min((cost.least or 0).bit_length(), _COSTS), most + 1)
