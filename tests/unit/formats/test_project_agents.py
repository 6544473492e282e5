"""Aider's chat histories, whose Markdown is ambiguous, and OpenHands' conversations, which are many files."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from conformance.formats import source
from format_samples import samples_of
from moot.errors import UsageError
from moot.formats.agents.aider import Aider
from moot.formats.agents.openhands import OpenHands
from moot.formats.kit.fidelity import steps_of
from moot.formats.kit.fields import at, local_milliseconds
from moot.types.format import ImportedRecord, WholeConversation
from moot.types.message import text_of

BEGUN = "# aider chat started at 2026-08-13 22:59:40\n\n> Main model: mock-1 with diff edit format~\n"


def aider(folder: Path, text: str) -> list[WholeConversation]:
    path = folder / ".aider.chat.history.md"
    path.write_bytes(text.replace("~", "  ").encode())
    return [one.whole() for one in Aider().read(path)]


def talk(conversation: WholeConversation) -> list[tuple[str, str]]:
    return [(one.role, text_of(one.parts)) for one in conversation.messages]


def problems(conversation: WholeConversation) -> list[str]:
    return [one.problem for one in conversation.entries if isinstance(one, ImportedRecord) and one.problem]


TALKS = {
    "a prompt of several lines": ("\n#### one~\n#### ~\n#### two~\n\nan answer\n", [("user", "one\n\ntwo"), ("assistant", "an answer")]),
    "a heading in an answer": ("\n#### go~\n\n#### Not a prompt\nit goes\n", [("user", "go"), ("assistant", "#### Not a prompt\nit goes")]),
    "a heading in a code block": ("\n#### go~\n\n```\n\n#### no~\n```\n", [("user", "go"), ("assistant", "```\n\n#### no  \n```")]),
    "an open code block": (
        "\n#### go~\n\n```\nx = 1\n\n> Tokens: 9 sent, 1 received.~\n\n#### on~\n",
        [("user", "go"), ("assistant", "```\nx = 1"), ("user", "on")],
    ),
    "a quotation in an answer": ("\n#### go~\n\n> said Ana\n\nyes\n", [("user", "go"), ("assistant", "> said Ana\n\nyes")]),
    "a prompt without an answer": ("\n#### /exit~\n", [("user", "/exit")]),
    "no newline at the end": ("\n#### go~\n\nit goes", [("user", "go"), ("assistant", "it goes")]),
}


@pytest.mark.parametrize("name", TALKS)
def test_prompts_are_distinguished_from_answers(tmp_path: Path, name: str) -> None:
    text, expected = TALKS[name]
    (found,) = aider(tmp_path, BEGUN + text)
    assert (talk(found), problems(found)) == (expected, [])


def test_each_run_with_a_prompt_is_a_conversation_that_stays_the_same_as_the_file_grows(tmp_path: Path) -> None:
    first = BEGUN + "\n#### go~\n\nit goes\n\n> Tokens: 9 sent, 1 received.~\n"
    empty, second = BEGUN, BEGUN.replace("22:59", "23:59") + "\n#### on~\n\nand on\n"
    (one,) = aider(tmp_path, first)
    again, other = aider(tmp_path, first + "> Applied edit to a.txt~\n" + empty + second)
    assert (again.conversation.source_id, other.facts.created_at - one.facts.created_at) == (one.conversation.source_id, 3_600_000)
    assert [later.raw.startswith(earlier.raw) for earlier, later in zip(one.messages, again.messages, strict=True)] == [True, True]
    assert {message.created_at for message in again.messages} == {one.facts.created_at}, "answers have no time of their own"
    same, copy = aider(tmp_path, first + first)
    assert copy.conversation.source_id == f"{same.conversation.source_id}#2"


def test_a_long_answer_takes_a_small_multiple_of_its_size_in_memory(tmp_path: Path) -> None:
    size = 96 << 10
    text = (BEGUN + "\n#### go~\n\n").replace("~", "  ") + "ab\n" * (size // 3)
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(text)
    tracemalloc.start()
    entries = sum(len(one.whole().entries) for one in Aider().read(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert entries == 3
    assert peak < 12 * size


def test_tokens_and_costs_belong_to_the_call_before_them(tmp_path: Path) -> None:
    text = (
        "\n#### go~\n\none\n\n> Tokens: 1,860 sent, 60 received. Cost: $0.0043 message, $0.0043 session.~\n> Retrying~\n\ntwo\n\n"
        "> Tokens: 2.1k sent, 1k cache write, 1.2k cache hit, 40 received.~\n> Model: openrouter/x/y with whole edit format~\n"
        "\n#### on~\n\nthree\n\n> Tokens: 1M sent, 5 received. Cost: $1,000.50 message, $1,000.50 session.~\n"
    )
    (found,) = aider(tmp_path, BEGUN + text)
    assert [steps_of(one) for one in found.messages if one.role == "assistant"] == [
        [
            {"step": 1, "model": "mock-1", "usage": {"input": 1860, "output": 60}, "cost": 4_300_000},
            {"step": 2, "model": "mock-1", "usage": {"input": 4300, "output": 40, "cache_read": 1200, "cache_write": 1000}},
        ],
        [{"step": 1, "model": "x/y@openrouter", "usage": {"input": 1_000_000, "output": 5}, "cost": 1_000_500_000_000}],
    ]
    assert (found.fidelity.kept["usage"], found.fidelity.approximated["usage"]) == (1, 2)


def test_a_prompt_that_is_being_written_and_text_before_the_first_run_are_reported(tmp_path: Path) -> None:
    (found,) = aider(tmp_path, f"a stray line\n{BEGUN}\n#### go~\n\nyes\n\n#### on")
    assert talk(found) == [("user", "go"), ("assistant", "yes")]
    assert problems(found) == ["text before the first chat", "the last line is truncated"]
    assert aider(tmp_path, f"{BEGUN}\n#### go~") == []  # the prompt may continue
    with pytest.raises(UsageError, match="not an Aider chat history"):
        aider(tmp_path, "# Notes\n\n#### go~\n")


def test_time_without_a_zone_is_local_time(monkeypatch: pytest.MonkeyPatch) -> None:

    for zone, hours in (("UTC", 0), ("America/New_York", 4)):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert local_milliseconds({"at": "2026-07-31T10:00:00"}, "at") == 1_785_492_000_000 + hours * 3_600_000
        assert local_milliseconds({"at": "2026-07-31T10:00:00Z"}, "at") == 1_785_492_000_000
    monkeypatch.undo()
    time.tzset()
    assert [local_milliseconds({"at": at}, "at") for at in ("0001-01-01T00:00:00", "soon", None, 1_785_492_000)] == [
        *(0, 0, 0),
        1_785_492_000_000,
    ]


def openhands(folder: Path, **others: bytes | None) -> WholeConversation:
    sample: Any = samples_of(OpenHands())["conversation"]
    path = source(OpenHands(), folder, {**sample})
    for name, data in others.items():
        file = next(path.rglob(f"*{name}*"))
        file.unlink() if data is None else file.write_bytes(data)
    (found,) = [one.whole() for one in OpenHands().read(path)]
    return found


def test_missing_and_broken_events_are_named(tmp_path: Path) -> None:
    found = openhands(tmp_path, e3=None, e6=b'{"kind":"Mess')
    assert problems(found) == ["event 3 is missing", "event-00006-e6.json is not valid JSON"]
    assert [one.role for one in found.messages] == ["user", "assistant"]


def test_model_calls_are_matched_by_id_and_the_others_are_added(tmp_path: Path) -> None:
    state = json.loads(samples_of(OpenHands())["conversation"]["c0ffee/base_state.json"])  # type: ignore[index]
    state["agent"]["llm"]["api_key"] = "sk-secret"
    calls = state["stats"]["usage_to_metrics"]["agent"]["token_usages"]
    calls[:] = [calls[1], {"prompt_tokens": 7, "response_id": "summary"}, calls[0]]
    found = openhands(tmp_path, base_state=json.dumps(state).encode())
    assert [step["usage"] for step in steps_of(found.messages[-1])] == [
        {"input": 900, "output": 40},
        {"input": 7},
        {"input": 960, "output": 20},
    ]
    assert not [entry for entry in found.entries if b"sk-secret" in entry.raw]
    broken = openhands(tmp_path, base_state=b"{")
    assert problems(broken) == ["base_state.json is not valid JSON, so that tokens and costs are unknown"]
    assert not broken.fidelity.kept.get("usage")


def with_calls(folder: Path, ids: list[str], times: list[float]) -> list[list[Any]]:
    """Return the input tokens of the model calls of each answer, of which the first has 100, the second 200, and so on."""
    state = json.loads(samples_of(OpenHands())["conversation"]["c0ffee/base_state.json"])  # type: ignore[index]
    metrics = state["stats"]["usage_to_metrics"]["agent"]
    metrics["token_usages"] = [{"prompt_tokens": 100 * (at + 1), "response_id": id} for at, id in enumerate(ids)]
    metrics["costs"] = [{"cost": 0.5, "timestamp": at} for at in times]
    found = openhands(folder, base_state=json.dumps(state).encode())
    return [[at(step, "usage", "input") for step in steps_of(one)] for one in found.messages if one.role == "assistant"]


def test_model_calls_with_other_ids_are_matched_in_order(tmp_path: Path) -> None:
    assert with_calls(tmp_path, ["x1", "x2"], []) == [[100, 200]]


def test_a_call_without_an_answer_is_added_to_the_part_of_an_answer_before_it(tmp_path: Path) -> None:
    when = local_milliseconds({"at": "2026-07-31T10:47:43"}, "at") / 1000
    assert sorted(with_calls(tmp_path, ["r1", "title", "r2"], [when - 1, when + 0.5, when + 3])[0]) == [100, 200, 300]


def test_content_without_a_type_and_reasoning_next_to_encrypted_blocks_are_kept(tmp_path: Path) -> None:
    said = {"role": "user", "content": ["What is here?", {"type": "text", "text": " Look."}, 7]}
    thought = {"content": [], "reasoning_content": "Hm.", "thinking_blocks": [{"type": "redacted_thinking", "data": "x"}]}
    repeated = {"content": [], "reasoning_content": "Hm.", "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}
    events = {
        "e1": {"kind": "MessageEvent", "source": "user", "llm_message": said},
        "e2": {"kind": "MessageEvent", "source": "agent", "llm_message": thought},
        "e6": {"kind": "MessageEvent", "source": "agent", "llm_message": repeated},
    }
    found = openhands(tmp_path, **{name: json.dumps(event).encode() for name, event in events.items()})
    assert [part.get("text", part["type"]) for part in found.messages[0].parts] == ["What is here?", " Look.", "data-block"]
    reasons = [part["text"] for part in found.messages[1].parts if part["type"] == "reasoning"]
    assert reasons == ["", "Hm.", "Hm."]
