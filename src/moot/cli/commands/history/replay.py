"""The commands `moot replay` and `moot chat compare`."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, cast

import anyio

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import plural
from moot.cli.console.lines import INTERRUPTED
from moot.cli.console.messages import print_messages
from moot.cli.console.output import Output, cancel_on
from moot.cli.console.results import OnScreen, Show, ShowEvents, ShowText
from moot.cli.context.configuration import here
from moot.cli.context.engine import find_conversation, opened, opened_at
from moot.cli.context.output import Out
from moot.cli.follow import Follower
from moot.cli.options import NO_SHOW, Which
from moot.cli.run import make_show
from moot.cli.transcript.screen import ShowScreen
from moot.convert.comparison import compare_conversations
from moot.convert.unfold import unfold
from moot.engine import Engine
from moot.errors import UsageError
from moot.features.replays.replay import INSTANT, side_of, timed_events
from moot.features.replays.rerun import Rerun, rerun
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, is_tool
from moot.types.run import TERMINAL, Prompt, Run

_MARKS = {"-": ("[-", "-]", "red"), "+": ("{+", "+}", "green")}


First = Annotated[
    str,
    Parameter(
        kind="conversation",
        metavar="FIRST",
        help="First conversation: its id, the beginning of its id, its title, or its number in 'moot chat list'.",
    ),
]
Second = Annotated[
    str, Parameter(kind="conversation", metavar="SECOND", help="Second conversation, specified in the same way as the first.")
]


async def compare(conversation: First, other: Second, /, *, json: AsJson = False, output: Out) -> None:
    """Compare two conversations: matching prompts, both answers, and their usage."""
    async with opened(output) as engine:
        one = await find_conversation(engine, conversation, str(here()))
        two = await find_conversation(engine, other, str(here()))
        comparison = compare_conversations(await side_of(engine.store, one), await side_of(engine.store, two))
    _print_comparison(comparison, output, json=json)


def _print_comparison(comparison: JsonObject, output: Output, *, json: bool) -> None:
    """Print a word-by-word comparison. Differences are colored. In output without color, they are marked with brackets."""
    if json:
        output.json(comparison)
        return
    values = cast("dict[str, Any]", comparison)
    a, b = values["a"], values["b"]
    for name, side, style in (("A", a, "red"), ("B", b, "green")):
        title = f"{side['id'][:13]} · {side['title'] or 'untitled'} · {side['model'] or side['agent']}"
        output.data(output.styled(name, style) + f"  {output.fit(title)}\n")
    for pair in values["pairs"]:
        _pair(pair, output)
    output.data("\n")
    for name, unit in (("cost", _money), ("ms", _time), ("tools", str)):
        output.line(f"{_NAMES[name]:<12} A {unit(a[name]):>12}   B {unit(b[name]):>12}")
    for name in ("input", "output"):
        output.line(f"{name + ' tokens':<12} A {_count(a, name):>12}   B {_count(b, name):>12}")
    if values["same"]:
        output.say("moot: the answers are identical")


_NAMES = {"cost": "cost", "ms": "time", "tools": "tool calls"}


def _pair(pair: dict[str, Any], output: Output) -> None:
    prompt = pair["prompt"]["a"] if pair["prompt"]["a"] is not None else pair["prompt"]["b"]
    line = " ".join(str(prompt or "(no prompt)").split())
    shown = output.fit(line if len(line) <= 100 else f"{line[:99]}…")
    output.data("\n" + output.styled(f"› {shown}", "bold") + "\n")
    for name in ("a", "b"):
        answer = pair[name]
        output.line(f"{name.upper()}: {_facts(answer)}" if answer is not None else f"{name.upper()}: no answer")
    if pair["a"] is None or pair["b"] is None:
        return
    if pair["same"]:
        output.line("  identical")
        return
    for op, piece in pair["diff"]:
        begin, end, style = _MARKS.get(str(op), ("", "", ""))
        text = f"{begin}{output.fit(str(piece))}{end}"
        output.data(output.styled(text, style) if style else text)
    output.data("\n")


def _facts(answer: dict[str, Any]) -> str:
    tools = ", ".join(call["name"] for call in answer["tools"])
    facts = [
        answer["agent"],
        answer["model"],
        answer["status"] if answer["status"] != "finished" else "",
        _money(answer["cost"]),
        _time(answer["ms"]),
    ]
    facts.append(f"{answer['usage'].get('input', 0):,} in, {answer['usage'].get('output', 0):,} out" if answer["usage"] else "")
    return " · ".join(fact for fact in [*facts, f"tools: {tools}" if tools else ""] if fact and fact != "unknown")


def _money(cost: int | None) -> str:
    return "unknown" if cost is None else f"${cost / 1e9:.4f}"


def _time(ms: int | None) -> str:
    return "unknown" if ms is None else f"{ms / 1000:.1f} s"


def _count(side: dict[str, Any], name: str) -> str:
    count = side["usage"].get(name)
    return "unknown" if count is None else f"{count:,}"


_ORIGINAL_SETTINGS = frozenset({"recorded", "unattended", "attended"})
"""Settings that only apply to the original run."""


async def run_again(engine: Engine, conversation: Conversation, output: Output, *, json: bool) -> int:
    """Repeat every finished run of the current branch offline. Return 1 if anything differs."""
    found: list[Rerun] = []
    for message in await engine.store.conversations.branch(conversation.id):
        if message.run is None:
            continue
        run = await engine.store.records.run(message.run)
        if run.status in TERMINAL:
            found.append(await rerun(engine.runtime, engine.store, conversation, run))
            if not json:
                _print_result(found[-1], len(found), output)
    differs = any(one.differences for one in found)
    if json:
        data = list[Json]([one.to_json() for one in found])
        output.json({"ok": not differs, "conversation": conversation.id, "data": data})
    elif not found:
        output.say("moot: the conversation has no finished run", "yellow")
    return 1 if differs else 0


def _print_result(one: Rerun, number: int, output: Output) -> None:
    name = f"run {number} · {one.run.model or one.run.agent}"
    if not one.ran:
        output.line(f"{name}: skipped: {one.why}")
        return
    verdict = plural(len(one.differences), "difference") if one.differences else "identical"
    output.line(f"{name} · {plural(one.requests, 'request')}, {plural(one.calls, 'tool call')}: {verdict}")
    for words in one.differences:
        output.line(f"  {words}")


async def run_with(engine: Engine, source: Conversation, model: str, output: Output, *, json: bool) -> int:
    """Send the prompts of the current branch to another model in a new conversation, and compare the two conversations."""
    branch = await engine.store.conversations.branch(source.id)
    prompts = [message for message in branch if message.role == "user"]
    if not prompts:
        raise UsageError(f"{source.title or source.id!r} has no prompts.", fix="moot chat show ID")
    choice = await engine.providers.choice(model)
    name = str(choice.model.id)
    created = await engine.store.conversations.create(
        replace(
            Conversation(new_id()),
            title=f"{source.title or 'untitled'} ({name})",
            title_source="model",
            agent=source.agent if source.agent_type == "moot" else "default",
            model=name,
            project=source.project,
            directory=source.directory,
            allowed_uris=source.allowed_uris,
            forked_from=source.id,
            owner=source.owner,
        )
    )
    for message in prompts:
        original = await engine.store.records.last_answer(message.id)
        settings = {name: value for name, value in (original.settings if original else {}).items() if name not in _ORIGINAL_SETTINGS}
        settings |= {"attended": True} if output.attended else {"unattended": "deny"}
        prompt = Prompt(message.parts, conversation=created.id, directory=created.directory, model=name, settings=settings)
        if code := await _send(engine, prompt, output, json=json):
            output.say(f"moot: stopped; compare the answers so far with: moot chat compare {source.id[:13]} {created.id[:13]}", "yellow")
            return code
    created = await engine.store.conversations.get(created.id)
    comparison = compare_conversations(await side_of(engine.store, source), await side_of(engine.store, created))
    _print_comparison(comparison, output, json=json)
    if not json:
        output.say(f"moot: show this again with: moot chat compare {source.id[:13]} {created.id[:13]}", "dim")
    return 0


async def _send(engine: Engine, prompt: Prompt, output: Output, *, json: bool) -> int:
    submitted = await engine.runs.submit(prompt)
    if json:
        run = await engine.runs.wait(submitted.run.id)
        return 0 if run.status == "finished" else 1
    last = await engine.store.conversations.branch(submitted.conversation.id, limit=2)
    print_messages([one for one in last if one.role == "user"], output)
    return await Follower(engine, output, make_show(NO_SHOW, output)).follow(submitted.run, submitted.conversation, submitted.seq)


async def replay(
    conversation: Which,
    /,
    *,
    speed: Annotated[
        float | None,
        Parameter(
            above=0, help="Playback speed as a factor, such as 4. Defaults to 1 in a terminal. In a pipe, there are no pauses by default."
        ),
    ] = None,
    instant: Annotated[bool, Parameter(help="Play without pauses.")] = False,
    from_: Annotated[int, Parameter(minimum=1, help="Sequence number of the first event to play.")] = 1,
    jsonl: Annotated[bool, Parameter(help="Print each event as a line of JSON.")] = False,
    rerun: Annotated[
        bool,
        Parameter(
            help="Repeat the runs offline with the recorded answers and tool outputs, and report differences."
            " The exit code is 1 if there are any."
        ),
    ] = False,
    model: Annotated[
        str | None,
        Parameter(name=("--model", "-m"), kind="model", help="With --rerun: send the prompts to this model and compare the answers."),
    ] = None,
    json: Annotated[bool, Parameter(help="With --rerun: print one JSON document to stdout.")] = False,
    output: Out,
) -> int:
    """Replay the conversation with its original timing. Long pauses are shortened. Ctrl+C stops it."""
    if rerun:
        async with opened_at(conversation, output) as (engine, found):
            return await (
                run_again(engine, found, output, json=json) if model is None else run_with(engine, found, model, output, json=json)
            )
    if model is not None or json:
        raise UsageError("--model and --json require --rerun.", fix="moot replay ID --rerun")
    if instant and speed is not None:
        raise UsageError("--instant and --speed cannot be used together.")
    drawn = output.stdout_terminal and not jsonl
    pace = INSTANT if instant or (speed is None and not drawn) else (speed or 1.0)
    async with opened_at(conversation, output) as (engine, found):
        branch = await engine.store.conversations.branch(found.id)
        last = branch[-1].last_seq if branch else 0
        if from_ > max(last, 1):
            raise UsageError(
                f"There is no event number {from_}: the last event is number {last}.",
                fix="Run 'moot chat show ID --raw' to see the numbers.",
            )
        player = _Player(engine, found, output, pace, drawn=drawn, jsonl=jsonl)
        ended = False
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_on, group.cancel_scope, signal.SIGINT)
            await player.play(branch, from_)
            ended = True
            group.cancel_scope.cancel()
        return 0 if ended else INTERRUPTED


class _Player:
    """Playback of the messages of a branch."""

    def __init__(self, engine: Engine, conversation: Conversation, output: Output, speed: float, *, drawn: bool, jsonl: bool) -> None:
        self._engine = engine
        self._conversation = conversation
        self._output = output
        self._speed = speed
        self._drawn = drawn
        self._jsonl = jsonl
        self._calls = 0
        self._at = 0
        """Original time of the last event, in microseconds since the epoch."""
        self._shown_at = 0.0

    async def play(self, branch: Sequence[Message], begin: int) -> None:
        """Play the messages, starting with the event `begin`."""
        for message in branch:
            if message.last_seq >= begin:
                await self._message(message, begin)
            self._calls += sum(is_tool(part) for part in message.parts)

    async def _message(self, message: Message, begin: int) -> None:
        if message.run is not None:
            await self._run(await self._engine.store.records.run(message.run), message, begin)
        elif self._jsonl:
            event = Event("message", unfold(message), at=message.created_at * 1000, seq=message.first_seq)
            found = await self._engine.store.log.read(self._conversation.id, after=message.first_seq - 1, limit=1)
            await ShowEvents(self._output).event(found[0] if found else event)
        else:
            print_messages([message], self._output)

    async def _run(self, run: Run, message: Message, begin: int) -> None:
        if self._jsonl:
            await self._feed(ShowEvents(self._output), run, begin)
            return
        if not self._drawn:
            self._output.data("── assistant\n")
            show = ShowText(self._output)
            await self._feed(show, run, begin)
            await show.end(run, message)
            self._output.data("\n")
            return
        # the time in the recording, so that the original durations are shown
        screen = ShowScreen(self._output, clock=lambda: self._at / 1_000_000 + (time.monotonic() - self._shown_at) * (self._speed or 1.0))
        screen.begin(self._conversation.id, self._calls)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(screen.keep)
                await self._feed(screen, run, begin)
                group.cancel_scope.cancel()
        except BaseException:
            screen.leave()
            raise
        await screen.end(run, message)

    async def _feed(self, show: Show, run: Run, begin: int) -> None:
        async with aclosing(timed_events(self._engine.store.log, run, begin=begin, speed=self._speed)) as played:
            async for beat in played:
                if beat.left_out:
                    if isinstance(show, OnScreen):
                        await show.pause()
                    self._output.say(f"moot: skipped a pause of {_span(beat.left_out)}", "dim")
                if beat.wait:
                    await anyio.sleep(beat.wait)
                self._at, self._shown_at = beat.event.at, time.monotonic()
                await show.event(beat.event)


def _span(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
