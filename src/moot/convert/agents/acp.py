"""Conversion of the Agent Client Protocol (version 1, https://agentclientprotocol.com) to chunks.

The translator reads the agent's lines, and moot's lines as context. Only the lines between moot's `session/prompt` and its response are
the answer, because an agent that loads a session repeats it. In a capture of an agent's stdout, which has no lines from moot, every line
counts.
"""

from __future__ import annotations

from typing import NamedTuple

from moot.convert.agents import acp_calls
from moot.convert.agents.acp_calls import (
    REASONS,
    Call,
    attachment,
    chunk_usage,
    cost_of,
    id_of,
    message_of,
    model_of,
    parent_of,
    session_tokens,
    sub_agent_of,
    tool_name,
    usage_of,
)
from moot.convert.vendor import as_list, as_object, as_text, count, failure, plan_of
from moot.convert.writer import Parts, Rope, Spoken, Writer, begin, free_id, join
from moot.types.canonical import JsonObject
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, data, message_metadata, sub_agent
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, ExchangeOptions, Failure
from moot.types.usage import Usage

AUTH_REQUIRED = -32000
"""The protocol's error code for an agent that requires a login."""


class Words(NamedTuple):
    """Text or reasoning of a sub-agent that is not complete yet."""

    kind: Spoken
    message: str
    """The agent's id for the message."""
    parent: str
    """The id of the call that started the sub-agent."""
    agent: str
    text: Rope


class State(NamedTuple):
    parts: Parts
    spoken: bool = False
    """True once a line from moot was read."""
    live: bool = False
    """True once moot has sent the prompt, so that the following lines are the answer."""
    prompt: str = ""
    """The id of moot's prompt request."""
    session: str = ""
    loaded: bool = False
    """True if the session existed before this exchange."""
    facts: JsonObject | None = None
    """Facts for the message's metadata: agent, version, model and mode."""
    message: str = ""
    """The agent's id for the message that the open text belongs to."""
    words: Words | None = None
    """Text of a sub-agent that is not complete yet."""
    calls: tuple[Call, ...] = ()
    asked: tuple[tuple[str, str, str], ...] = ()
    """The agent's unanswered requests, each with its id, method and subject, which is moot's id of a call, or a terminal."""
    refusals: tuple[str, ...] = ()
    """Options that refuse a permission request, each as `<request id>/<option id>`."""
    streams: tuple[tuple[str, str], ...] = ()
    """The output of each of moot's terminals, as last reported to the agent."""
    step: bool = False
    answered: bool = False
    """True if a call in this step has its output, so that the agent's next text comes from a new model call."""
    stop: str = ""
    usage: JsonObject | None = None
    calls_usage: JsonObject | None = None
    """Sum of the tokens of single model calls, for agents that report no total."""
    before: JsonObject | None = None
    """Tokens used in the session before the prompt, for agents that count tokens per session."""
    cost: int | None = None
    cost_before: int | None = None
    context: float = -1.0
    error: JsonObject | None = None
    noise: int = 0
    """Number of lines that are not protocol messages."""
    past: bool = False
    """True while the lines repeat an earlier answer, as they do when an agent loads a session."""


