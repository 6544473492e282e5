"""The state machine shared by the line streams of headless agents: complete calls, steps, one message in the end."""

from __future__ import annotations

from typing import NamedTuple

from moot.convert._writer import Parts, Spoken, Writer, begin
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, tool_error, tool_output
from moot.types.exchange import Ended, ExchangeOptions


class Said(NamedTuple):
    parts: Parts
    step: bool = False
    answered: bool = False
    """A call of this step has its output."""
    open: tuple[tuple[str, str], ...] = ()
    """Tool calls without an output: the agent's id, and ours."""


def opened(options: ExchangeOptions) -> Said:
    """Return the state before the first line."""
    return Said(begin(options))


class Saying:
    def __init__(self, said: Said) -> None:
        self._said = said
        self._writer = Writer(said.parts)

    @property
    def said(self) -> Said:
        return self._said._replace(parts=self._writer.parts)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return tuple(self._writer.chunks)

    def step(self) -> None:
        """End the current step and start a new one."""
        self.end_step()
        self._writer.chunks.append(START_STEP)
        self._said = self._said._replace(step=True, answered=False)

    def end_step(self) -> None:
        """End the step, if one is open."""
        self._writer.end()
        if self._said.step:
            self._writer.chunks.append(FINISH_STEP)
            self._said = self._said._replace(step=False)

    def text(self, kind: Spoken, text: str) -> None:
        """Append to an open text, or start a new one."""
        if text:
            self._in_step()
            self._writer.say(kind, text)

    def end_text(self) -> None:
        """End the open text; the next one is a new part."""
        self._writer.end()

    def call(self, vendor_id: str, name: str, given: Json, title: str = "") -> None:
        """Add a call whose input is complete."""
        self._in_step()
        self._writer.end()
        parts = self._writer.parts
        id = self._new_id(parts, vendor_id)
        head: JsonObject = {"toolCallId": id, "toolName": name or "tool", "providerExecuted": True, "dynamic": True}
        if title:
            head["title"] = title
        head["toolMetadata"] = {"vendorId": vendor_id}
        self._writer.chunks += [{"type": "tool-input-start", **head}, {"type": "tool-input-available", **head, "input": given}]
        self._writer = self._with(parts._replace(used=(*parts.used, id)))
        self._said = self._said._replace(open=(*self._said.open, (vendor_id, id)))

    def output(self, vendor_id: str, text: str, *, failed: bool = False) -> None:
        """Add the output of a call; ignore an unknown call."""
        known = next((call for call in reversed(self._said.open) if call[0] == vendor_id), None)
        if known is None:
            return
        self._writer.chunks.append(tool_error(known[1], text or "failed") if failed else tool_output(known[1], text))
        self._said = self._said._replace(open=tuple(call for call in self._said.open if call != known), answered=True)

    def close(self, ended: Ended) -> None:
        """Close everything that is open."""
        self._writer.end()
        why = "cancelled before it ended" if ended == "cancelled" else "the agent ended without saying what came of this call"
        self._writer.chunks += [tool_error(id, why) for _, id in self._said.open]
        self._said = self._said._replace(open=())
        self.end_step()

    def _in_step(self) -> None:
        """Start a step if none is open, or if this follows the outputs of all calls: some agents don't report steps."""
        if not self._said.step or (self._said.answered and not self._said.open):
            self.step()

    def _with(self, parts: Parts) -> Writer:
        writer = Writer(parts)
        writer.chunks = self._writer.chunks
        return writer

    def _new_id(self, parts: Parts, vendor_id: str) -> str:
        number = len(parts.used)
        id = vendor_id or f"call_{parts.prefix}_{number}"
        while id in parts.used:
            id = f"{vendor_id}#{parts.step}.{number}"
            number += 1
        return id
