"""Sessions of which only the appended lines are read. The result equals that of reading the whole session."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format_samples import claude as claude_samples
from format_samples import codex as codex_samples
from import_stage import source, stored
from moot.formats.agents.claude.format import ClaudeFormat
from moot.formats.agents.codex.format import CodexFormat
from moot.formats.kit.documents import GrowingSession
from moot.formats.kit.sessions import LineFiles
from moot.formats.kit.unread import Checker
from moot.imports.conversations import YOUNG, ImportOptions
from moot.imports.importer import import_source
from moot.imports.reader import Piece, Prices, ReadingState, ReadingStates, ThreadReader, _NextPiece, read
from moot.imports.report import Report
from moot.imports.sources import local_sources
from moot.plugins import FORMATS
from moot.types.canonical import JsonObject, dumps
from moot.types.format import Format, ImportedConversation, ImportedFacts
from moot.types.imports import IncomingEntry
from moot.types.message import text_of
from moot.types.store import Store
from unit.formats.claude_lines import call, model, result, text, user
from unit.formats.test_claude_growth import LINES as CLAUDE_LINES
from unit.formats.test_claude_growth import quick
from unit.formats.test_codex import LINES as CODEX_LINES
from unit.formats.test_codex import META
from unit.formats.test_codex import line as codex_line

RECORDED = Path(__file__).parents[2] / "recorded"
CLAUDE = ".claude/projects/-p/5f0c1a52-7d0e-4c53-9d2c-1f6a3f0b7c11.jsonl"
CODEX = ".codex/sessions/2026/01/05/rollout-2026-01-05T10-00-00-5f0c1a52-7d0e-4c53-9d2c-1f6a3f0b7c11.jsonl"


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Reading:
    """All entries of a source and its facts, as they are read step by step, or at once without `states`."""

    def __init__(self, states: ReadingStates | None = None) -> None:
        self.final: list[IncomingEntry] = []
        """The entries that can't change any more."""
        self.states = states

    def read(self, path: Path, format: Format) -> tuple[list[IncomingEntry], ImportedFacts, str]:
        pieces: list[Piece] = []
        problem = read(source(path, format), Prices(), pieces.append, self.states)
        if not pieces:
            return [], ImportedFacts(), problem
        before = pieces[0].state
        final = [*self.final] if before is not None and before.id else []
        self.final = [*final]
        for piece in pieces:
            arrivals = [one._replace(compare=False) for one in piece.arrivals]
            if not piece.may_change:
                self.final = [*final, *arrivals]
            final += arrivals
            if piece.state is not None and piece.is_last:
                piece.state.keep(path, "stored")
        return final, pieces[-1].facts, problem


def check_continued(path: Path, format: Format, data: bytes, cuts: list[int]) -> int:
    """Check that each step has the same entries and facts as the whole file. Return how often a reading was continued."""
    states = ReadingStates(smallest=0)
    reading = Reading(states)
    for cut in (*sorted(cuts), len(data)):
        path.write_bytes(data[:cut])
        assert reading.read(path, format) == Reading().read(path, format)
    return states.used


CUTS = st.lists(st.integers(0, 4000), max_size=5)


@quick
@given(lines=st.lists(CLAUDE_LINES, max_size=14), cuts=CUTS)
def test_any_lines_of_claude_code_can_be_continued(tmp_path: Path, lines: list[bytes], cuts: list[int]) -> None:
    data = user(1, None, "first") + b"".join(lines)
    check_continued(tmp_path / "s1.jsonl", ClaudeFormat(), data, cuts)


@quick
@given(lines=st.lists(CODEX_LINES, max_size=14), cuts=CUTS)
def test_any_lines_of_codex_can_be_continued(tmp_path: Path, lines: list[bytes], cuts: list[int]) -> None:
    data = codex_line("session_meta", **META) + b"".join(lines)
    check_continued(tmp_path / "s1.jsonl", CodexFormat(), data, cuts)


def lines_of(data: bytes) -> list[int]:
    """Return the positions at which the lines end."""
    return [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]