class Acp:
    """Translator for the Agent Client Protocol. It also reads the lines that moot sends."""

    name = "acp"
    version = 2
    """Version 2 keeps the decision on a denied call, and links the calls of sub-agents to the call that started them."""

    def open(self, options: ExchangeOptions) -> State:
        return State(begin(options), loaded=options.extra.get("loaded") is True, past=options.extra.get("past") is True)

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        message = message_of(raw)
        if message is None:
            return (state._replace(noise=state.noise + 1) if raw.strip() else state), ()
        turn = _Turn(state)
        turn.hear(message)
        return turn.end()

    def said(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        message = message_of(raw)
        if message is None:
            return state, ()
        turn = _Turn(state._replace(spoken=True))
        turn.say(message)
        return turn.end()

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        turn = _Turn(state)
        turn.finish(ended)
        error = Failure.from_json(state.error) if state.error is not None else None
        if error is None and not state.stop and ended != "cancelled" and not state.past:
            error = Failure("the agent ended before its answer was whole", "cut")
        metadata: JsonObject = {
            **(state.facts or {}),
            **({"session": state.session} if state.session else {}),
            **({"noise_lines": state.noise} if state.noise else {}),
        }
        reason = "error" if error is not None else REASONS.get(state.stop, "stop" if state.past else "other")
        return tuple(turn.writer.chunks), Ending(reason, state.stop or None, _spent(state), _paid(state), error, metadata)


def call_of(state: State, vendor_id: str) -> Call | None:
    """Return the agent's newest call with this id."""
    return next((call for call in reversed(state.calls) if call.vendor_id == vendor_id), None)


def _spent(state: State) -> Usage:
    spent = Usage.from_json(state.usage or state.calls_usage or {})
    if state.before is None or spent.input is None:
        return spent
    before = Usage.from_json(state.before)
    return Usage(max(spent.input - (before.input or 0), 0), max((spent.output or 0) - (before.output or 0), 0))


def _paid(state: State) -> int | None:
    """Return the exchange's cost, or None if it is unknown. Agents report the session's total, so the earlier cost is subtracted."""
    if state.cost is None or (state.loaded and state.cost_before is None):
        return None
    return max(state.cost - (state.cost_before or 0), 0)


class _Turn:
    def __init__(self, state: State) -> None:
        self._state = state
        self.writer = Writer(state.parts)

    def end(self) -> tuple[State, tuple[Chunk, ...]]:
        return self._state._replace(parts=self.writer.parts), tuple(self.writer.chunks)

    # ── moot's lines ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, message: JsonObject) -> None:
        params, id = as_object(message.get("params")), id_of(message)
        match message.get("method"):
            case "session/prompt":
                self.finish("eof")
                self._state = self._state._replace(live=True, prompt=id, session=as_text(params.get("sessionId")), stop="", error=None)
            case "session/load" | "session/resume":
                self._state = self._state._replace(live=False, loaded=True)
            case None:
                self._answer(id, as_object(message.get("result")))
            case _:
                pass

    def _answer(self, id: str, result: JsonObject) -> None:
        """Handle moot's response to a request from the agent."""
        request = next((request for request in self._state.asked if request[0] == id), None)
        if request is None:
            return
        _, method, about = request
        option = as_text(as_object(result.get("outcome")).get("optionId"))
        refused = f"{id}/{option}" in self._state.refusals
        self._state = self._state._replace(
            asked=tuple(other for other in self._state.asked if other is not request),
            refusals=tuple(refusal for refusal in self._state.refusals if not refusal.startswith(f"{id}/")),
        )
        if method == "terminal/output":
            others = tuple(stream for stream in self._state.streams if stream[0] != about)
            self._state = self._state._replace(streams=(*others, (about, as_text(result.get("output")))))
        elif method == "session/request_permission" and refused:
            # gemini and qwen send nothing more about a refused call
            call = next((call for call in self._state.calls if call.id == about and not call.settled), None)
            if call is not None:
                self._put(call, *acp_calls.deny(call))

    # ── the agent's lines ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def hear(self, message: JsonObject) -> None:
        method, params = message.get("method"), as_object(message.get("params"))
        if method is None:
            self._result(id_of(message), message)
        elif method == "session/update":
            self._update(as_text(params.get("sessionId")), as_object(params.get("update")))
        elif "id" in message:
            self._request(id_of(message), as_text(method), params)

    def _result(self, id: str, message: JsonObject) -> None:
        result, error, state = as_object(message.get("result")), message.get("error"), self._state
        if "protocolVersion" in result:
            info = as_object(result.get("agentInfo"))
            self._know({"agent": as_text(info.get("name")), "agent_version": as_text(info.get("version"))})
        if "sessionId" in result or "modes" in result or "configOptions" in result:
            session = as_text(result.get("sessionId")) or state.session
            mode = as_text(as_object(result.get("modes")).get("currentModeId"))
            self._state = state._replace(session=session)
            self._know({"model": model_of(result), "mode": mode})
        ours = state.live and id == state.prompt if state.spoken else "stopReason" in result
        if not ours:
            return
        if error is not None:
            failed = failure(error)
            kind = "auth" if as_object(error).get("code") == AUTH_REQUIRED else failed.kind
            self._state = self._state._replace(error=Failure(failed.message, kind, failed.retryable, failed.retry_after).to_json())
            return
        self._state = self._state._replace(stop=as_text(result.get("stopReason")) or "end_turn")
        if usage := usage_of(result).to_json():
            known = Usage.from_json(self._state.usage or {}) if self._state.before is None else Usage()
            self._state = self._state._replace(usage=(known + Usage.from_json(usage)).to_json())

    def _know(self, facts: dict[str, str]) -> None:
        known = {name: value for name, value in facts.items() if value}
        self._state = self._state._replace(facts={**(self._state.facts or {}), **known})

    def _request(self, id: str, method: str, params: JsonObject) -> None:
        about = as_text(params.get("terminalId"))
        if method == "session/request_permission" and self._is_ours(as_text(params.get("sessionId"))):
            request = as_object(params.get("toolCall"))
            call = self._call(request, new=False)
            # the user is asked about the input as it is known at this point
            call = self._put(call, *acp_calls.show(call)) if not call.settled else call
            about = call.id
            refuse = [
                as_text(option.get("optionId"))
                for option in map(as_object, as_list(params.get("options")))
                if as_text(option.get("kind")).startswith("reject")
            ]
            self._state = self._state._replace(refusals=(*self._state.refusals, *(f"{id}/{option}" for option in refuse)))
        self._state = self._state._replace(asked=(*self._state.asked, (id, method, about)))

    def _is_ours(self, session: str) -> bool:
        """Return True if updates in this session belong to the answer."""
        if not self._state.spoken or self._state.past:
            return True
        return self._state.live and (not self._state.session or session == self._state.session)

    def _update(self, session: str, update: JsonObject) -> None:
        kind = update.get("sessionUpdate")
        if kind == "usage_update":
            self._usage(update)
        if not self._is_ours(session):
            return
        match kind:
            case "agent_message_chunk":
                self._append_text("text", update)
            case "agent_thought_chunk":
                self._append_text("reasoning", update)
            case "tool_call" | "tool_call_update":
                known, new = call_of(self._state, as_text(update.get("toolCallId"))), kind == "tool_call"
                if new or known is None or not known.settled:  # otherwise it is an update after the call's end
                    call = self._call(update, new=new)
                    self._put(call, *acp_calls.advance(call, dict(self._state.streams)))
            case "plan":
                self._in_step()
                self.writer.chunks.append(data("plan", plan_of(update.get("entries"), "content"), id="plan"))
            case "current_mode_update":
                mode = as_text(update.get("currentModeId"))
                if mode and mode != (self._state.facts or {}).get("mode"):
                    self._know({"mode": mode})
                    self.writer.chunks.append(data("note", {"text": f"The agent is now in its mode {mode!r}."}, id=f"mode:{mode}"))
            case _:
                pass  # commands, options, titles, echoes of the prompt, and future kinds

    def _usage(self, update: JsonObject) -> None:
        state, cost, tokens = self._state, cost_of(update), session_tokens(update)
        if cost is not None:
            state = state._replace(cost=cost) if state.live or not state.spoken else state._replace(cost_before=cost)
        if tokens is not None and not state.stop and (state.before is None or not state.live):
            state = state._replace(before=tokens.to_json())
        self._state = state
        used, size = count(update.get("used")), count(update.get("size"))
        if used is not None and size and (state.live or not state.spoken):
            context = round(min(used / size, 1.0), 4)
            if context != state.context:
                self._state = state._replace(context=context)
                self.writer.chunks.append(message_metadata({"context_usage": context}))

    # ── parts of the answer ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _in_step(self) -> None:
        """Start a step if none is open, or if all calls in the open step have outputs, which means that the model was called again."""
        state = self._state
        if state.step and (not state.answered or any(not call.settled for call in state.calls)):
            return
        self._end_text()
        self.writer.chunks += [FINISH_STEP, START_STEP] if state.step else [START_STEP]
        self._state = state._replace(step=True, answered=False, message="")

    def _append_text(self, kind: Spoken, update: JsonObject) -> None:
        usage = chunk_usage(update)
        if usage is not None:
            self._state = self._state._replace(calls_usage=(Usage.from_json(self._state.calls_usage or {}) + usage).to_json())
        content, parent = as_object(update.get("content")), parent_of(update)
        text = as_text(content.get("text")) if content.get("type") == "text" else ""
        piece = attachment(content)
        if not text and piece is None:
            return
        self._in_step()
        if parent and piece is None:
            words = Words(kind, as_text(update.get("messageId")), self._id_of(parent), sub_agent_of(update), ())
            self._add_words(words, text)
            return
        if as_text(update.get("messageId")) != self._state.message:
            self._end_text()
            self._state = self._state._replace(message=as_text(update.get("messageId")))
        if piece is not None:
            self._end_text()
            self.writer.chunks.append({**piece, "sourceId": self.writer.part_id()} if "sourceId" in piece else piece)
            return
        self._end_words()
        self.writer.say(kind, text)

    def _add_words(self, words: Words, text: str) -> None:
        """Append to a sub-agent's text. When the text is complete, it becomes a single part,
        because clients replace such a part as a whole.
        """
        if self._state.words is None or self._state.words._replace(text=()) != words:
            self._end_text()
            self._state = self._state._replace(words=words)
        known = self._state.words or words
        self._state = self._state._replace(words=known._replace(text=join(known.text, text)))

    def _end_words(self) -> None:
        if (words := self._state.words) is not None:
            self._state = self._state._replace(words=None)
            self.writer.chunks.append(
                sub_agent(self.writer.part_id(), words.kind, "".join(words.text), agent=words.agent, parent=words.parent)
            )

    def _end_text(self) -> None:
        """End the open text of the agent or of a sub-agent."""
        self.writer.end()
        self._end_words()

    def _call(self, update: JsonObject, *, new: bool) -> Call:
        """Return the call that a message is about, with the message's changes.

        If the call is unknown, create it, because agents differ in which message mentions a call first.
        """
        vendor_id = as_text(update.get("toolCallId"))
        known = call_of(self._state, vendor_id)
        if known is not None and not (new and known.settled):
            return known if known.settled else self._put(known, acp_calls.merge_update(known, update))
        self._in_step()
        self._end_text()
        name = tool_name(update, as_text((self._state.facts or {}).get("agent")))
        parent = parent_of(update)
        parts, number = self._state.parts, len(self._state.calls)
        used = {*parts.used, *(call.id for call in self._state.calls)}
        id = free_id(vendor_id or f"call_{parts.prefix}_{number}", used, f"{vendor_id}#{parts.step}", number)
        call = Call(id, vendor_id, name, parent=self._id_of(parent) if parent else "")
        call = acp_calls.merge_update(call, update)
        self.writer.chunks.append(acp_calls.begin(call))
        self._state = self._state._replace(calls=(*self._state.calls, call))
        return call

    def _put(self, old: Call, new: Call, chunks: tuple[Chunk, ...] | Chunk = ()) -> Call:
        self.writer.chunks += [chunks] if isinstance(chunks, dict) else chunks
        self._state = self._state._replace(
            calls=tuple(new if call.id == old.id else call for call in self._state.calls),
            answered=self._state.answered or new.settled,
        )
        return new

    def _id_of(self, vendor_id: str) -> str:
        call = call_of(self._state, vendor_id)
        return call.id if call is not None else vendor_id

    def finish(self, ended: Ended) -> None:
        """Close everything that is open. Claude and Codex send no end for cancelled calls."""
        self._end_text()
        stopped = ended == "cancelled" or self._state.stop == "cancelled"
        why = "cancelled before it ended" if stopped else "the agent ended before the call did"
        if self._state.stop and not stopped:
            why = "the agent ended its answer without saying what came of this call"
        for call in self._state.calls:
            if not call.settled:
                call = self._put(call, *acp_calls.show(call))
                self._put(call, *acp_calls.settle(call, dict(self._state.streams), why))
        if self._state.step:
            self._end_text()
            self.writer.chunks.append(FINISH_STEP)
            self._state = self._state._replace(step=False, message="")
