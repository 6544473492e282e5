from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.format_content import conversations
from format_samples.apps import MTM as SAMPLE
from format_samples.apps import MTM_1 as SAMPLE_ONE
from import_stage import only, source, stored
from moot.convert.serialization import status_of
from moot.errors import UsageError
from moot.features.exports import export_conversation
from moot.formats.apps.mtm.format import Mtm, MtmOne
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, ImportedRecord, WholeConversation
from moot.types.message import Message, Part, text_of, text_part

MTM, ONE = Mtm(), MtmOne()
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def read(path: Path) -> WholeConversation:
    [one] = MTM.read(path)
    return one.whole()


def book(folder: Path, data: bytes = SAMPLE, **changes: Any) -> Path:
    path = folder / ".mutsumi" / "a.mtm"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**json.loads(data), **changes}, indent=2))
    return path


def test_a_file_has_its_projects_directory_a_title_and_a_model(tmp_path: Path) -> None:
    one = read(book(tmp_path))
    assert (one.facts.title, one.facts.model, one.facts.directory) == ("Milk and eggs", "some-model@mine", str(tmp_path))
    assert one.facts.agent == "implementer"


def test_snapshots_of_context_are_files_of_the_prompt(tmp_path: Path) -> None:
    prompt = read(book(tmp_path)).messages[0]
    names = [(part["filename"], part["providerMetadata"]) for part in prompt.parts if part.get("filename")]
    assert names == [("notes.md", {"mutsumi": {"version": 1}}), ("system_info", {"mutsumi": {"arguments": "{}"}})]
    assert prompt.metadata == {"context": [{"key": "old.md", "version": 2}]}


def test_snapshots_survive_a_round_trip(tmp_path: Path) -> None:
    before = read(book(tmp_path)).messages[0]
    made = MTM.write(ExportedConversation(Conversation("c"), (Message("u", "user", before.parts, before.metadata),)))
    assert json.loads(made.data)["context"][0]["metadata"] == json.loads(SAMPLE)["context"][0]["metadata"] | {
        "last_ghost_block": {
            "files": json.loads(SAMPLE)["context"][0]["metadata"]["last_ghost_block"]["files"],
            "tools": json.loads(SAMPLE)["context"][0]["metadata"]["last_ghost_block"]["tools"],
        }
    }


