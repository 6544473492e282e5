"""Chats of clai as conversations, the files next to them (encrypted reasoning, directory bindings, copies), and clai's configuration."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path

from moot.errors import UsageError
from moot.formats.apps.clai.writer import HOLDS, write_chat
from moot.formats.kit.answers import Turns
from moot.formats.kit.configuration import MAX_SETTINGS, ConfigurationBuilder
from moot.formats.kit.fields import at, items, milliseconds, money, obj, objects, text
from moot.formats.kit.files import files_below, read_head, read_inside
from moot.formats.kit.json import Element, PartialDocument, json_value, load_document, parse_json, partial_document
from moot.formats.kit.records import media_type_of, reasoning
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
_LOOKBACK = "search_history"
_SKILLS = "moot uses the skills of ~/.agents/skills and of projects; run 'moot skills add FOLDER' for others"


def configuration(home: Path) -> ForeignConfiguration:
    """Convert the configuration in clai's folder."""
    draft = ConfigurationBuilder("clai")

    def read(file: Path) -> JsonObject:
        return draft.read(file, home, file.name)

    settings = read(home / "textConfig.json")
    if model := _model_reference(text(settings, "model")):
        draft.setting("models", "main", model)
    if instructions := text(settings, "system-prompt"):
        draft.agent("default", {"instructions": instructions})
    _bans(draft, settings.get("cmd-ban"))
    for file in files_below(home / "mcpServers", ".json", depth=1):
        _server(draft, file.stem, read(file))
    contexts = {file.stem: read(file) for file in files_below(home / "shellContexts", ".json", depth=1)}
    for file in files_below(home / "profiles", ".json", depth=1):
        _profile(draft, file.stem, read(file), contexts)
    if skills := read(home / "skills.json"):
        draft.lose("skills.json", _SKILLS, skills)
    return draft.found()


def _profile(draft: ConfigurationBuilder, name: str, profile: JsonObject, contexts: Mapping[str, JsonObject]) -> None:
    tools: Json = profile.get("tools") if profile.get("use_tools") else []
    facts: JsonObject = {"model": _model_reference(text(profile, "model")), "instructions": profile.get("prompt")}
    known = dict(_TOOLS)
    if profile.get("use_lookback") is True and isinstance(tools, list) and tools != ["*"]:
        tools, known = [*tools, _LOOKBACK], known | {_LOOKBACK: _LOOKBACK}
    elif profile.get("use_lookback") is True:
        draft.lose(f"agents.{name}.use_lookback", f"to use it in moot, give the agent a list of `tools` that includes {_LOOKBACK}")
    if context := text(profile, "shell_context"):
        facts["hooks"] = _shell_context(draft, context, contexts)
    if profile.get("use_skills") not in (None, False, []):
        draft.lose(f"agents.{name}.use_skills", _SKILLS, profile["use_skills"])
    if profile.get("save-reply-as-conv") is False:
        draft.lose(f"agents.{name}.save-reply-as-conv", "moot always stores conversations")
    draft.agent(text(profile, "name") or name, facts, tools=None if tools == ["*"] else tools, known=known)
    _bans(draft, profile.get("cmd-ban"))
    for server, value in obj(profile, "mcp_servers").items():
        if isinstance(value, dict):
            _server(draft, server, value)


def _shell_context(draft: ConfigurationBuilder, name: str, contexts: Mapping[str, JsonObject]) -> JsonObject:
    """Return hooks that insert the output of a shell context's commands before each prompt."""
    commands = {key: command for key, command in obj(contexts.get(name), "vars").items() if isinstance(command, str) and command.strip()}
    if not commands or any("{{" in command for command in commands.values()):
        draft.lose(f"shellContexts {name!r}", "it is missing, has no commands, or a command contains braces", contexts.get(name))
        return {}
    draft.note("shell contexts became hooks that run before each run and need approval like other commands; their templates were left out")
    lines = "\n".join(f"echo {shlex.quote(f'{key}:')}\n{command}" for key, command in commands.items())
    return {"before_run": [{"tool": "shell", "arguments": {"command": lines}}]}


def _server(draft: ConfigurationBuilder, name: str, server: JsonObject) -> None:
    if server:
        draft.server(text(server, "name") or name, {key: server.get(key) for key in ("command", "env", "args")})
    for key in ("envfile", "timeout_seconds"):
        if server.get(key):
            draft.lose(f"mcp server {name!r}: {key}", "moot's MCP servers have no such setting", server[key])


