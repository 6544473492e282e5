"""The format `kiro-ide`: sessions of Kiro's editor below `User/globalStorage/kiro.kiroagent`.

A session in `workspace-sessions/` contains the prompts and, for each answer, the id of an execution. The execution's log in the folder of
the workspace contains the text and the tool calls. Older versions wrote a `.chat` file for each execution. The files are not documented.
Reference: the findings of other programs that read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from moot.errors import UsageError
from moot.formats.editors.folders import user_folders
from moot.formats.kit.bases import ManyFiles
from moot.formats.kit.fields import items, milliseconds, obj, objects, text
from moot.formats.kit.files import files_below, read_head
from moot.formats.kit.json import Element, PartialDocument, load_document, partial_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, step, tool_call
from moot.types.canonical import Json, JsonObject, empty
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part

_EXECUTIONS = "414d1636299d2b9e4ce7e17fb11f63e9"
"""Name of the folder that contains the execution logs of a workspace."""
_FAILED = frozenset({"Error", "Failed", "Rejected", "Aborted"})
_CHAT_ROLES: dict[str, Role] = {"human": "user", "bot": "assistant", "tool": "assistant"}


class KiroIde(ManyFiles):
    name = "kiro-ide"
    version = 1
    stored_files = (f"{_EXECUTIONS}/*",)
    suffix = ".json"
    files = ("workspace-sessions/*/*.json", "*.chat")

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        for user in user_folders(home, environ, ("Kiro",)):
            yield user / "globalStorage" / "kiro.kiroagent"

    def sources(self, folder: Path) -> Iterator[Path]:
        yield from (path for path in super().sources(folder) if path.name != "sessions.json")

    def companions(self, path: Path) -> Iterator[Path]:
        """Yield the folder with the executions of a session. It changes when an execution is added."""
        if path.suffix == ".json" and (folder := partial_document(read_head(path, links=False)).text("workspaceDirectory")):
            yield _executions_of(path, folder)

    def is_own(self, path: Path, head: bytes) -> bool:
        names = set(partial_document(head).names())
        return {"sessionId", "workspaceDirectory"} <= names or {"chat", "metadata"} <= names or {"chat", "executionId"} <= names

    def knows_record(self, body: JsonObject) -> bool:
        return isinstance(body.get("message"), dict) and _is_known(obj(body, "message"))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for file in [path] if path.is_file() else self.sources(path):
            document = load_document(file)
            if "chat" in document:
                yield ImportedConversation(file.stem, entries_of(_chat(document)))
            elif "sessionId" in document:
                yield ImportedConversation(document.text("sessionId") or file.stem, entries_of(_session(file, document)))
            else:
                raise UsageError(f"{str(file)!r} is not a Kiro session: it has no session id.")


def _is_known(message: JsonObject) -> bool:
    """Return whether all content of a message is read: it contains only text, or its execution is read instead."""
    content = message.get("content")
    is_text = isinstance(content, str) or (
        isinstance(content, list) and all(text(one, "type") == "text" and isinstance(obj(one).get("text"), str) for one in content)
    )
    return text(message, "role") in ("user", "assistant") and is_text


def _session(path: Path, document: PartialDocument) -> Records:
    about: JsonObject = {name: document.value(name) for name in document.names() if name != "history"}
    begin = document.data.find(document.raw("history")) if "history" in document else 0
    yield ImportedRecord(document.data[:begin] + document.data[begin + len(document.raw("history")) :], about)
    entries = _listed(path.parent / "sessions.json")
    listed = next((one for one in entries if text(one, "sessionId") == text(about, "sessionId")), empty())
    written = text(listed, "dateCreated")
    folder = text(about, "workspaceDirectory")
    yield ImportedFacts(
        title=text(about, "title") or text(listed, "title"),
        directory=folder,
        agent="kiro-ide",
        created_at=int(written) if written.isascii() and written.isdigit() and len(written) == 13 else milliseconds(listed, "dateCreated"),
    )
    if "history" not in document:
        yield ImportedRecord(b"", problem="'history' contains no messages")
    executions = _Executions(_executions_of(path, folder))
    for element in document.elements("history"):
        yield from _entry(element, executions)


def _executions_of(path: Path, folder: str) -> Path:
    """Return the folder with the executions of a session, from the folder of its workspace."""
    return path.parents[min(2, len(path.parents) - 1)] / sha256(folder.encode("utf-8", "replace")).hexdigest()[:32] / _EXECUTIONS


def _listed(path: Path) -> list[JsonObject]:
    """Return the entries in the list of sessions."""
    found = PartialDocument(b'{"sessions":' + read_head(path, 1 << 20, links=False) + b"}")
    return [one.value for one in found.elements("sessions") if one.value is not None]


class _Executions:
    """The execution logs of a workspace."""

    def __init__(self, folder: Path) -> None:
        found = ((partial_document(read_head(path, links=False)).text("executionId"), path) for path in files_below(folder, depth=1))
        self._paths = {id: path for id, path in found if id}

    @property
    def are_there(self) -> bool:
        """True if the workspace has execution logs, so that each answer should contain the id of an execution."""
        return bool(self._paths)

    def get(self, id: str) -> PartialDocument | None:
        path = self._paths.get(id)
        try:
            return load_document(path) if path is not None else None
        except UsageError:
            return None


def _entry(element: Element, executions: _Executions) -> Iterator[SessionRecord | ImportedRecord]:
    """Read a prompt or an answer."""
    message = obj(element.value, "message")
    content, role = message.get("content"), text(message, "role")
    if element.problem or role not in ("user", "assistant") or not isinstance(content, str | list):
        yield ImportedRecord(element.raw, element.value, element.problem or f"element {element.number} of 'history' is not a message")
        return
    id, named = text(message, "id") or str(element.number), text(element.value, "executionId")
    log = executions.get(named) if named and role == "assistant" else None
    if log is not None:
        steps = _Steps(id, milliseconds(log.value("startTime")), [element.raw])
        if not log.raw("actions").startswith(b"["):
            yield ImportedRecord(b"", problem=f"the log of execution {named!r} lists no actions")
        for action in log.elements("actions"):
            yield from steps.take(action)
        yield steps.record()
        return
    if role == "assistant" and (named or executions.are_there):
        yield ImportedRecord(b"", problem=f"the log of execution {named or '(none)'!r} is missing or unreadable")
    completions = [text(one, "completion") for one in objects(element.value, "promptLogs") if text(one, "completion")]
    parts = [text_part("\n\n".join(completions))] if completions else _parts(content)
    yield SessionRecord(id, "user" if role == "user" else "assistant", element.raw, tuple(parts))


def _parts(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [text_part(text(one, "text")) if text(one, "type") == "text" else {"type": "data-block", "data": one} for one in items(content)]


@dataclass(slots=True)
class _Steps:
    """The actions of an execution, divided into steps. Text after a tool call starts a new step."""

    id: str
    at: int
    raws: list[bytes]
    parts: list[Part] = field(default_factory=list[Part])
    outputs: list[Output] = field(default_factory=list[Output])
    number: int = 0

    def record(self) -> SessionRecord:
        id = f"{self.id}.{self.number}" if self.number else self.id
        return SessionRecord(id, "assistant", b"".join(self.raws), tuple(self.parts), tuple(self.outputs), at=self.at)

    def take(self, action: Element) -> Iterator[SessionRecord | ImportedRecord]:
        """Add an action. If it starts a new step, yield the previous step."""
        kind, said = text(action.value, "actionType"), _said(action.value)
        if not kind or action.problem or (kind == "say" and said is None):
            yield ImportedRecord(action.raw, action.value, action.problem or f"action {action.number} has an unknown shape")
            return
        if kind == "say" and any(part["type"] == "dynamic-tool" for part in self.parts):
            yield self.record()
            self.raws, self.parts, self.outputs, self.number = [], [], [], self.number + 1
        self.raws.append(action.raw)
        value = obj(action.value)
        id = text(value, "actionId") or f"{self.id}.{action.number}"
        if kind == "say":
            self.parts.append(text_part(said or ""))
            return
        rest = {name: one for name, one in value.items() if name not in ("actionId", "actionType", "input", "output")}
        part = tool_call(id, kind, value.get("input"))
        self.parts.append({**part, "toolMetadata": {"kiro": rest}} if rest else part)
        if (output := value.get("output")) is not None:
            only = isinstance(output, dict) and output.keys() == {"message"}
            self.outputs.append(Output(id, said if only and said is not None else output, text(value, "actionState") in _FAILED))


def _said(action: Json) -> str | None:
    """Return the text of an action's output, or None."""
    found = obj(action, "output").get("message")
    return found if isinstance(found, str) else None


