"""`moot scan` finds secrets in everything that is stored, shows none of them, and `moot redact` removes what it found."""

from __future__ import annotations

import base64
import json
import random
import string
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from e2e.conftest import Stage
from e2e.purge.entry_points import sealed
from moot.config.settings import Settings
from moot.store import SqliteStore, open_store
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.conversation import Conversation
from moot.types.maintenance import ScanReport, ScanScope, Secret
from moot.types.message import Message, Part, text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

Opened = Callable[..., Any]


def token(seed: str) -> str:
    """Return a GitHub token that was never valid."""
    return "ghp_" + "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=36))


EVERYWHERE = token("everywhere")


async def scanned(store: Any, scope: ScanScope | None = None, **options: bool) -> ScanReport:
    return [report async for report in store.erasure.scanner.scan(scope or ScanScope(), **options)][-1]


def places(report: ScanReport, secret: str) -> set[str]:
    """Return where the secret was found."""
    return {place.what for finding in report.findings.values() if secret in finding.strings for place in finding.places}


def only_in(name: str, place: str) -> str:
    return f"{name} {token(name)} in {place}"


def script(recorded: Recorded) -> Reply:
    if "effect" not in str(recorded.json["messages"]):
        calls = [ToolCall("shell", {"command": f"echo effect {EVERYWHERE}"}, id="do")]
        return Reply(text=f"I use {EVERYWHERE}.", reasoning=f"Is it {EVERYWHERE}?", tool_calls=calls, chunk_size=3)
    return Reply(text=only_in("answer", "the answer"), chunk_size=3)