@pytest.mark.parametrize("path", sorted(RECORDED.glob("formats/c*/**/*.jsonl")), ids=lambda path: path.stem[-8:])
def test_recorded_sessions_are_continued_at_each_line(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    ends = lines_of(data)
    format = ClaudeFormat() if "claude" in path.parts else CodexFormat()
    assert check_continued(tmp_path / path.name, format, data, ends) >= len(ends) - 1


LINE_FORMATS: dict[str, Format] = {name: FORMATS.make(name) for name in FORMATS.names() if isinstance(FORMATS.make(name), LineFiles)}
SESSIONS = {
    f"{format.name} {path.stem[-8:]}": (format, path, folder)
    for format in LINE_FORMATS.values()
    for folder in (*sorted((RECORDED / "stores").iterdir()), RECORDED / "formats" / format.name)
    for path in sorted(folder.rglob("*.jsonl"))
    if format.sniff(path, path.read_bytes())
}


def copied(name: str, folder: Path) -> tuple[Format, Path]:
    """Copy the recorded home of a session, because some formats read facts from other files."""
    format, path, home = SESSIONS[name]
    shutil.copytree(home, folder, dirs_exist_ok=True)
    return format, folder / path.relative_to(home)


def test_all_formats_of_lines_have_recorded_sessions() -> None:
    assert {name.split()[0] for name in SESSIONS} == LINE_FORMATS.keys() >= {"pi", "qwen", "copilot-cli", "kimi", "kimi-code", "droid"}


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_of_other_programs_are_continued_at_each_line(name: str, tmp_path: Path) -> None:
    format, path = copied(name, tmp_path)
    data = path.read_bytes()
    ends = lines_of(data)
    assert check_continued(path, format, data, [*ends, *(end - 9 for end in ends)]) >= len(ends) // 2


@quick
@given(name=st.sampled_from(sorted(SESSIONS)), choice=st.data())
def test_any_lines_of_other_programs_can_be_continued(tmp_path: Path, name: str, choice: st.DataObject) -> None:
    format, path = copied(name, tmp_path / name.replace(" ", "-"))
    first, *lines = SESSIONS[name][1].read_bytes().splitlines(keepends=True)
    some = choice.draw(st.lists(st.sampled_from([*lines, b"\n", b"no json\n", b"{}\n", b"[1]\n"]), max_size=14))
    data = first + b"".join(some)
    check_continued(path, format, data, choice.draw(st.lists(st.integers(len(first), len(data)), max_size=5)))


IDS = st.sampled_from("abcdef")


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str | None, str]]:
    """Lines that form a tree: the id of each, that of its parent, and its kind. Most of them continue the last line."""
    lines: list[tuple[str, str | None, str]] = []
    for number in range(draw(st.integers(1, 12))):
        before = lines[-1][0] if lines else None
        id = draw(st.one_of(st.just(f"n{number}"), st.just(f"n{number}"), IDS))
        ids = st.sampled_from([before, *(line[0] for line in lines)])
        parent = draw(st.one_of(st.just(before), st.just(before), ids, IDS, st.none()))
        lines.append((id, parent, draw(st.sampled_from(["user", "assistant", "assistant", "marked", "other"]))))
    return lines


def pi_line(id: str, parent: str | None, kind: str) -> JsonObject:
    if kind == "other":
        return {"type": "model_change", "id": id, "parentId": parent, "modelId": "m"}
    message: JsonObject = {"role": "user" if kind == "user" else "assistant", "content": [{"type": "text", "text": f"word {id}"}]}
    return {"type": "message", "id": id, "parentId": parent, "message": message, **marked(id, kind)}


def qwen_line(id: str, parent: str | None, kind: str) -> JsonObject:
    if kind == "other":
        return {"type": "system", "uuid": id, "parentUuid": parent, "sessionId": "s", "subtype": "x", "systemPayload": {}}
    message: JsonObject = {"parts": [{"text": f"word {id}"}]}
    role = "user" if kind == "user" else "assistant"
    return {"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s", "message": message, **marked(id, kind)}


def marked(id: str, kind: str) -> JsonObject:
    return {"moot": {"messageId": id}} if kind == "marked" else {}


TREES = {
    "pi": ({"type": "session", "id": "s", "timestamp": "2026-01-05T10:00:00.000Z", "cwd": "/w"}, pi_line),
    "qwen": (qwen_line("first", None, "user"), qwen_line),
}