def _chat(document: PartialDocument) -> Records:
    """Read the older format. The first message contains the instructions if it is followed by a prompt."""
    about: JsonObject = {name: document.value(name) for name in document.names() if name != "chat"}
    begin = document.data.find(document.raw("chat"))
    yield ImportedRecord(document.data[:begin] + document.data[begin + len(document.raw("chat")) :], about)
    started = milliseconds(about, "metadata", "startTime")
    yield ImportedFacts(agent="kiro-ide", created_at=started, updated_at=milliseconds(about, "metadata", "endTime"))
    elements = list(document.elements("chat"))
    prompts = [one.number for one in elements if text(one.value, "role") == "human"]
    for element in elements:
        role, said = _CHAT_ROLES.get(text(element.value, "role")), obj(element.value).get("content")
        if role is None or element.problem or not isinstance(said, str):
            yield ImportedRecord(element.raw, element.value, element.problem or f"element {element.number} of 'chat' is not a message")
        elif text(element.value, "role") == "tool":
            output = Output(f"tool-{element.number}", said)
            yield SessionRecord(str(element.number), role, element.raw, (), (output,), at=started)
        else:
            is_first = len(prompts) > 1 and element.number == prompts[0]
            facts = step(text(about, "metadata", "modelId")) if role == "assistant" else None
            parts = (text_part(said),) if said else ()
            yield SessionRecord(str(element.number), "system" if is_first else role, element.raw, parts, at=started, step=facts)
