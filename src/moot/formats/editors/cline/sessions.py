"""The format `cline-cli`: sessions of Cline's command line and SDK, `~/.cline/data/sessions/ID/{ID.json, ID.messages.json}`.

Each file of messages is a conversation. Files with other names in a session's folder belong to its sub-agents. Reference:
`sdk/packages/core/src/services/session-artifacts.ts` of https://github.com/cline/cline, and the fields documented by other programs that
read the sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.editors.cline.calls import Counted
from moot.formats.editors.cline.messages import MessageReader, is_text_block, typed_text
from moot.formats.kit.bases import ManyFiles, environment_folder
from moot.formats.kit.fields import milliseconds, money, obj, text, whole_number
from moot.formats.kit.json import PartialDocument, array_items, load_document, member, parse_json, partial_document, read_document
from moot.formats.kit.records import Records, entries_of, step, usage_without_cache
from moot.types.canonical import JsonObject
from moot.types.format import TOTAL_OF, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.usage import Usage

_END = ".messages.json"
_TOTALS = ("usage", "aggregateUsage", "totalCost")
_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


class ClineCli(ManyFiles):
    name = "cline-cli"
    version = 2
    suffix = _END
    files = (f"*{_END}",)
    stored_files = ("[0-9]*_*.json",)  # of the sessions, whose names begin with a time
    depth = 2

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        folder = environment_folder(environ.get("CLINE_DIR"), home / ".cline")
        data = environment_folder(environ.get("CLINE_DATA_DIR"), folder / "data")
        yield environment_folder(environ.get("CLINE_SESSION_DATA_DIR"), data / "sessions")

    def is_own(self, path: Path, head: bytes) -> bool:
        return path.name.endswith(_END) and "messages" in partial_document(head)

    def knows_record(self, body: JsonObject) -> bool:
        return is_text_block(body) or any(name in body for name in _TOTALS)  # the latter are facts about a session

    def companions(self, path: Path) -> Iterator[Path]:
        yield path.with_name(f"{path.name.removesuffix(_END)}.json")

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for file in self.sources(path) if path.is_dir() else [path]:
            yield self._session(file)

    def _session(self, path: Path) -> ImportedConversation:
        document = load_document(path)
        if "messages" not in document:
            raise UsageError(f"{str(path)!r} is not a Cline session: it has no messages.")
        session, name = path.parent.name, path.name.removesuffix(_END)
        data, about = _manifest(path.with_name(f"{name}.json"))
        is_child = name != session and path.with_name(f"{session}{_END}").is_file()
        parent = session if is_child else None
        id = text(about, "session_id") or (f"{session}/{name}" if is_child else name)
        return ImportedConversation(id, entries_of(_records(document, data, about)), parent, started_at=milliseconds(about, "started_at"))


def _manifest(path: Path) -> tuple[bytes, JsonObject]:
    """Return the facts about a session and their bytes, or empty values if they can't be read."""
    if not path.is_file() or path.is_symlink():
        return b"", {}
    try:
        data = read_document(path)
        return data, obj(parse_json(data))
    except (UsageError, ValueError):
        return b"", {}


def _records(document: PartialDocument, data: bytes, about: JsonObject) -> Records:
    prompt = text(about, "prompt")
    model = step(text(about, "model"), text(about, "provider"))
    yield ImportedFacts(
        title=text(about, "metadata", "title") or (typed_text(prompt) or prompt).strip().partition("\n")[0],
        directory=text(about, "cwd") or text(about, "workspace_root"),
        agent="cline",
        model=str(model.get("model", "")),
        created_at=milliseconds(about, "started_at"),
        updated_at=milliseconds(about, "ended_at"),
    )
    total = Counted(b"", {}) if b'"metrics"' in document.raw("messages") else _total(data, about)
    reader = MessageReader()
    if not document.raw("messages").startswith(b"["):
        yield ImportedRecord(document.raw("messages"), problem="'messages' is not an array")
    for element in array_items([document.raw("messages")]):
        value, at = obj(element.value), milliseconds(element.value, "ts")
        if element.problem or text(value, "role") not in ("user", "assistant"):
            yield ImportedRecord(element.raw, element.value, f"message {element.number} {element.problem or 'has an unknown role'}")
        elif value["role"] == "assistant":
            used = step(text(value, "modelInfo", "id"), text(value, "modelInfo", "provider")) or model
            facts = {**used, **_facts(obj(value, "metrics"), "cost"), **total.facts} or {"model": ""}
            yield from reader.answer(element, value, [Counted(total.raw, facts)], at)
            total = Counted(b"", {})
        else:
            yield from reader.prompt(element, value, at)


def _facts(counts: JsonObject, cost: str) -> JsonObject:
    """Return the tokens and the cost of a call. The input count includes cached tokens, except in some early versions."""
    sent, output, read, written = (whole_number(counts, name) for name in _COUNTS)
    is_whole = (sent or 0) >= (read or 0) + (written or 0)
    usage = Usage(sent, output, read, written) if is_whole else usage_without_cache(sent, output, read, written)
    return step("", usage=usage.to_json(), cost=money(counts, cost))


def _total(data: bytes, about: JsonObject) -> Counted:
    """Return the session's token counts and cost, which are used if those of its calls are unknown.

    The bytes of these become part of the first answer, so that this answer changes when the session grows.
    """
    own, whole, cost = _TOTALS
    counts = obj(about, "metadata", own) or obj(about, "metadata", whole)
    facts = _facts(counts, cost) if counts else step("", cost=money(about, "metadata", cost))
    span = member(data, "metadata")
    return Counted(data[span.begin : span.end], {**facts, TOTAL_OF: "session"}) if facts and span is not None else Counted(b"", {})
