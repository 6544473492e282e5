"""Chats of clai as conversations, the files next to them (encrypted reasoning, directory bindings, copies), and clai's configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path

from moot.errors import UsageError
from moot.formats.apps.clai.writer import HOLDS, write_chat
from moot.formats.kit.answers import Turns
from moot.formats.kit.configuration import ConfigurationBuilder, string_values
from moot.formats.kit.fields import milliseconds, money, objects, text
from moot.formats.kit.files import files_below, read_head, read_inside
from moot.formats.kit.json import Element, PartialDocument, json_value, load_document, parse_json, partial_document
from moot.formats.kit.records import media_type_of
from moot.formats.kit.records import tool_call as call_part
from moot.types.canonical import Json, JsonObject
from moot.types.format import (
    Entry,
    ExportedConversation,
    ExportFile,
    ForeignConfiguration,
    ImportedConversation,
    ImportedFacts,
    ImportedRecord,
)
from moot.types.message import Part, text_part

__all__ = ["COPIES", "Clai", "bound_to", "configuration", "encrypted_reasoning", "is_copy", "read_chat"]


_TOOLS = {
    "cat": "read_file",
    "rows_between": "read_file",
    "find": "find_files",
    "file_tree": "list_files",
    "ls": "list_files",
    "rg": "search_files",
    "website_text": "fetch_url",
    "write_file": "write_file",
    "apply_patch": "edit_file",
    "sed": "edit_file",
    "cmd": "shell",
    "freetext_command": "shell",
    "git": "shell",
    "go": "shell",
}
_PROVIDER_PREFIXES = {"ollama": "ollama", "or": "openrouter"}
_LATER = ("use_skills", "save-reply-as-conv", "shell_context", "use_lookback")
_SMALL = 4 << 20


def configuration(home: Path) -> ForeignConfiguration:
    """Convert the configuration in clai's folder."""
    draft = ConfigurationBuilder("clai")
    settings = _read(draft, home / "textConfig.json", home)
    if model := _model_reference(text(settings.get("model"))):
        draft.setting("models", "main", model)
    if instructions := text(settings.get("system-prompt")):
        draft.agent("default", {"instructions": instructions})
    _bans(draft, settings.get("cmd-ban"))
    for file in files_below(home / "mcpServers", ".json", depth=1):
        _server(draft, file.stem, _read(draft, file, home))
    for file in files_below(home / "profiles", ".json", depth=1):
        _profile(draft, file.stem, _read(draft, file, home))
    for section in ("shellContexts",):
        draft.keep(section, {file.stem: _read(draft, file, home) for file in files_below(home / section, ".json", depth=1)})
    draft.keep("skills.json", _read(draft, home / "skills.json", home))
    return draft.found()


def _read(draft: ConfigurationBuilder, file: Path, home: Path) -> JsonObject:
    data = read_inside(file, inside=home, limit=_SMALL)
    if data is None:
        return {}
    value = json_value(data.decode("utf-8", "replace"))
    if not isinstance(value, dict):
        draft.note(f"{file.name} is not a JSON object")
        return {}
    return value


def _profile(draft: ConfigurationBuilder, name: str, profile: JsonObject) -> None:
    tools = profile.get("tools") if profile.get("use_tools") else []
    facts: JsonObject = {"model": _model_reference(text(profile.get("model"))), "instructions": profile.get("prompt")}
    draft.agent(text(profile.get("name")) or name, facts, tools=None if tools == ["*"] else tools, known=_TOOLS)
    _bans(draft, profile.get("cmd-ban"))
    servers = profile.get("mcp_servers")
    for server, value in servers.items() if isinstance(servers, dict) else ():
        if isinstance(value, dict):
            _server(draft, server, value)
    if rest := {key: profile[key] for key in _LATER if key in profile}:
        draft.keep("profiles", {name: rest})


def _server(draft: ConfigurationBuilder, name: str, server: JsonObject) -> None:
    facts: JsonObject = {"command": server.get("command"), "env": string_values(server.get("env"))}
    arguments = server.get("args")
    facts["args"] = [str(one) for one in arguments] if isinstance(arguments, list) else []
    if server:
        draft.server(text(server.get("name")) or name, facts)
    if rest := {key: server[key] for key in ("envfile", "timeout_seconds") if server.get(key)}:
        draft.keep("mcpServers", {name: rest})


