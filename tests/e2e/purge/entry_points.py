"""A conversation with a secret that entered in every possible way, and a search for that secret in every byte of a home."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

from e2e.conftest import Stage
from moot.store import SqliteStore
from moot.store.database.transaction import SEQ_BITS, Transaction
from moot.store.log.rows import Row
from moot.store.log.segments import insert, pack_segment
from moot.store.rows import EVENT
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.conversation import Conversation
from moot.types.message import Message, Part, text_part
from moot.types.run import Prompt
from moot.types.token import StoredResponse

WORD = "zebrafinch"
SPELLED = [WORD.encode(), *(base64.b64encode(b"\0" * shift + WORD.encode())[4 if shift else 0 : 12] for shift in range(3))]
"""The secret, and the base64 characters that it always produces."""
LARGE = 300_000
"""Size of an output that is stored in its own file."""


def word(door: str) -> str:
    return f"{WORD}-{door}"


def script(recorded: Recorded) -> Reply:
    """One frame per token: no frame contains the whole secret."""
    if recorded.user_text.startswith("work") and "effect" not in str(recorded.json["messages"]):
        large = f"head -c {LARGE} /dev/zero | tr '\\0' 'x'; echo effect {word('output')}"
        calls = [
            ToolCall("shell", {"command": f"echo effect {word('arguments')}"}, id="do"),
            ToolCall("shell", {"command": large}, id="big"),
        ]
        return Reply(text=f"I look for {word('text')}.", reasoning=f"Where is {word('reasoning')}?", tool_calls=calls, chunk_size=3)
    return Reply(text=f"It is {word('answer')}, and that is all of it.", chunk_size=3)


async def lived(on: Stage, state: Path) -> Conversation:
    """Create the conversation; its secrets are in the log, requests, blobs, files, the index and next to the database."""
    store: Any = on.engine.store
    attached: Part = {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": _data_url(f"see {word('attached')} here")}
    first = await on.engine.runs.submit(_prompt(on, text_part(f"work {word('prompt')}"), attached))
    await on.follow(first)
    id = first.conversation.id
    await on.ask(f"say {word('second')}", conversation=id)
    conversations = store.conversations
    await conversations.rename(id, word("title"), "user")
    await conversations.update(id, settings={"note": word("setting")})
    upload = await store.blobs.upload(word("uploaded").encode() * 40_000, "text/plain")
    attached = {**attached, "url": f"blob:{upload.sha256}"}
    raw = json.dumps({"said": word("record")}).encode() + b"\n"
    imported = Message("imported", "user", (text_part(word("imported")), attached), conversation=id)
    await conversations.add_message(imported, raw=raw, move_head=False)
    keys = store.tokens.idempotency
    await keys.claim("local", "k", request=b"r", worker="w")
    await keys.keep("local", "k", StoredResponse(200, (("content-type", "text/plain"),), word("repeated").encode()))
    (state / "drafts").mkdir(parents=True, exist_ok=True)
    (state / "drafts" / f"{id}.json").write_text(json.dumps({"text": word("draft")}))
    typed = [f"work {word('prompt')}", f"/title {word('title')}", "an innocent line"]
    (state / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in typed))
    await store.search.index()
    assert (await store.search.search(WORD)).hits
    return await conversations.get(id)


def _prompt(on: Stage, *parts: Part) -> Prompt:
    return Prompt(parts, directory=str(on.directory))


def _data_url(text: str) -> str:
    return f"data:text/plain;base64,{base64.b64encode(text.encode()).decode()}"


async def sealed(store: Any, conversation: Conversation, through: int) -> None:
    """Move the first events into a segment."""

    def work(transaction: Transaction) -> None:
        base = conversation.no << SEQ_BITS
        rows = transaction.execute(f"SELECT {EVENT} FROM event WHERE id > ? AND id <= ? ORDER BY id", (base, base + through)).fetchall()
        insert(transaction, conversation.no, 1, through, pack_segment([Row(*row) for row in rows]))
        transaction.execute("DELETE FROM event WHERE id > ? AND id <= ?", (base, base + through))
        transaction.execute("UPDATE log_head SET sealed_through = ? WHERE conversation = ?", (through, conversation.no))

    found: SqliteStore = store
    await found._base.writer.write(work)


def found_in(home: Path) -> list[str]:
    """Return every file of the home that contains the secret in any encoding, or has it in its name.

    A separate program does this: opening the database by its path would lose this process's locks on it.
    """
    words = [argument for spelling in SPELLED for argument in ("-e", spelling.decode())]
    found = subprocess.run(["grep", "-rlaF", *words, str(home)], capture_output=True, text=True, check=False)
    assert found.returncode in (0, 1), found.stderr
    named = [str(path) for path in home.rglob("*") if WORD in path.name]
    return sorted({str(Path(path).relative_to(home)) for path in [*found.stdout.splitlines(), *named]})
