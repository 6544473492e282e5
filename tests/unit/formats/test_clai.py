from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from format_samples.apps import CLAI as SAMPLE
from moot.formats.apps.clai.format import Clai
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, ImportedRecord, WholeConversation
from moot.types.message import Message, text_of, text_part

CLAI = Clai()


def read(path: Path) -> list[WholeConversation]:
    return [one.whole() for one in CLAI.read(path)]


def chat(folder: Path, name: str = "one.json", **changes: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**json.loads(SAMPLE), **changes}, indent=2) + "\n")
    return path


def test_a_system_message_after_the_first_prompt_is_an_answer(tmp_path: Path) -> None:
    [one] = read(chat(tmp_path))
    assert [(message.role, text_of(message.parts)) for message in one.messages] == [
        ("system", "You are an assistant for a CLI tool."),
        ("user", "What is in the notes?"),
        ("assistant", "Milk and eggs."),
    ]


def test_usage_and_cost_belong_to_the_answer_of_their_prompt(tmp_path: Path) -> None:
    [one] = read(chat(tmp_path))
    metadata = one.messages[-1].metadata
    assert (metadata["model"], metadata["provider"]) == ("some/model", "openrouter")
    usage = {"input": 812, "output": 31, "cache_read": 512, "reasoning": 9}
    assert metadata["steps"] == [{"step": 1, "model": "some/model@openrouter", "usage": usage, "cost": 1_230_000}]


def test_encrypted_reasoning_precedes_its_call_and_names_its_provider(tmp_path: Path) -> None:
    path = chat(tmp_path)
    sidecar = tmp_path / "reasoning" / "what_is_in_the" / "call_1.json"
    sidecar.parent.mkdir(parents=True)
    sidecar.write_text('[{"id": "rs_1", "encrypted_content": "c2VhbGVk", "summary": ["Look first."]}]')
    [one] = read(path)
    thought = one.messages[-1].parts[1]
    assert thought["text"] == "Look first."
    assert thought["providerMetadata"] == {"openai": {"itemId": "rs_1", "encryptedContent": "c2VhbGVk", "provider": "openai"}}
    assert [entry.raw for entry in one.entries if isinstance(entry, ImportedRecord)] == [sidecar.read_bytes()]


def test_a_sidecar_file_is_never_read_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('[{"id": "x", "encrypted_content": "stolen"}]')
    folder = tmp_path / "conversations"
    linked = folder / "reasoning" / "linked"
    linked.mkdir(parents=True)
    (linked / "call_1.json").symlink_to(tmp_path / "secret.json")
    paths = [chat(folder, "a.json", id="../.."), chat(folder, "b.json", id="linked"), chat(folder, "c.json", id="..")]
    assert not any("stolen" in str(part) for path in paths for part in read(path)[0].messages[-1].parts)


def test_a_chat_without_an_origin_uses_its_latest_directory_binding(tmp_path: Path) -> None:
    path = chat(tmp_path, origin_dir="")
    (tmp_path / "dirs").mkdir()
    for name, directory, updated in (("a", "/old", "2026-01-01T00:00:00Z"), ("b", "/new", "2026-02-01T00:00:00Z")):
        history = [{"chat_id": "what_is_in_the"}]
        binding = {"version": 2, "abs_path": directory, "chat_id": "another", "history": history, "updated": updated}
        (tmp_path / "dirs" / f"{name}.json").write_text(json.dumps(binding))
    [one] = read(path)
    assert one.facts.directory == "/new" and one.facts.metadata["bound_to"] == ["/new", "/old"]


def test_the_copy_of_the_last_chat_is_imported_only_if_the_original_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    chat(folder, "one.json")
    chat(folder, "globalScope.json", id="globalScope", created="2026-09-01T00:00:00Z")
    assert [one.conversation.source_id for one in read(tmp_path)] == ["what_is_in_the"]
    chat(folder, "globalScope.json", id="globalScope", messages=[{"role": "user", "content": "alone"}])
    assert [len(one.messages) for one in read(tmp_path)] == [3, 1]


def test_a_truncated_chat_keeps_its_complete_messages(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(SAMPLE[: SAMPLE.index(b'"milk')])
    [one] = read(path)
    assert [message.role for message in one.messages] == ["system", "user", "assistant"]
    assert any("truncated" in entry.problem for entry in one.entries if isinstance(entry, ImportedRecord))


def test_a_grown_answer_starts_with_its_earlier_bytes(tmp_path: Path) -> None:
    value = json.loads(SAMPLE)
    before = read(chat(tmp_path, messages=value["messages"][:4]))[0].messages[-1]
    after = read(chat(tmp_path))[0].messages[-1]
    assert before.source_id == after.source_id and after.raw.startswith(before.raw) and len(after.raw) > len(before.raw)


def test_written_chats_match_clais_own(tmp_path: Path) -> None:
    call = {
        "type": "dynamic-tool",
        "toolName": "ls",
        "toolCallId": "c",
        "state": "output-error",
        "input": {"directory": "."},
        "errorText": "no",
    }
    step = {"step": 1, "model": "big@ollama", "usage": {"input": 5, "output": 2}, "cost": None}
    answer = Message("a", "assistant", (call, text_part("Hm.")), {"steps": [step]}, created_at=1_700_000_000_123)  # type: ignore[arg-type]
    conversation = Conversation("0190", agent="cody", directory="/home/ada", created_at=1_700_000_000_000)
    value = json.loads(CLAI.write(ExportedConversation(conversation, (Message("u", "user", (text_part("look"),)), answer))).data)
    assert (value["source"], value["source_id"], value["profile"], value["origin_dir"]) == ("moot", "0190", "cody", "/home/ada")
    assert [message["role"] for message in value["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert value["messages"][1]["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"directory":"."}'}
    assert value["queries"][0]["model"] == "ollama:big" and "cost_usd" not in value["queries"][0]
    assert value["created"] == "2023-11-14T22:13:20.000Z" and len(value["group_key"]) == 64