def _bans(draft: ConfigurationBuilder, bans: Json) -> None:
    """Convert banned word sequences, which clai refuses anywhere in a command, to deny rules."""
    for ban in bans if isinstance(bans, list) else []:
        if isinstance(ban, str) and ban.strip():
            draft.rule("shell", "deny", f"{ban.strip()}*")
            draft.note("banned words were refused anywhere in a command; here a rule matches a command from its beginning")


def _model_reference(name: str) -> str:
    prefix, colon, rest = name.partition(":")
    return f"{rest}@{_PROVIDER_PREFIXES[prefix]}" if colon and prefix in _PROVIDER_PREFIXES else name


COPIES = ("globalScope.json", "prevQuery.json")
"""Files that contain a copy of the latest chat. The second is the older name."""

_APART = 1024
"""Maximum difference in bytes between a chat and its copy, whose id, time and source differ."""


def encrypted_reasoning(chat: Path, id: str, call: str) -> tuple[bytes, list[Json]]:
    """Return the encrypted reasoning before a tool call with the bytes of its file, or empty values."""
    if any(not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name for name in (id, call)):
        return b"", []
    raw = read_inside(chat.parent / "reasoning" / id / f"{call}.json", inside=chat.parent, limit=_SMALL)
    try:
        items = parse_json(raw) if raw else None
    except ValueError:
        items = None
    return (raw or b"", items) if isinstance(items, list) else (b"", [])


def bound_to(chat: Path, id: str) -> list[str]:
    """Return the directories in which this chat is or was the active one, newest first."""
    folder = chat.parent / "dirs"
    try:
        stamp = folder.stat().st_mtime_ns
    except OSError:
        return []
    return list(_bindings(folder, stamp).get(id, ()))


@lru_cache(maxsize=4)
def _bindings(folder: Path, stamp: int) -> Mapping[str, tuple[str, ...]]:
    """Return the directories of each chat. Bindings are replaced rather than edited, so `stamp`, the folder's mtime, changes with them."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file in files_below(folder, ".json", depth=1):
        binding = PartialDocument(read_inside(file, inside=folder, limit=_SMALL) or b"")
        directory, updated = binding.text("abs_path"), binding.text("updated")
        history = binding.value("history")
        earlier = [one.get("chat_id") for one in history if isinstance(one, dict)] if isinstance(history, list) else []
        for chat in {str(id) for id in (binding.text("chat_id"), *earlier) if id}:
            if directory:
                found.setdefault(chat, []).append((updated, directory))
    return {chat: tuple(directory for _, directory in sorted(bound, reverse=True)) for chat, bound in found.items()}


def is_copy(path: Path, found: PartialDocument) -> bool:
    """Return whether another chat in the folder has the same messages."""
    messages = found.raw("messages")
    for other in files_below(path.parent, ".json", depth=1):
        if other.name in COPIES or abs(other.stat().st_size - len(found.data)) > _APART:
            continue
        if PartialDocument(read_inside(other, inside=path.parent, limit=len(found.data) + _APART) or b"").raw("messages") == messages:
            return True
    return False


_PREFIXES = {"ollama": "ollama", "or": "openrouter", "hf": "huggingface", "novita": "novita", "berget": "berget"}
"""clai's model prefix → provider."""


def read_chat(path: Path) -> Iterator[ImportedConversation]:
    """Yield the chat of a file, or nothing if it is only a copy of another chat. Raise UsageError if it is not a chat."""
    found = load_document(path)
    if "messages" not in found or not found.text("id"):
        raise UsageError(f"{str(path)!r} is not a chat of clai.")
    if path.name in COPIES:
        if not is_copy(path, found):
            yield ImportedConversation(f"globalScope:{_first_words(found)}", _ChatReader(path, found).entries())
        return
    yield ImportedConversation(found.text("id"), _ChatReader(path, found).entries())


def _first_words(found: PartialDocument) -> str:
    """Return a hash that distinguishes latest chats, because the file uses one id for all of them."""
    for element in found.elements("messages"):
        if element.value is not None and element.value.get("role") == "user":
            return hashlib.sha256(element.raw).hexdigest()[:16]
    return "empty"