def _bans(draft: ConfigurationBuilder, bans: Json) -> None:
    """Convert banned word sequences to deny rules. clai refuses commands that contain such a sequence anywhere."""
    for ban in items(bans):
        if isinstance(ban, str) and ban.strip():
            draft.rule("shell", "deny", f"{ban.strip()}*")
            draft.note("clai refuses banned words anywhere in a command; in moot, a rule only matches the beginning of a command")


def _model_reference(name: str) -> str:
    prefix, colon, rest = name.partition(":")
    return f"{rest}@{_PROVIDER_PREFIXES[prefix]}" if colon and prefix in _PROVIDER_PREFIXES else name


COPIES = ("globalScope.json", "prevQuery.json")
"""Files that contain a copy of the latest chat. Older versions of clai use the second name."""

_APART = 1024
"""Maximum difference in size between a chat and its copy, in bytes. The id, time and source of the two differ."""


def encrypted_reasoning(chat: Path, id: str, call: str) -> tuple[bytes, list[Json]]:
    """Return the bytes of the file with the encrypted reasoning before a tool call, and its items. Both are empty if there is none."""
    if any(not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name for name in (id, call)):
        return b"", []
    raw = read_inside(chat.parent / "reasoning" / id / f"{call}.json", inside=chat.parent, limit=MAX_SETTINGS)
    try:
        items = parse_json(raw) if raw else None
    except ValueError:
        items = None
    return (raw or b"", items) if isinstance(items, list) else (b"", [])


def bound_to(chat: Path, id: str) -> list[str]:
    """Return the directories in which this chat is or was the active chat, newest first."""
    folder = chat.parent / "dirs"
    try:
        stamp = folder.stat().st_mtime_ns
    except OSError:
        return []
    return list(_bindings(folder, stamp).get(id, ()))