async def lived(on: Stage, home: Path) -> Conversation:
    store: Any = on.engine.store
    encoded = base64.b64encode(only_in("attached", "an attachment").encode()).decode()
    attached: Part = {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": f"data:text/plain;base64,{encoded}"}
    parts = (text_part(f"work with {EVERYWHERE}"), attached)
    submitted = await on.engine.runs.submit(Prompt(parts, directory=str(on.directory)))
    await on.follow(submitted)
    id = submitted.conversation.id
    await store.conversations.rename(id, f"title {EVERYWHERE}", "user")
    await store.conversations.update(id, settings={"note": only_in("setting", "a setting")})
    upload = await store.blobs.upload(b"line\n" * 100_000 + only_in("uploaded", "a file").encode(), "text/plain")
    unused = await store.blobs.upload(only_in("unused", "no message").encode(), "text/plain")
    assert unused.size < upload.size
    raw = json.dumps({"text": "imported", "extra": only_in("record", "the source's record")}).encode() + b"\n"
    message = Message("imported", "user", (text_part("imported"), {**attached, "url": f"blob:{upload.sha256}"}), conversation=id)
    await store.conversations.add_message(message, raw=raw, move_head=False)
    (home / "state" / "drafts").mkdir(parents=True, exist_ok=True)
    (home / "state" / "drafts" / "draft.json").write_text(json.dumps({"text": only_in("draft", "a draft")}))
    return await store.conversations.get(id)


@pytest.mark.parametrize("through", [0, 20])
async def test_secrets_are_found_wherever_they_are_stored_and_can_be_redacted(stage: Opened, tmp_path: Path, through: int) -> None:
    home = tmp_path / "home"
    async with stage(script) as on:
        conversation = await lived(on, home)
        store = on.engine.store
        if through:
            await sealed(store, conversation, through)
        report = await scanned(store)
        assert places(report, EVERYWHERE) == {"text", "reasoning", "input of shell", "output of shell", "title"}
        assert places(report, token("answer")) == {"text"}
        assert places(report, token("attached")) == places(report, token("uploaded")) == {"attachment"}
        assert places(report, token("setting")) == {"settings"}
        assert places(report, token("record")) == {"raw data"}
        assert places(report, token("unused")) == {"blob"}
        assert places(report, token("draft")) == {"file"}
        assert len(report.findings) == 8
        shown = f"{report} {json.dumps(report.to_json())}"
        assert not [name for finding in report.findings.values() for name in finding.strings if name in shown]
        (everywhere,) = [finding for finding in report.findings.values() if EVERYWHERE in finding.strings]
        assert (everywhere.kind, everywhere.masked) == ("GitHub token", f"ghp_…{EVERYWHERE[-2:]}")
        assert {place.message for place in everywhere.places if place.part is not None} == {
            message.id for message in await store.conversations.branch(conversation.id) if EVERYWHERE in str(message.parts)
        }
        strings = {string for finding in report.findings.values() for string in finding.strings}
        assert (await store.erasure.redact(Secret(tuple(strings)))).done_at is not None
        assert not (await scanned(store)).findings
    for secret in strings:
        assert subprocess.run(["grep", "-rlaF", "-e", secret, str(home)], capture_output=True, check=False).returncode == 1


async def test_only_changed_conversations_are_scanned_again_unless_something_was_found(tmp_path: Path) -> None:
    async with await open_store(Settings(tmp_path)) as store:
        for name in ("clean", "dirty", "grows"):
            await store.conversations.create(Conversation(name, title=name))
            text = f"use {EVERYWHERE}" if name == "dirty" else "hello"
            await store.conversations.add_message(Message(f"{name}-1", "user", (text_part(text),), conversation=name))
        first = await scanned(store)
        assert (first.conversations, first.unchanged, len(first.findings)) == (3, 0, 1)
        await store.conversations.add_message(Message("new", "user", (text_part(f"now {token('new')}"),), conversation="grows"))
        second = await scanned(store)
        assert (second.conversations, second.unchanged) == (3, 1)
        assert set(second.findings) > set(first.findings) and places(second, token("new")) == {"text"}
        assert (await scanned(store, unchanged=True)).unchanged == 0


async def test_fingerprints_differ_between_stores_and_stay_the_same_in_one(tmp_path: Path) -> None:
    found: list[set[str]] = []
    for home in ("one", "one", "two"):
        async with await open_store(Settings(tmp_path / home)) as store:
            await filled(store, f"c{len(found)}")
            found.append(set((await scanned(store)).findings))
    assert found[0] == found[1] != found[2] and len(found[1]) == 1


async def filled(store: SqliteStore, id: str, text: str = f"use {EVERYWHERE}", **fields: Any) -> None:
    await store.conversations.create(Conversation(id, title=id, **fields))
    await store.conversations.add_message(Message(f"{id}-m", "user", (text_part(text),), conversation=id))


async def test_a_scope_limits_what_is_scanned(tmp_path: Path) -> None:
    async with await open_store(Settings(tmp_path)) as store:
        for agent in ("one", "two"):
            await filled(store, agent, f"use {token(agent)}", agent=agent, updated_at=1000 if agent == "one" else 2000)
        await store.conversations.delete("two")  # data of deleted conversations is still stored
        await store.blobs.put(only_in("unused", "no message").encode())
        for scope, names in (
            (ScanScope(conversation="one"), {"one"}),
            (ScanScope(agent="two"), {"two"}),
            (ScanScope(project="default"), {"one", "two"}),
            (ScanScope(project="other"), set[str]()),
            (ScanScope(), {"one", "two", "unused"}),
        ):
            report = await scanned(store, scope)
            assert {name for name in ("one", "two", "unused") if places(report, token(name))} == names, scope
        updated = (await store.conversations.get("two")).updated_at
        assert not (await scanned(store, ScanScope(since=updated + 1_000_000))).conversations


async def test_a_secret_is_one_finding_with_a_limited_list_of_places(tmp_path: Path) -> None:
    async with await open_store(Settings(tmp_path)) as store:
        await filled(store, "many")
        for number in range(1005):
            await store.conversations.add_message(Message(f"m{number}", "user", (text_part(EVERYWHERE),), conversation="many"))
        (finding,) = (await scanned(store)).findings.values()
        assert (finding.count, len(finding.places), finding.unlisted) == (1006, 1000, 6)


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    process = make(tmp_path)
    yield process
    process.close()


@pytest.mark.slow
async def test_the_command_masks_secrets_and_redacts_a_finding(moot: MootProcess) -> None:
    async with await open_store(Settings(moot.home)) as store:
        await filled(store, "first", f"push with {EVERYWHERE}")
        await filled(store, "second", f"{EVERYWHERE} and DB_PASSWORD={token('password')[4:20]}1x")
    listed = moot.run("scan", "--places")
    assert listed.returncode == 1 and b"2 occurrences" in listed.stdout and b"text of user message first-m" in listed.stdout
    printed = moot.run("scan", "--json", "second")
    assert printed.returncode == 1
    findings = json.loads(printed.stdout)["data"]
    assert [finding["kind"] for finding in findings] == ["GitHub token", "password"]
    fingerprint = findings[0]["fingerprint"]
    refused = moot.run("redact", "--finding", "0123")
    assert refused.returncode == 2 and b"moot scan" in refused.stderr
    redacted = moot.run("redact", "--finding", fingerprint[:8], "--yes", "--json")
    assert set(json.loads(redacted.stdout)["conversations"]) == {"first", "second"}
    rest = moot.run("redact", "--finding", "all", "--yes")
    assert b"password" in rest.stderr and b"GitHub" not in rest.stderr and b"redacted: 1 conversation" in rest.stdout
    assert moot.run("scan").returncode == 0
    nothing = moot.run("redact", "--finding", "all", "--yes", "--json")
    assert (nothing.returncode, json.loads(nothing.stdout)["conversations"]) == (0, [])
    both = moot.run("redact", "--finding", "all", "--regex")
    assert both.returncode == 2 and b"--regex does not work with --finding" in both.stderr
    for done in (listed, printed, redacted, rest):
        assert EVERYWHERE[4:].encode() not in done.stdout + done.stderr
