"""Deletion of purged conversations from the copies of another machine's files: whose files are deleted, and what is not fetched again."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from moot.store.maintenance.purge.mirrors import MirroredSources, delete_mirrored, is_purged, purged_paths

ID = "11111111-2222-4333-8444-555555555555"
CASES: dict[str, tuple[str, str, set[str], set[str], set[str]]] = {
    # path, id, deleted files, list of purged ones, other files
    "a short name": (
        *(".config/aichat/sessions/on.yaml", "on"),
        *({".config/aichat/sessions/on.yaml"}, {".config/aichat/sessions/on.yaml"}),
        {".config/aichat/sessions/person.yaml", ".config/aichat/sessions/_/x.yaml", ".config/aichat/messages.md"},
    ),
    "a name with dots": (
        *(".config/aichat/sessions/work.yaml", "work"),
        *({".config/aichat/sessions/work.yaml"}, {".config/aichat/sessions/work.yaml"}),
        {".config/aichat/sessions/work.v2.yaml", ".config/aichat/sessions/work-2.yaml", ".config/aichat/sessions/my_work.yaml"},
    ),
    "a session with sub-agents": (
        *(f".claude/projects/p/{ID}.jsonl", ID),
        *({f".claude/projects/p/{ID}.jsonl", f".claude/projects/p/{ID}/subagents/agent-a.jsonl"},),
        *({f".claude/projects/p/{ID}.jsonl", f".claude/projects/p/{ID}"}, {f".claude/projects/p/{ID[:-1]}6.jsonl"}),
    ),
    "a sub-agent": (
        *(f".claude/projects/p/{ID}/subagents/agent-a.jsonl", f"{ID}/agent-a"),
        {f".claude/projects/p/{ID}/subagents/agent-a{end}" for end in (".jsonl", ".meta.json")},
        {f".claude/projects/p/{ID}/subagents/agent-a{end}" for end in (".jsonl", ".meta.json")},
        {f".claude/projects/p/{ID}/subagents/agent-a2.jsonl", f".claude/projects/p/{ID}.jsonl"},
    ),
    "a name with a time": (
        *(f".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{ID}.jsonl", ID),
        {f".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{ID}.jsonl"},
        {f".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{ID}.jsonl"},
        {f".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{ID[:-1]}6.jsonl"},
    ),
    "the first part of an id": (
        *(f".vibe/logs/session/session_20260722_{ID[:8]}/messages.jsonl", ID),
        {f".vibe/logs/session/session_20260722_{ID[:8]}/{name}" for name in ("messages.jsonl", "meta.json")},
        *({f".vibe/logs/session/session_20260722_{ID[:8]}"}, {".vibe/logs/session/session_20260722_99999999/messages.jsonl"}),
    ),
    "a folder": (
        *(f".openhands/conversations/{ID}", ID),
        {f".openhands/conversations/{ID}/{name}" for name in ("base_state.json", "events/event-00001-a.json")},
        *({f".openhands/conversations/{ID}"}, {f".openhands/conversations/{ID}2/base_state.json"}),
    ),
    "a file in a session's folders": (
        *(f".kimi-code/sessions/wd_x/session_{ID}/agents/main/wire.jsonl", ID),
        {f".kimi-code/sessions/wd_x/session_{ID}/{name}" for name in ("agents/main/wire.jsonl", "state.json")},
        *({f".kimi-code/sessions/wd_x/session_{ID}"}, {f".kimi-code/sessions/wd_x/session_9{ID[1:]}/state.json"}),
    ),
    "a database": (
        *(".local/share/opencode/opencode.db", "opencode"),
        *({".local/share/opencode/opencode.db", ".local/share/opencode/opencode.db-wal"}, set()),
        {".local/share/opencode/opencode-dev.db"},
    ),
    "a file with several sessions": (
        *(".config/aichat/messages.md", "2026-08-01"),
        *({".config/aichat/messages.md"}, set(), {".config/aichat/sessions/2026-08-01.yaml"}),
    ),
}


def write(data: Path, names: set[str]) -> Path:
    home = data / "hosts" / "laptop" / "home"
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("words")
    return home


@pytest.mark.parametrize("case", CASES)
def test_only_the_files_of_the_conversation_are_deleted(tmp_path: Path, case: str) -> None:
    path, id, deleted, purged, others = CASES[case]
    home = write(tmp_path, deleted | others)
    for attempt in range(2):  # a second attempt after a crash finds nothing left to do
        outcomes = delete_mirrored([MirroredSources("laptop", {path: {id}})], tmp_path)
        assert {str(Path(one.path).relative_to(home)) for one in outcomes} == (set() if attempt else deleted)
        assert {str(one.relative_to(home)) for one in home.rglob("*") if one.is_file()} == others
        without_suffix = {str(PurePosixPath(path).with_suffix(""))} if path in purged else set[str]()
        assert purged_paths(home.parent) == purged | without_suffix
    assert not any(is_purged(name, purged) for name in others)
    assert not purged or all(is_purged(name, purged) for name in deleted)


@pytest.mark.parametrize(
    ("path", "later"),
    [
        (f".claude/projects/p/{ID}.jsonl", f".claude/projects/p/{ID}/subagents/agent-a.jsonl"),
        (
            f".codex/sessions/2026/rollout-2026-08-01T10-00-00-{ID}.jsonl",
            f".codex/sessions/2026/rollout-2026-08-01T10-00-00-{ID}.jsonl.zst",
        ),
    ],
)
def test_what_appears_later_for_a_purged_session_is_not_fetched(tmp_path: Path, path: str, later: str) -> None:
    home = write(tmp_path, {path})
    delete_mirrored([MirroredSources("laptop", {path: {ID}})], tmp_path)
    assert is_purged(later, purged_paths(home.parent))
    assert not is_purged(later.replace(ID, f"{ID[:-1]}6"), purged_paths(home.parent))


def test_files_of_other_programs_are_not_searched(tmp_path: Path) -> None:
    mine, other = f"Library/Application Support/Kiro/ws/{ID}.json", "Library/Application Support/io.x/app.json"
    home = write(tmp_path, {mine, other})
    (home / other).write_text(f'{{"id":"{ID}"}}')
    delete_mirrored([MirroredSources("laptop", {mine: {ID}})], tmp_path)
    assert not (home / mine).exists() and (home / other).exists()


def test_a_folder_with_another_conversation_is_kept(tmp_path: Path) -> None:
    mine, other = f".claude/projects/p/{ID}.jsonl", f".claude/projects/p/{ID}/subagents/agent-a.jsonl"
    home = write(tmp_path, {mine, other})
    delete_mirrored([MirroredSources("laptop", {mine: {ID}}, {other}, {f".claude/projects/p/{ID}"})], tmp_path)
    assert not (home / mine).exists() and (home / other).exists()
    assert purged_paths(home.parent) == {mine}
    delete_mirrored([MirroredSources("laptop", {other: {f"{ID}/agent-a"}}, {other})], tmp_path)  # the file has two conversations
    assert not (home / other).exists() and purged_paths(home.parent) == {mine}


def test_files_that_name_the_session_are_deleted_and_fetched_again(tmp_path: Path) -> None:
    kiro, execution = ".config/Kiro/User/globalStorage/kiro.kiroagent", "22222222-2222-4333-8444-555555555555"
    mine, other, titles, log, unrelated = (
        f"{kiro}/{name}" for name in (f"ws/{ID}.json", f"ws/{ID[:-1]}6.json", "ws/sessions.json", "runs/1", "runs/2")
    )
    home = write(tmp_path, {mine, other, titles, log, unrelated})
    (home / mine).write_text(f'{{"sessionId":"{ID}","executionId":"{execution}"}}')
    (home / other).write_text(f'{{"parent":"{ID}"}}')
    (home / titles).write_text(f'[{{"sessionId":"{ID}","title":"secret plan"}}]')
    (home / log).write_text(f'{{"executionId":"{execution}","output":"secret plan"}}')
    (home / unrelated).write_text('{"executionId":"33333333-2222-4333-8444-555555555555"}')
    outcomes = delete_mirrored([MirroredSources("laptop", {mine: {ID}}, {other}, {f"{kiro}/ws"})], tmp_path)
    assert {str(Path(one.path).relative_to(home)): "again" in one.why for one in outcomes} == {mine: False, titles: True, log: True}
    assert {str(one.relative_to(home)) for one in home.rglob("*") if one.is_file()} == {other, unrelated}
    assert purged_paths(home.parent) == {mine, mine.removesuffix(".json")}
