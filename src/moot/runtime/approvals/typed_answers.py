"""Answers that a person types: the choices to offer for an approval, the meaning of a typed line, and the command to answer later."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

from moot.convert.vendor import as_list, as_object
from moot.guard.terminal import visible_line
from moot.types.approval import Answer, Approval, Option
from moot.types.canonical import JsonObject
from moot.types.store import OwnerStore

EDITS = "yes, all file edits in this conversation"
"""Label of the answer `edits`."""
_NUMBERS = "123456789"
_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no"})
_SCOPES = {"s": "conversation", "f": "edits", "a": "always"}


async def open_approval(store: OwnerStore, run: str) -> Approval | None:
    """Return the oldest open approval of a run and its sub-agents that a person can answer, or None if there is none."""
    return next((one for one in await store.records.approvals(run=run, tree=True) if not one.by_client), None)


def answer_command(approval: Approval, conversation: str) -> str:
    """Return a command with which the user can answer later. For questions, it contains the first option of each."""
    if not isinstance(approval.questions, list):
        return f"moot chat resume {conversation[:13]}"
    options = [as_list(as_object(question).get("options")) for question in approval.questions]
    replies = (str(as_object(listed[0]).get("label")) if listed else "TEXT" for listed in options)
    return " ".join(("moot approvals allow", quote(approval.id), *(f"--answer {quote(reply)}" for reply in replies)))


def options_by_key(options: Sequence[Option]) -> dict[str, Option]:
    """Return the options by key: `y` and `n` apply to this call, `s` also allows later calls,
    and other options are numbered in the agent's order.
    """
    found: dict[str, Option] = {}
    numbers = iter(_NUMBERS)
    for option in options:
        letter = {"allow_once": "y", "allow_always": "s", "reject_once": "n"}.get(option.kind, "")
        key = letter if letter and letter not in found else next(numbers, "")
        if key:
            found[key] = option
    return {key: found[key] for key in sorted(found, key=lambda key: (not found[key].allows, key.isdigit(), key != "y", key))}


def label(option: Option) -> str:
    """Return the agent's label for an option on one line, with control characters visible."""
    return visible_line(option.label) or option.kind.replace("_", " ")


def patterns_text(approval: Approval) -> str:
    """Return the quoted patterns that a lasting rule would contain."""
    return ", ".join(f'"{visible_line(pattern)}"' for pattern in approval.lasting)


def choices(approval: Approval) -> str:
    """Return the answers that can be typed for an approval, on one line."""
    if approval.options:
        words = [f"[{key}] {label(option)}" for key, option in options_by_key(approval.options).items()]
        words += [f"[f] {EDITS}"] if approval.edits else []
        return f"{', '.join(words)}, or no because …"
    lasting = f", [s] yes in this conversation: {patterns_text(approval)}" if approval.lasting else ""
    edits = f", [f] {EDITS}" if approval.edits else ""
    always = ", [a]lways" if approval.always else ""
    return f"[y]es, once{lasting}{edits}{always}, [n]o, or no because …"


def parse_answer(approval: Approval, line: str) -> Answer | None:
    """Return the answer in a typed line, or None if the line is none of the `choices`."""
    verdict, _, reason = line.strip().partition(" ")
    verdict = verdict.lower().rstrip(",:.")
    option = options_by_key(approval.options).get(verdict)
    if option is not None and not reason:
        return Answer(option.allows, option.id, "" if option.allows else "denied by the user")
    if verdict in _YES and not reason:
        return Answer(approved=True)
    if verdict in _NO:
        return Answer(approved=False, reason=reason.strip().removeprefix("because").strip() or "denied by the user")
    own = not approval.options
    offered = {"s": own and bool(approval.lasting), "f": approval.edits, "a": own and approval.always}
    if not reason and offered.get(verdict):
        return Answer(approved=True, option=_SCOPES[verdict])
    return None


class TypedQuestion:
    """A tool's question, to be answered with a typed line."""

    def __init__(self, question: JsonObject) -> None:
        options = [as_object(option) for option in as_list(question.get("options"))]
        self.title = ": ".join(str(word) for word in (question.get("header"), question.get("text")) if word)
        self.options = [(str(option.get("label", "")), str(option.get("description") or "")) for option in options]
        """The label and the description of each option; untrusted."""
        self._multiple, self._only = question.get("multiple") is True, question.get("choices_only") is True

    @property
    def hint(self) -> str:
        """Return the form of the answer, such as `a number or text`."""
        numbers = "numbers separated by spaces" if self._multiple else "a number"
        return numbers if self._only else f"{numbers} or text" if self.options else "text"

    def parse(self, line: str) -> list[str] | str:
        """Return the reply in a typed line, or the reason why the line is not an answer. The reason is empty for an empty line."""
        labels = [name for name, _ in self.options]
        reply = parse_reply(line.strip(), labels, multiple=self._multiple)
        if self._only and not {name.casefold() for name in reply} <= {name.casefold() for name in labels}:
            return f"Answer with {' or '.join(map(repr, labels))}."
        return reply if line.strip() else ""


def parse_reply(line: str, labels: Sequence[str], *, multiple: bool) -> list[str]:
    """Return the labels of the options whose numbers were typed, or the typed line itself."""
    words = line.replace(",", " ").split()
    numbers = [number for word in words if (number := parse_number(word, len(labels)))]
    if numbers and len(numbers) == len(words) and (multiple or len(numbers) == 1):
        return [labels[number - 1] for number in dict.fromkeys(numbers)]
    return [line]


def parse_number(text: str, count: int) -> int | None:
    """Parse a number from 1 to `count`. Return None if the text is anything else."""
    text = text.strip()
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) and 1 <= int(text) <= count else None