class _ChatReader:
    """A reader of one chat."""

    def __init__(self, path: Path, found: PartialDocument) -> None:
        self._path = path
        self._found = found
        self._id = found.text("id")
        self._turns = Turns()
        self._queries: dict[int, list[JsonObject]] = {}
        queries = found.value("queries")
        for query in queries if isinstance(queries, list) else []:
            if isinstance(query, dict):
                index = query.get("current_index")
                self._queries.setdefault(index if type(index) is int else -1, []).append(query)
        self._prompt = -1
        """Position of the prompt being answered."""

    def entries(self) -> Iterator[Entry]:
        for element in self._found.elements("messages"):
            if element.value is None:
                yield self._turns.broken(element.raw, element.problem, lead=element.lead)
            else:
                yield from self._message(element, element.value)
        yield from self._turns.end()
        if not self._found.whole:
            yield self._turns.broken(b"", "the file is truncated")
        yield self._facts()

    def _message(self, element: Element, value: JsonObject) -> Iterator[Entry]:
        id, role = str(element.number - 1), value.get("role")
        if role == "system" and (element.number == 1 or self._prompt < 0):
            yield from self._turns.say("system", id, element.raw, _content(value))
        elif role == "user":
            self._prompt = element.number - 1
            yield from self._turns.say("user", id, element.raw, _content(value))
        elif role == "tool":
            call = text(value.get("tool_call_id"))
            self._turns.output(call, id, element.raw, lead=element.lead, output=_text_of(value.get("content")), failed=False)
        elif role in ("assistant", "system"):  # older versions stored the answer as `system`
            yield from self._answer(element, value, id)
        else:
            yield from self._turns.end()
            yield self._turns.broken(element.raw, f"message {element.number} has the role {role!r}", body=value)

    def _answer(self, element: Element, value: JsonObject, id: str) -> Iterator[Entry]:
        calls = value.get("tool_calls")
        objects = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        raw, items = encrypted_reasoning(self._path, self._id, text(objects[0].get("id"))) if objects else (b"", [])
        thought = text(value.get("reasoning_content"))
        parts = [*(part for item in items if (part := _encrypted(item))), *([_reasoning(thought)] if thought else [])]
        queries = self._queries.pop(self._prompt, [])
        at = milliseconds(queries[0].get("created_at")) if queries else 0
        self._turns.step(id, element.raw, [*parts, *_content(value), *(_call(call) for call in objects)], lead=element.lead, at=at)
        for query in queries:
            self._turns.note(_query_facts(query))
        if raw:
            yield ImportedRecord(raw, {"reasoning": list[Json](items), "message": id})
            self._turns.tally.kept["records"] += 1

    def _facts(self) -> ImportedFacts:
        found, tally = self._found, self._turns.tally
        tally.weaken("times")  # a query's time is when its answer was completed
        tally.lose("usage", sum(len(rest) for rest in self._queries.values()))
        tally.lost = +tally.lost
        bound = bound_to(self._path, self._id)
        named = [query.get("model") for query in objects(found.value("queries")) if query.get("model")]
        model, provider = _model(text(named[-1])) if named else ("", "")
        more: JsonObject = {name: value for name in ("source", "source_id", "group_key") if (value := found.value(name))}
        if bound:
            more["bound_to"] = list[Json](bound)
        return ImportedFacts(
            tally.fidelity(),
            directory=found.text("origin_dir") or (bound[0] if bound else ""),
            agent=found.text("profile"),
            model=f"{model}@{provider}" if provider else model,
            created_at=milliseconds(found.text("created")),
            metadata=more,
        )


def _content(value: JsonObject) -> list[Part]:
    content = value.get("content")
    if isinstance(content, str):
        return [text_part(content)] if content else []
    parts: list[Part] = []
    for piece in objects(content):
        image = piece.get("image_url")
        if isinstance(image, dict) and isinstance(url := image.get("url"), str) and url:
            part: Part = {"type": "file", "mediaType": media_type_of(url, "image/*") or "image/png", "url": url}
            parts.append({**part, "providerMetadata": {"openai": {"imageDetail": image["detail"]}}} if image.get("detail") else part)
        elif isinstance(text := piece.get("text"), str) and text:
            parts.append(text_part(text))
    return parts