@quick
@given(name=st.sampled_from(sorted(TREES)), lines=trees(), cuts=st.lists(st.integers(0, 12), max_size=4))
def test_any_tree_of_lines_can_be_continued(tmp_path: Path, name: str, lines: list[Any], cuts: list[int]) -> None:
    head, made = TREES[name]
    data = [dumps(head) + b"\n", *(dumps(made(*line)) + b"\n" for line in lines)]
    ends = [sum(map(len, data[: 1 + cut])) for cut in cuts]
    check_continued(tmp_path / "s1.jsonl", LINE_FORMATS[name], b"".join(data), ends)


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_of_other_programs_that_were_truncated_or_rewritten_are_read_as_a_whole(name: str, tmp_path: Path) -> None:
    format, path = copied(name, tmp_path)
    data = path.read_bytes()
    first, second, *others = data.splitlines(keepends=True)
    states = ReadingStates(smallest=0)
    reading = Reading(states)
    swapped = b"".join((first, *others, second))
    for step in (data, first + second, data, swapped, swapped + b"\n", data[:-30] + b"\n"):
        path.write_bytes(step)
        assert reading.read(path, format) == Reading().read(path, format)
    assert states.used <= 2


# ── importing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Importer:
    """An importer that keeps the state of each source, as the watcher does."""

    def __init__(self, store: Store, home: Path, smallest: int = 0) -> None:
        self.store = store
        self.home = home
        self.states = ReadingStates(smallest)
        self._reading = ThreadReader(None, self.states)

    async def run(self) -> Report:
        report = Report()
        for one in local_sources(self.home, {}, self.home / "moot"):
            await import_source(self.store, one, ImportOptions(home=self.home), self._reading, report)
        assert not report.failed
        return report


async def contents(store: Store) -> list[Any]:
    """Return everything that is shown and counted of the conversations and their branches."""
    found: list[Any] = []
    conversations = (await store.conversations.list()).items
    children = [child for one in conversations for child in (await store.conversations.list(parent=one.id)).items]
    names = {one.id: one.origin and one.origin["source_id"] for one in (*conversations, *children)}
    for one in (*conversations, *children):
        messages = [await store.conversations.message(node.id, conversation=one.id) for node in await store.tree.nodes(one.id)]
        keys = {message.id: number for number, message in enumerate(messages)}
        shown = [
            (message.role, message.parts, message.metadata, keys.get(message.parent or ""), message.created_at) for message in messages
        ]
        origin = one.origin or {}
        facts = (
            names[one.id],
            one.title,
            one.model,
            names.get(one.parent or ""),
            names.get(one.forked_from or ""),
            keys.get(one.head or ""),
        )
        counts = (one.message_count, one.usage, one.cost, one.unpriced_runs, origin["fidelity"], origin["problems"])
        found.append((*facts, *counts, shown))
    return sorted(found, key=str)


