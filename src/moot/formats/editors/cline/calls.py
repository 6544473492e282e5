"""Read the token counts and costs of a task's model calls from the list of displayed entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from moot.formats.kit.fields import milliseconds, money, obj, objects, text, whole_number
from moot.formats.kit.json import ArrayItem, json_object
from moot.formats.kit.records import step, usage_without_cache
from moot.types.canonical import Json, JsonObject
from moot.types.format import TOTAL_OF
from moot.types.usage import Usage

_DELETED = frozenset({"api_req_deleted", "deleted_api_reqs"})


class Counted(NamedTuple):
    """A step, and the bytes from which it was read.

    The bytes become part of the answer, so that the answer changes when its tokens become known or are moved to a different answer.
    """

    raw: bytes
    facts: JsonObject


@dataclass(slots=True)
class Calls:
    """The model calls of a task, in order."""

    counts_cache: bool
    """True if the program's input count includes cached tokens."""
    models: list[JsonObject]
    """Entries of `model_usage`, oldest first."""
    model: str = ""
    """Model of calls before the first entry of `models`."""
    calls: list[tuple[int, Counted]] = field(default_factory=list[tuple[int, Counted]])
    """Time and step of each model call."""
    others: list[tuple[int, Counted]] = field(default_factory=list[tuple[int, Counted]])
    """For each cost that belongs to no call: the number of calls before it, and the step with the cost."""

    def take(self, raw: bytes, shown: JsonObject) -> None:
        """Add an entry of `ui_messages.json` if it contains tokens or costs."""
        say, at = text(shown, "say"), milliseconds(shown, "ts")
        if say == "api_req_started" or say in _DELETED:
            about = json_object(text(shown, "text"))
            facts = self._facts(about, ("tokensIn", "tokensOut", "cacheReads", "cacheWrites", "cost"))
            if not facts:
                return  # the request failed or is still being answered
            if say in _DELETED:
                self.others.append((len(self.calls), Counted(raw, {**facts, TOTAL_OF: "deleted"})))
            else:
                self.calls.append((at, Counted(raw, {**self._model(at), **facts})))
        elif say == "condense_context" and (cost := money(shown, "contextCondense", "cost")):
            self.others.append((len(self.calls), Counted(raw, {**self._model(at), **step("", cost=cost)})))

    def total(self, item: JsonObject) -> JsonObject:
        """Return the totals from the task's entry in the task list as a step, or an empty object if any call is known."""
        facts = self._facts(item, ("tokensIn", "tokensOut", "cacheReads", "cacheWrites", "totalCost"))
        return {**self._model(1 << 62), **facts, TOTAL_OF: "session"} if facts and not self.calls else {}

    def placed(self, answers: list[int], item: ArrayItem) -> dict[int, list[Counted]]:
        """Return the steps of each answer, keyed by the answer's position.
        `answers` contains the time of each answer, or 0 if it is unknown.
        """
        found: dict[int, list[Counted]] = {}
        last = len(answers) - 1
        if last < 0:
            return found
        by_time = all(answers) and len(answers) != len(self.calls)
        positions: list[int] = []
        for number, (at, counted) in enumerate(self.calls):
            after = [place for place, time in enumerate(answers) if time >= at] if by_time else [number]
            positions.append(min(after[0] if after else last, last))
            found.setdefault(positions[-1], []).append(counted)
        for before, counted in self.others:
            found.setdefault(positions[before - 1] if before else 0, []).append(counted)
        if total := self.total(obj(item.value)):
            found.setdefault(last, []).append(Counted(item.raw, total))
        return found

    def _facts(self, about: JsonObject, names: tuple[str, ...]) -> JsonObject:
        sent, output, read, written = (whole_number(about, name) for name in names[:4])
        if self.counts_cache and (sent or 0) >= (read or 0) + (written or 0):
            usage = Usage(sent, output, read, written)
        else:
            usage = usage_without_cache(sent, output, read, written)
        cost = money(about, names[4]) or None  # an unknown price is written as 0
        return step("", usage=usage.to_json(), cost=cost) if usage.input or usage.output or cost else {}

    def _model(self, at: int) -> JsonObject:
        used = [one for one in self.models if milliseconds(one, "ts") <= at] or self.models[:1]
        return step(text(used[-1], "model_id"), text(used[-1], "model_provider_id")) if used else step(self.model)


def calls_in(shown: Iterable[ArrayItem], metadata: Json, item: ArrayItem, *, counts_cache: bool) -> Calls:
    """Return the model calls in the entries of `ui_messages.json`."""
    models = sorted(objects(metadata, "model_usage"), key=lambda one: milliseconds(one, "ts"))
    calls = Calls(counts_cache, models, text(item.value, "modelId"))
    for one in distinct(shown):
        if isinstance(one.value, dict):
            calls.take(one.raw, one.value)
    return calls


def distinct(shown: Iterable[ArrayItem]) -> Iterator[ArrayItem]:
    """Yield the entries without duplicates. Entries have times, so equal entries are duplicates."""
    seen = set[int]()
    for one in shown:
        if (mark := hash(one.raw)) not in seen:
            seen.add(mark)
            yield one