@lru_cache(maxsize=4)
def _bindings(folder: Path, stamp: int) -> Mapping[str, tuple[str, ...]]:
    """Return the directories of each chat.
    `stamp` is the folder's mtime, which changes when a binding is replaced. It is part of the cache key.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for file in files_below(folder, ".json", depth=1):
        binding = PartialDocument(read_inside(file, inside=folder, limit=MAX_SETTINGS) or b"")
        directory, updated = binding.text("abs_path"), binding.text("updated")
        earlier = [one.get("chat_id") for one in objects(binding.value("history"))]
        for chat in {str(id) for id in (binding.text("chat_id"), *earlier) if id}:
            if directory:
                found.setdefault(chat, []).append((updated, directory))
    return {chat: tuple(directory for _, directory in sorted(bound, reverse=True)) for chat, bound in found.items()}


def is_copy(path: Path, found: PartialDocument) -> bool:
    """Return whether the file is a copy: another chat in the folder has the same messages."""
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
    """Yield the chat in a file, or nothing if the file is only a copy of another chat.
    Raise UsageError if the file does not contain a chat.
    """
    found = load_document(path)
    if "messages" not in found or not found.text("id"):
        raise UsageError(f"{str(path)!r} is not a clai chat.")
    if path.name in COPIES:
        if not is_copy(path, found):
            # the file uses one id for all chats: the hash of the first prompt distinguishes them
            prompts = (element.raw for element in found.elements("messages") if text(element.value, "role") == "user")
            digest = next((hashlib.sha256(raw).hexdigest()[:16] for raw in prompts), "empty")
            yield ImportedConversation(f"globalScope:{digest}", _ChatReader(path, found).entries())
        return
    yield ImportedConversation(found.text("id"), _ChatReader(path, found).entries())


class _ChatReader:
    """Reader for one chat."""

    def __init__(self, path: Path, found: PartialDocument) -> None:
        self._path = path
        self._found = found
        self._id = found.text("id")
        self._turns = Turns()
        self._queries: dict[int, list[JsonObject]] = {}
        for query in objects(found.value("queries")):
            index = query.get("current_index")
            self._queries.setdefault(index if type(index) is int else -1, []).append(query)
        self._prompt = -1
        """Index of the prompt that is being answered; -1 before the first prompt."""

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
            output = text(value, "content") or "".join(text(piece, "text") for piece in objects(value, "content"))
            self._turns.output(text(value, "tool_call_id"), id, element.raw, lead=element.lead, output=output, failed=False)
        elif role in ("assistant", "system"):  # older versions stored the answer as `system`
            yield from self._answer(element, value, id)
        else:
            yield from self._turns.end()
            yield self._turns.broken(element.raw, f"message {element.number} has the unknown role {role!r}", body=value)

    def _answer(self, element: Element, value: JsonObject, id: str) -> Iterator[Entry]:
        calls = objects(value, "tool_calls")
        raw, sealed = encrypted_reasoning(self._path, self._id, text(calls[0], "id")) if calls else (b"", [])
        thought = text(value, "reasoning_content")
        parts = [*(part for item in sealed if (part := _encrypted(item))), *([reasoning(thought)] if thought else [])]
        queries = self._queries.pop(self._prompt, [])
        at = milliseconds(queries[0], "created_at") if queries else 0
        self._turns.step(id, element.raw, [*parts, *_content(value), *(_call(call) for call in calls)], lead=element.lead, at=at)
        for query in queries:
            model, provider = _model(text(query, "model"))
            cost, usage = money(query, "cost_usd"), _usage(obj(query, "usage"))
            self._turns.note({"model": model, "provider": provider, "usage": usage, "cost": cost})
        if raw:
            yield ImportedRecord(raw, {"reasoning": sealed, "message": id})
            self._turns.tally.kept["records"] += 1

    def _facts(self) -> ImportedFacts:
        found, tally = self._found, self._turns.tally
        tally.weaken("times")  # the time of a query is the time at which its answer was completed
        tally.lose("usage", sum(len(rest) for rest in self._queries.values()))
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
    if words := text(value, "content"):
        return [text_part(words)]
    parts: list[Part] = []
    for piece in objects(value, "content"):
        if url := text(piece, "image_url", "url"):
            part: Part = {"type": "file", "mediaType": media_type_of(url, "image/*") or "image/png", "url": url}
            detail = at(piece, "image_url", "detail")
            parts.append({**part, "detail": detail} if detail else part)
        elif words := text(piece, "text"):
            parts.append(text_part(words))
    return parts


def _call(call: JsonObject) -> Part:
    arguments = call.get("inputs")
    if not isinstance(arguments, dict):
        arguments = json_value(text(call, "function", "arguments")) or {}
    part = call_part(text(call, "id"), text(call, "name") or text(call, "function", "name"), arguments)
    return {**part, "callProviderMetadata": {"clai": {"extra_content": call["extra_content"]}}} if call.get("extra_content") else part


def _encrypted(item: Json) -> Part | None:
    content = text(item, "encrypted_content")
    noted: JsonObject = {"itemId": text(item, "id"), "encryptedContent": content, "provider": "openai"}
    return reasoning("\n\n".join(map(str, items(item, "summary"))), {"openai": noted}) if content else None


def _usage(usage: JsonObject) -> JsonObject:
    counts: JsonObject = {"input": usage.get("prompt_tokens"), "output": usage.get("completion_tokens")}
    counts["cache_read"] = at(usage, "prompt_tokens_details", "cached_tokens")
    counts["reasoning"] = at(usage, "completion_tokens_details", "reasoning_tokens")
    return {name: count for name, count in counts.items() if type(count) is int and (count > 0 or name in ("input", "output"))}


def _model(name: str) -> tuple[str, str]:
    """Return the model, and its provider if the name contains it."""
    prefix, colon, rest = name.partition(":")
    return (rest, _PREFIXES[prefix]) if colon and prefix in _PREFIXES else (name, "")


_FOLDER = "conversations"
_LOOKED_AT = 20
"""Number of files to examine in order to recognize a folder."""


class Clai:
    name = "clai"
    version = 2
    stored_files: tuple[str, ...] = tuple(f"{_FOLDER}/{below}*.json" for below in ("", "*/", "*/*/"))
    suffix = ".json"
    words = "a chat for clai"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return path.is_dir() and any(self.sniff(file, start) for file in islice(_files(path), _LOOKED_AT) if (start := read_head(file)))
        found = partial_document(head)
        has_messages = found.raw("messages").startswith((b"[", b"null"))
        return bool(found.text("id")) and "T" in found.text("created") and has_messages

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        if named := environ.get("CLAI_CONFIG_DIR"):
            return [Path(named)]
        base = environ.get("XDG_CONFIG_HOME")
        return [Path(base or home / ".config") / ".clai", home / "Library" / "Application Support" / ".clai", home / ".clai"]

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the chats, followed by the files that contain a copy of the latest chat."""
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