def steps(files: dict[str, bytes], seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes that are appended to the files in turn. They end at the end of a line or in the middle of one."""
    random_ = random.Random(seed)
    left = dict(files)
    while left:
        name = random_.choice(sorted(left))
        line = left[name].find(b"\n") + 1 or len(left[name])
        size = line if random_.random() < 0.7 else random_.randrange(1, line + 2000)
        yield name, left[name][:size]
        left[name] = left[name][size:]
        if not left[name]:
            del left[name]


def append(home: Path, name: str, data: bytes) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)
    return path


def home_of(store: str) -> dict[str, bytes]:
    folder = RECORDED / "stores" / store
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jsonl")}


INTERRUPTED = b"".join(
    (
        user(1, None, "What is here?"),
        model(2, 1, "m1", text("I look."), call("t1")),
        *(line for at in range(3, 13, 2) for line in (user(at, at - 1, f"prompt {at}"), model(at + 1, at, f"m{at}", text(f"answer {at}")))),
        user(20, 2, "a branch"),
        model(21, 20, "m20", text("in it"), call("t2")),
        user(22, 21, result("t2", "x")),
    )
)
HOMES = {
    **{name: home_of(name) for name in ("claude-fork", "claude-subagent", "claude-1h", "codex-fork", "codex-repeat", "codex-subagents")},
    "openclaude": home_of("openclaude"),
    "a call without an output": {CLAUDE: INTERRUPTED},
    "sub-agents in the session's file": {CLAUDE: claude_samples.SAMPLES["session"]},
    "codex": {CODEX: codex_samples.SAMPLES["session"]},
}


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("name", HOMES)
async def test_sessions_imported_line_by_line_equal_one_import_of_the_whole(name: str, tmp_path: Path) -> None:
    home = tmp_path / "user"
    async with stored(tmp_path / "line by line") as store:
        importer = Importer(store, home)
        for file, data in steps(HOMES[name], 1):
            append(home, file, data)
            await importer.run()
        grown, counted = await contents(store), (await store.stats.usage(wait=10)).total
    assert importer.states.used or "agents" in name  # the call of a sub-agent may become known later
    async with stored(tmp_path / "at once") as store:
        await Importer(store, home).run()
        assert grown == await contents(store)
        assert counted == (await store.stats.usage(wait=10)).total


async def words(store: Store) -> list[str]:
    (one,) = (await store.conversations.list()).items
    return [text_of(message.parts) for message in await store.conversations.branch(one.id)]


BEGUN = b"".join(user(at, at - 1 or None, f"{at}") + model(at + 1, at, f"m{at}", text(f"{at + 1}")) for at in range(1, 9, 2))
"""Four prompts with their answers. The first messages can't grow any more."""
EIGHT = list("12345678")


@pytest.mark.anyio
@pytest.mark.parametrize("smallest", [0, 1 << 20])
async def test_a_call_without_an_output_is_shown_as_failed_after_the_next_prompt(smallest: int, tmp_path: Path) -> None:
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path, smallest)
        for line in INTERRUPTED.splitlines(keepends=True)[:3]:
            append(tmp_path, CLAUDE, line)
            await importer.run()
        assert importer.states.used == (0 if smallest else 2)
        (one,) = (await store.conversations.list()).items
        assert [part.get("state") for part in (await store.conversations.branch(one.id))[1].parts][-1] == "output-error"


@pytest.mark.anyio
@pytest.mark.parametrize("longer", [b"", user(9, 8, "9")])
async def test_a_session_whose_earlier_lines_changed_is_read_as_a_whole(longer: bytes, tmp_path: Path) -> None:
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        path = append(tmp_path, CLAUDE, BEGUN)
        await importer.run()
        about = path.stat()
        with path.open("r+b") as file:
            file.write(BEGUN.replace(b'"1"', b'"X"') + longer)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1_000_000_000))
        await importer.run()
        assert not importer.states.used and path.stat().st_ino == about.st_ino
        assert await words(store) == ["X", *EIGHT[1:], *(["9"] if longer else [])]


@pytest.mark.anyio
async def test_a_purged_conversation_is_imported_as_a_whole_when_its_session_grows(tmp_path: Path) -> None:
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        append(tmp_path, CLAUDE, BEGUN)
        await importer.run()
        await store.erasure.purge([one.id for one in (await store.conversations.list()).items])
        append(tmp_path, CLAUDE, user(9, 8, "9"))
        report = await importer.run()
        assert importer.states.used == 1 and report.counts.added == 9
        assert await words(store) == [*EIGHT, "9"]


@pytest.mark.anyio
async def test_lines_appended_while_the_conversation_was_deleted_are_imported_after_its_restoration(tmp_path: Path) -> None:
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        append(tmp_path, CLAUDE, BEGUN)
        await importer.run()
        (one,) = (await store.conversations.list()).items
        for restore in (False, True):
            await store.conversations.delete(one.id, restore=restore)
            added = [user(at, at - 1, f"{at}") for at in (range(20, 21) if restore else range(9, 20))]
            append(tmp_path, CLAUDE, b"".join(added))
            await importer.run()
        assert await words(store) == [*EIGHT, *(f"{at}" for at in range(9, 21))]


