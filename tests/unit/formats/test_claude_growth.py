from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.formats import check_read, read_whole
from format_samples.claude import SAMPLES
from moot.errors import UsageError
from moot.formats.agents.claude.format import ClaudeFormat
from moot.types.format import ImportedMessage
from unit.formats.claude_lines import call, line, model, result, text, user

RECORDED = Path(__file__).parents[2] / "recorded"
SESSIONS = sorted((RECORDED / "formats" / "claude").rglob("*.jsonl"))
FORMAT = ClaudeFormat()
quick = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)


def messages(path: Path) -> Iterator[tuple[str, ImportedMessage]]:
    for whole in read_whole(FORMAT, path):
        for one in whole.messages:
            yield f"{whole.conversation.source_id} {one.source_id}", one


def check_growth(path: Path, data: bytes, cuts: list[int]) -> None:
    """Check that everything read before is read again in the same place, with more after it."""
    before: dict[str, ImportedMessage] = {}
    for cut in (*sorted(cuts), len(data)):
        path.write_bytes(data[:cut])
        try:
            after = dict(messages(path))
        except UsageError:
            assert not before
            continue
        assert set(before) <= set(after)
        for id, message in before.items():
            assert after[id].raw.startswith(message.raw), f"{id} lost what it had"
            assert (after[id].parent, after[id].role, after[id].created_at) == (message.parent, message.role, message.created_at)
        before = after


@quick
@given(data=st.data())
def test_a_session_that_grows_only_adds(tmp_path: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([*SESSIONS, None]))
    whole = path.read_bytes() if path is not None else SAMPLES["session"]
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=4))
    check_growth(tmp_path / (path.name if path is not None else "s1.jsonl"), whole, cuts)


BLOCKS = st.one_of(
    st.builds(text, st.text(max_size=5)),
    st.builds(call, st.sampled_from(["t1", "t2", "t3", ""]), st.sampled_from(["Bash", "Task"])),
    st.just({"type": "thinking", "thinking": "hm", "signature": "s"}),
    st.just({"type": "redacted_thinking", "data": "x"}),
    st.just({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}),
    st.just({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}),
    st.just({"type": "what?"}),
    st.just(5),
)
NUMBERS = st.integers(1, 12)
PARENTS = st.one_of(st.none(), NUMBERS, st.just(99))
LINES = st.one_of(
    st.builds(
        user,
        NUMBERS,
        PARENTS,
        st.one_of(st.sampled_from(["go", "<command-name>/x</command-name>", "", 5, None]), st.lists(BLOCKS, max_size=2)),
        isSidechain=st.booleans(),
    ),
    st.builds(
        lambda number, parent, id: user(number, parent, result(id, "out")), NUMBERS, PARENTS, st.sampled_from(["t1", "t2", "t3", ""])
    ),
    st.builds(
        lambda number, parent, id, blocks, side, at: model(number, parent, id, *blocks, isSidechain=side, timestamp=at),
        NUMBERS,
        PARENTS,
        st.sampled_from(["m1", "m2", ""]),
        st.lists(BLOCKS, max_size=3),
        st.booleans(),
        st.sampled_from(["2026-01-05T10:00:00.000Z", "1990-01-05T10:00:00Z", "no time", 5, None]),
    ),
    st.builds(
        line,
        st.sampled_from(["system", "attachment", "progress", "new"]),
        NUMBERS,
        PARENTS,
        subtype=st.sampled_from(["compact_boundary", "x"]),
    ),
    st.sampled_from(
        [b"junk\n", b'{"type":\n', b"\x00\x00\n", b"[]\n", b"{}\n", b"\n", b'{"type":"summary","summary":"s","leafUuid":"u2"}\n']
    ),
)


@quick
@given(lines=st.lists(LINES, max_size=14), cuts=st.lists(st.integers(0, 3000), max_size=3))
def test_any_tree_of_lines_is_read_and_grows(tmp_path: Path, lines: list[bytes], cuts: list[int]) -> None:
    data = user(1, None, "first") + b"".join(lines)
    path = tmp_path / "s1.jsonl"
    path.write_bytes(data)
    check_read(FORMAT, path)
    check_growth(path, data, [min(cut, len(data)) for cut in cuts])