def test_linked_pictures_are_read_only_from_the_project(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "secret.png"
    project.mkdir()
    outside.write_bytes(PIXEL)
    (project / "dot.png").write_bytes(PIXEL)
    (project / "notes.txt").write_text("no picture")
    (project / "link.png").symlink_to(outside)
    links = [f"file://{project}/dot.png", f"file://{outside}", f"file://{project}/notes.txt", f"file://{project}/../secret.png"]
    text = " ".join(f"![image]({link})" for link in [*links, f"file://{project}/link.png"])
    one = read(book(project, context=[{"role": "user", "content": text}]))
    pictures = [part for part in one.messages[0].parts if part["type"] == "file"]
    assert [part["filename"] for part in pictures] == ["dot.png"]
    assert one.fidelity.lost == {"pictures": 4}
    assert "secret.png" in text_of(one.messages[0].parts)


def test_a_sub_agent_names_its_parent(tmp_path: Path) -> None:
    path = book(tmp_path, SAMPLE_ONE)
    [one] = MTM.read(path)
    assert one.parent == "7b1f6d0e-52c4-4a5c-9c1e-1d6d8f8f0a01"


def test_each_format_claims_its_own_shape_and_reads_both(tmp_path: Path) -> None:
    assert MTM.sniff(tmp_path, SAMPLE) and not MTM.sniff(tmp_path, SAMPLE_ONE)
    assert ONE.sniff(tmp_path, SAMPLE_ONE) and not ONE.sniff(tmp_path, SAMPLE)
    assert len(read(book(tmp_path, SAMPLE_ONE)).messages) == 2


def test_a_file_with_long_metadata_is_recognized(tmp_path: Path) -> None:
    value = json.loads(SAMPLE)
    value["metadata"]["contextItems"] = [{"content": "x" * 100_000}]
    data = json.dumps(value).encode()
    assert MTM.sniff(tmp_path, data[: 1 << 16])


def test_usage_costs_times_and_signatures_of_version_1_are_kept(tmp_path: Path) -> None:
    answer = read(book(tmp_path, SAMPLE_ONE)).messages[1]
    usage = {"input": 13, "output": 5, "cache_read": 3}
    step = {"step": 1, "model": "some-model@anthropic", "finish_reason": "tool-calls", "usage": usage, "cost": 1_200_000}
    assert answer.metadata["steps"][0] == step  # type: ignore[index]
    assert answer.created_at == 1_786_043_176_000
    assert answer.parts[1]["providerMetadata"] == {"anthropic": {"signature": "c2lnbmVk", "provider": "anthropic"}}


OWN = {
    "contextItems": [{"type": "file", "key": "a.md", "content": "x"}],
    "added_by_another_program": {"a": [1]},
    "is_task_finished": True,
    "reasoning_effort": "high",
    "activeSkills": ["shop"],
    "sub_agents_list": ["7b1f"],
}


@pytest.mark.anyio
@pytest.mark.parametrize(("format", "sample"), [(MTM, SAMPLE), (ONE, SAMPLE_ONE)], ids=["mtm", "mtm-1"])
async def test_the_metadata_of_a_notebook_survives_an_import_and_an_export(tmp_path: Path, format: Any, sample: bytes) -> None:
    (tmp_path / "notes").mkdir()
    allowed = [(tmp_path / "notes").as_uri(), "file:///etc", "/"]
    before = {**json.loads(sample)["metadata"], **OWN, "allowed_uris": allowed}
    path = book(tmp_path, sample, metadata=before)
    async with stored(tmp_path / "moot") as store:
        await import_sources(store, [replace(source(path, format), placed=True)], ImportOptions(), Report())
        found = await only(store)
        assert (found.directory, found.allowed_uris) == (str(tmp_path), (str(tmp_path / "notes"),))
        assert status_of(found, {}) == "finished"
        made = await export_conversation(store, found, format)
        after = json.loads(made.data)["metadata"]
        assert {name: after.get(name) for name in before} == before
        path.write_text(path.read_text().replace('"is_task_finished": true', '"is_task_finished": false'))
        await import_sources(store, [replace(source(path, format), placed=True)], ImportOptions(), Report())
        assert status_of(await only(store), {}) == "standby"


@pytest.mark.anyio
async def test_a_notebook_from_elsewhere_allows_no_folder(tmp_path: Path) -> None:
    path = book(tmp_path, SAMPLE, metadata={**json.loads(SAMPLE)["metadata"], "allowed_uris": [tmp_path.as_uri()]})
    async with stored(tmp_path / "moot") as store:
        await import_sources(store, [source(path, MTM)], ImportOptions(), Report())
        found = await only(store)
        assert (found.directory, found.allowed_uris) == ("", ())


@pytest.mark.anyio
async def test_a_message_of_an_unknown_shape_in_a_new_notebook_is_reported_with_its_place(tmp_path: Path) -> None:
    path = book(tmp_path, SAMPLE, context=[*json.loads(SAMPLE)["context"], {"role": "oddrole", "content": "who am I"}])
    async with stored(tmp_path / "moot") as store:
        report = Report()
        await import_sources(store, [source(path, MTM)], ImportOptions(), report)
        (one,) = report.brought
        assert one.problems == 1 and "has the unknown role 'oddrole'" in one.notes[0]


@pytest.mark.parametrize("format", [MTM, ONE], ids=["mtm", "mtm-1"])
def test_the_detail_of_a_picture_survives_a_round_trip(tmp_path: Path, format: Any) -> None:
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "detail": "low"}
    exported = ExportedConversation(Conversation("c"), (Message("u", "user", (text_part("Look:"), picture)),))
    path = tmp_path / "a.mtm"
    path.write_bytes(format.write(exported).data)
    [one] = format.read(path)
    assert one.whole().messages[0].parts == (text_part("Look:"), picture)