@pytest.mark.anyio
async def test_an_incomplete_line_is_left_until_it_is_complete_or_old(tmp_path: Path) -> None:
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        append(tmp_path, CLAUDE, BEGUN)
        await importer.run()
        line = user(9, 8, "9")
        path = append(tmp_path, CLAUDE, line[:40])
        assert not (await importer.run()).problems
        append(tmp_path, CLAUDE, line[40:])
        assert (await importer.run()).counts.added == 1 and await words(store) == [*EIGHT, "9"]
        line = user(10, 9, "10")
        append(tmp_path, CLAUDE, line[:40])
        os.utime(path, ns=(0, path.stat().st_mtime_ns - 2 * YOUNG * 1_000_000_000))
        assert (await importer.run()).problems == 1
        append(tmp_path, CLAUDE, line[40:])
        assert not (await importer.run()).problems and await words(store) == [*EIGHT, "9", "10"]
        assert importer.states.used == 4


@pytest.mark.anyio
async def test_the_call_of_a_sub_agent_is_found_while_its_session_grows(tmp_path: Path) -> None:
    def lines(data: bytes) -> bytes:
        return data.replace(b'"s1"', f'"{Path(CLAUDE).stem}"'.encode())

    agent = str(Path(CLAUDE).with_name("agent-ab.jsonl"))
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        append(tmp_path, CLAUDE, lines(user(1, None, "Ask.") + model(2, 1, "m1", call("t1", "Task", prompt="Look."))))
        append(tmp_path, agent, lines(BEGUN))
        await importer.run()
        append(tmp_path, CLAUDE, lines(user(3, 2, result("t1", "Seen."), toolUseResult={"agentId": "ab"})).replace(b'": "', b'":"'))
        append(tmp_path, agent, lines(user(9, 8, "9")))
        await importer.run()
        (session,) = (await store.conversations.list()).items
        (child,) = (await store.conversations.list(parent=session.id)).items
        assert child.parent_tool_call == "t1" and importer.states.used == 1


@pytest.mark.anyio
async def test_large_messages_that_may_still_change_are_sent_one_by_one_and_counted_once(tmp_path: Path) -> None:
    large = [user(at, at - 1 or None, f"{at} " + "x" * 600_000) for at in range(1, 4)]
    pieces: list[Piece] = []
    path = append(tmp_path, CLAUDE, b"".join(large))
    assert not read(source(path, ClaudeFormat()), Prices(), pieces.append, ReadingStates(smallest=0))
    assert [len(piece.arrivals) for piece in pieces] == [1, 1, 1, 0]
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        await importer.run()
        append(tmp_path, CLAUDE, user(4, 3, "4"))
        assert [one.messages for one in (await importer.run()).brought] == [4]


@pytest.mark.anyio
@pytest.mark.slow
async def test_only_some_states_are_kept_in_memory(tmp_path: Path) -> None:
    names = [CLAUDE.replace("7c11", f"{number:04}") for number in range(40)]

    def session(number: int, data: bytes) -> None:
        append(tmp_path, names[number], data.replace(b'"s1"', b'"s%d"' % number))

    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        for number in range(40):
            session(number, BEGUN)
        await importer.run()
        for number, used in ((0, 0), (39, 1)):
            session(number, user(9, 8, "9"))
            await importer.run()
            assert importer.states.used == used
        session(39, model(10, 9, "m10", text("x" * (20 << 20))))  # too large
        await importer.run()
        assert importer.states.used == 2
        session(39, user(11, 10, "11"))
        await importer.run()
        assert importer.states.used == 2
        assert sorted(one.message_count for one in (await store.conversations.list()).items)[-3:] == [8, 9, 11]


@pytest.mark.anyio
async def test_an_incomplete_line_is_not_kept_in_memory(tmp_path: Path) -> None:
    async with stored(tmp_path / "moot") as store:
        importer = Importer(store, tmp_path)
        append(tmp_path, CLAUDE, BEGUN + b'{"type":"user","x":"' + b"y" * 200_000)
        await importer.run()
        assert [state.file.tail for state in importer.states._kept.values()] == [None]


def test_a_state_that_is_too_large_displaces_no_others() -> None:
    class Sized:
        def __init__(self, size: int) -> None:
            self.size = size

    states = ReadingStates(0)
    for number, size in enumerate((1_000, 1_000, 60 << 20)):
        session: Any = GrowingSession(ImportedConversation(str(number), ()), Sized(size))  # type: ignore[arg-type]
        states.keep(Path(str(number)), ReadingState(session, Checker.of(ClaudeFormat()), _NextPiece(""), states, ()))
    assert len(states._kept) == 2