def _text_of(content: Json) -> str:
    return content if isinstance(content, str) else "".join(text(piece.get("text")) for piece in objects(content))


def _call(call: JsonObject) -> Part:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = call.get("inputs")
    if not isinstance(arguments, dict):
        arguments = json_value(text(function.get("arguments"))) or {}
    part = call_part(text(call.get("id")), text(call.get("name")) or text(function.get("name")), arguments)
    return {**part, "callProviderMetadata": {"clai": {"extra_content": call["extra_content"]}}} if call.get("extra_content") else part


def _reasoning(text: str) -> Part:
    return {"type": "reasoning", "text": text, "state": "done"}


def _encrypted(item: Json) -> Part | None:
    if not isinstance(item, dict) or not text(item.get("encrypted_content")):
        return None
    summary = item.get("summary")
    summary_text = "\n\n".join(str(line) for line in summary) if isinstance(summary, list) else ""
    noted: JsonObject = {"itemId": text(item.get("id")), "encryptedContent": item["encrypted_content"], "provider": "openai"}
    return {**_reasoning(summary_text), "providerMetadata": {"openai": noted}}


def _query_facts(query: JsonObject) -> JsonObject:
    """Return a query as the facts of a model call."""
    model, provider = _model(text(query.get("model")))
    usage = query.get("usage")
    facts: JsonObject = {"model": model, "provider": provider, "usage": _usage(usage) if isinstance(usage, dict) else {}}
    return {**facts, "cost": money(query, "cost_usd")}


def _usage(usage: JsonObject) -> JsonObject:
    inputs, outputs = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    counts: JsonObject = {"input": usage.get("prompt_tokens"), "output": usage.get("completion_tokens")}
    counts["cache_read"] = inputs.get("cached_tokens") if isinstance(inputs, dict) else None
    counts["reasoning"] = outputs.get("reasoning_tokens") if isinstance(outputs, dict) else None
    return {name: count for name, count in counts.items() if type(count) is int and (count > 0 or name in ("input", "output"))}


def _model(name: str) -> tuple[str, str]:
    """Return the model, and its provider if the name contains it."""
    prefix, colon, rest = name.partition(":")
    return (rest, _PREFIXES[prefix]) if colon and prefix in _PREFIXES else (name, "")


_FOLDER = "conversations"
_LOOKED_AT = 20
"""Number of files examined to recognize a folder."""


class Clai:
    """Implementation of `Format`, `Holding`, `Placed`, `Split`, `Configured` and `Sampled`."""

    name = "clai"
    version = 1
    suffix = ".json"
    words = "a chat for clai"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return path.is_dir() and any(self.sniff(file, start) for file in islice(_files(path), _LOOKED_AT) if (start := read_head(file)))
        found = partial_document(head)
        return bool(found.text("id")) and "T" in found.text("created") and _has_messages(found.raw("messages"))

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        if named := environ.get("CLAI_CONFIG_DIR"):
            return [Path(named)]
        base = environ.get("XDG_CONFIG_HOME")
        return [Path(base or home / ".config") / ".clai", home / "Library" / "Application Support" / ".clai", home / ".clai"]

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield chats before the copies of the latest one."""
        copies: list[Path] = []
        for file in _files(folder):
            if file.name in COPIES:
                copies.append(file)
            elif self.sniff(file, read_head(file)):
                yield file
        yield from copies

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for file in self.sources(path) if path.is_dir() else [path]:
            yield from read_chat(file)

    def configuration(self, path: Path) -> ForeignConfiguration:
        """Convert the configuration in the parent of `conversations`."""
        folder = path if path.is_dir() else path.parent
        return configuration(folder.parent if folder.name == _FOLDER else folder)

    def write(self, exported: ExportedConversation) -> ExportFile:
        return write_chat(exported)


def _files(folder: Path) -> Iterator[Path]:
    inner = folder / _FOLDER
    return files_below(inner if inner.is_dir() and not inner.is_symlink() else folder, ".json", depth=1)


def _has_messages(raw: bytes) -> bool:
    return raw.startswith((b"[", b"null"))