def test_a_newer_version_is_rejected_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="version 2"):
        read(book(tmp_path, SAMPLE_ONE, formatVersion=2))


def test_notes_and_metadata_are_records(tmp_path: Path) -> None:
    records = [entry.body for entry in read(book(tmp_path, SAMPLE_ONE)).entries if isinstance(entry, ImportedRecord)]
    assert {"note": {"beforeUserIndex": 0, "markdown": "# Shopping"}} in records and len(records) == 2


def test_version_1_is_written_in_the_order_that_its_reader_accepts() -> None:
    open_call = {"type": "tool-shell", "toolCallId": "c", "state": "input-available", "input": "ls"}
    messages = (
        Message("s", "system", (text_part("Be brief."),)),
        Message("a0", "assistant", (text_part("Hello."),)),
        Message("u", "user", (text_part("look"),)),
        Message("a", "assistant", ({"type": "step-start"}, text_part("One."), {"type": "step-start"}, text_part("Two."), open_call)),  # type: ignore[arg-type]
    )
    made = ONE.write(ExportedConversation(Conversation("c", directory="/home/ada"), messages))
    value = json.loads(made.data)
    assert [message["role"] for message in value["context"]] == ["user", "assistant", "user", "assistant", "toolResult"]
    assert [block["type"] for block in value["context"][3]["content"]] == ["text", "text", "toolCall"]
    assert value["context"][4]["isError"] is True and value["notes"] == [{"beforeUserIndex": 0, "markdown": "Be brief."}]
    assert value["metadata"]["allowed_uris"] == ["file:///home/ada"]
    assert (made.fidelity.kept["messages"], made.fidelity.approximated["messages"]) == (3, 1)


def test_an_editors_recent_folders_are_locations(tmp_path: Path) -> None:
    storage = tmp_path / ".config" / "Code" / "User" / "workspaceStorage" / "abc"
    storage.mkdir(parents=True)
    (storage / "workspace.json").write_text('{"folder": "file:///home/ada/my%20notes"}')
    other = storage.with_name("other")
    other.mkdir()
    (other / "workspace.json").write_text('{"folder": "file://[ada"}')
    assert list(MTM.places(tmp_path, {})) == [Path("/home/ada/my notes/.mutsumi")]


def accepted(context: list[dict[str, Any]]) -> None:
    """The checks of the reader of version 1."""
    last, waiting = None, dict[str, str]()
    for message in context:
        role = message["role"]
        if role == "user":
            assert not waiting
        elif role == "assistant":
            assert (
                last in ("user", "toolResult")
                and not waiting
                and all(isinstance(message[key], str) for key in ("api", "provider", "model"))
            )
            for block in message["content"]:
                assert block["type"] in ("text", "thinking", "toolCall")
                if block["type"] == "toolCall":
                    assert isinstance(block["arguments"], dict) and block["id"] not in waiting
                    waiting[block["id"]] = block["name"]
        else:
            assert role == "toolResult" and last in ("assistant", "toolResult") and isinstance(message["isError"], bool)
            assert waiting.pop(message["toolCallId"]) == message["toolName"]
        last = role
    assert not waiting


@settings(max_examples=40)
@given(conversations(), st.permutations(range(4)))
def test_version_1_is_always_accepted_by_its_reader(exported: ExportedConversation, order: list[int]) -> None:
    messages = [exported.messages[at] for at in order if at < len(exported.messages)]
    accepted(json.loads(ONE.write(replace(exported, messages=tuple(messages))).data)["context"])
