"""The interface of foreign conversation formats: reading files, and writing files for the programs that use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from moot.types.canonical import Json, JsonObject, empty
from moot.types.conversation import Conversation
from moot.types.event import Raw
from moot.types.message import Message, Part, Role

Counts: TypeAlias = Mapping[str, int]
"""Number of items of each kind, with the same names everywhere: `messages`, `reasoning`, `signatures`, `tool calls`, `files`, `pictures`,
`other parts`, `times`, `models`, `usage`, `costs`, `titles`, `branches`, `sub-agents`, `records`."""

Sample: TypeAlias = bytes | Mapping[str, bytes]
"""A sample source: a file's bytes, or a mapping from the paths in a folder to their bytes."""

FidelityLevel: TypeAlias = Literal["kept", "approximated"]

TOTAL_OF = "total_of"
"""Field of a step whose usage is the total of several calls, such as those of a whole `session`."""

_PLAIN = (
    "title",
    "head",
    "directory",
    "agent",
    "model",
    "created_at",
    "updated_at",
    "archived",
    "key",
    "project",
    "allowed_uris",
    "is_finished",
)


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The numbers of a conversation's items that a conversion kept, changed or lost. Each item is counted once."""

    kept: Counts = field(default_factory=dict[str, int])
    """Numbers of items that are unchanged, by kind."""
    approximated: Counts = field(default_factory=dict[str, int])
    """Numbers of items that are present but changed, by kind, such as a time without its zone or a tool call as text."""
    lost: Counts = field(default_factory=dict[str, int])
    """Numbers of items that are missing, by kind. After an import, they are still in the raw bytes."""

    def __add__(self, other: Fidelity) -> Fidelity:
        return Fidelity(_sum(self.kept, other.kept), _sum(self.approximated, other.approximated), _sum(self.lost, other.lost))


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message read from a source."""

    role: Role
    parts: tuple[Part, ...]
    source_id: str
    """Unique in the conversation; derived from the position if the source has no ids, so that a second import finds the same message."""
    raw: Raw
    """The source's records of the message, joined byte for byte. If the message has grown, its earlier `raw` is a prefix."""
    parent: str | None = None
    """The `source_id` of an earlier message; None = a root message."""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch; 0 = unknown."""
    metadata: JsonObject = field(default_factory=empty)
    """Like `Message.metadata` of moot's own runs: model, provider, finish_reason, and steps with usage, cost and time, as far as known."""
    identities: tuple[str, ...] = ()
    """Identity of each model call in `metadata["steps"]`, or of the message itself if it has no steps. It is the same in all copies that
    the program makes when it forks or resumes a session, and different for all other calls. Empty = unknown."""
    records: tuple[Json, ...] = ()
    """The values of the records in `raw`, if the reader still has them, so that they needn't be parsed again. Empty = unknown."""


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record that is not a message, or that is broken: kept unchanged in the conversation's log."""

    raw: Raw
    """The record's bytes; empty if the record is too large to hold, in which case `problem` mentions that."""
    body: Json = None
    """The parsed content, if it was readable."""
    problem: str = ""
    """A description of the problem and its position; empty = none."""


@dataclass(frozen=True, slots=True)
class ImportedProject:
    """A project in the source, to which conversations of the source belong."""

    source_id: str
    """Id that is unique in the format and stable."""
    name: str
    description: str = ""
    directory: str = ""
    context: str = ""
    rules: str = ""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch; 0 = unknown."""


@dataclass(frozen=True, slots=True)
class ImportedFacts:
    """Facts about the whole conversation that are known so far. Later facts can follow. Their non-empty fields replace earlier values."""

    fidelity: Fidelity = field(default_factory=Fidelity)
    """Counts of the entries since the previous facts. All counts are added up."""
    title: str = ""
    head: str | None = None
    """The `source_id` of the last message of the current branch; None = the last message in the source."""
    directory: str = ""
    agent: str = ""
    model: str = ""
    created_at: int = 0
    """Time of creation, in milliseconds since the epoch; 0 = unknown."""
    updated_at: int = 0
    archived: bool = False
    key: str = ""
    """A key by which a program finds the conversation again, such as `cron:nightly`."""
    project: ImportedProject | None = None
    allowed_uris: tuple[str, ...] = ()
    """Folders that tools may touch: absolute paths or `file:` URIs."""
    is_finished: bool = False
    """True if the program marked the task as finished."""
    metadata: JsonObject = field(default_factory=empty)
    """Facts from the source that have no field here."""


Entry: TypeAlias = ImportedMessage | ImportedRecord | ImportedFacts


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation read from a source."""

    source_id: str
    """Id that is unique in the format and stable, so that a second import adds only new messages."""
    entries: Iterable[Entry]
    """In the source's order; a parent precedes its children. Consume it once, before requesting the next conversation. If conversations
    can be large, entries are produced while reading, and memory holds one at a time."""
    parent: str | None = None
    """The `source_id` of the parent conversation, if this is a sub-agent's conversation."""
    parent_call: str | None = None
    """Id of the parent's tool call that started the sub-agent."""
    copied_from: str | None = None
    """The `source_id` of the conversation that this one was forked from, if the source names it."""
    rank: int = 0
    """Order of conversations that share model calls: the lowest rank has the originals. 0 unless the source shows what was copied."""
    started_at: int = 0
    """Time at which the program created the conversation, in ms since the epoch; 0 = time of its first message."""

    def whole(self) -> WholeConversation:
        """Read the whole conversation at once; use it for small conversations."""
        entries = tuple(self.entries)
        return WholeConversation(self, tuple(entry for entry in entries if not isinstance(entry, ImportedFacts)), merge_facts(entries))


@dataclass(frozen=True, slots=True)
class WholeConversation:
    """A completely read conversation."""

    conversation: ImportedConversation
    entries: tuple[ImportedMessage | ImportedRecord, ...]
    facts: ImportedFacts

    @property
    def messages(self) -> tuple[ImportedMessage, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, ImportedMessage))

    @property
    def fidelity(self) -> Fidelity:
        return self.facts.fidelity


def merge_facts(entries: Iterable[Entry]) -> ImportedFacts:
    """Return all facts in the entries, merged: fields set later replace earlier ones."""
    found = ImportedFacts()
    for facts in (entry for entry in entries if isinstance(entry, ImportedFacts)):
        updates = {name: value for name in _PLAIN if (value := getattr(facts, name))}
        metadata = {**found.metadata, **facts.metadata}
        found = replace(found, **updates, metadata=metadata, fidelity=found.fidelity + facts.fidelity)
    return found


@dataclass(frozen=True, slots=True)
class ExportedConversation:
    """A stored conversation, ready for writing."""

    conversation: Conversation
    messages: tuple[Message, ...]
    """The current branch, oldest first. File parts carry `data:` or http(s) URLs: blobs are already resolved."""
    others: tuple[Message, ...] = ()
    """Messages in other branches, each parent before its children; empty if only the current branch is exported."""
    children: tuple[ExportedConversation, ...] = ()
    """The conversations of its sub-agents; `parent_tool_call` names the call that started each one."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A conversation converted to a file in the format, with the fidelity of the conversion."""

    data: bytes
    fidelity: Fidelity


class Format(Protocol):
    """A foreign format. Instances are stateless."""

    name: str
    version: int
    """Version of the conversion, increased whenever the same bytes convert to a different result."""
    suffix: str
    """Suffix of the files it writes, with the dot: `.jsonl`."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Return True for a source in this format: a file that starts with `head` (at most 64 KiB), or a folder, with an empty `head`.

        Never raises, and never claims a source that it can't read.
        """
        ...

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        """Yield the source's conversations. An unreadable record becomes an ImportedRecord, counted as lost; the rest is kept.

        Raise UsageError if nothing in the source has this format. Never changes the source.
        """
        ...

    def write(self, exported: ExportedConversation) -> ExportFile:
        """Convert to this format. Raise UsageError if the format is read-only."""
        ...


@runtime_checkable
class DeclaresFidelity(Protocol):
    """Optional capability: declare how well files in this format preserve each kind of item in `Counts`."""

    words: str
    """One line that describes the use of such files."""
    holds: Mapping[str, FidelityLevel]
    """`kept`: reading the written file restores the item. Kinds not listed are lost."""


@runtime_checkable
class WriteOnly(Protocol):
    """Optional trait of a write-only format: it claims and reads no source."""

    outward: Literal[True]


@runtime_checkable
class TerminalReadable(Protocol):
    """Optional trait: the output is text that reads well in a terminal."""

    legible: Literal[True]


@runtime_checkable
class HasSamples(Protocol):
    """Optional capability: provide sample sources, by name. Required for read-only formats."""

    samples: Mapping[str, Sample]


@runtime_checkable
class HasLocations(Protocol):
    """Optional capability: the locations where the format's program stores conversations on this machine."""

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        """Return files and folders, existing or not; the program's environment variables take precedence over `home`."""
        ...


@runtime_checkable
class HasVariants(Protocol):
    """Optional capability: the locations where other programs store conversations in the same format."""

    def variants(self, home: Path, environ: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
        """Return each program's name with its files and folders, existing or not."""
        ...


@runtime_checkable
class HasProjectFile(Protocol):
    """Optional capability: the name of the file in which the program stores conversations about a project, in the project's folder."""

    project_file: str


@runtime_checkable
class NamesFiles(Protocol):
    """Required for a format whose standard locations are folders: name the files that `sources` and `read` need.

    Other files there may contain keys and settings, and are not copied from other machines.
    """

    stored_files: tuple[str, ...]
    """Patterns for file names in the locations, including the names of parent folders; see `PurePath.match`."""


@runtime_checkable
class HasNeighbors(Protocol):
    """Optional capability: additional files and folders near a standard location that `sources` or `read` need."""

    def neighbors(self, place: Path) -> Iterable[Path]:
        """Return paths, existing or not, in which `*` stands for any part of a name."""
        ...


@runtime_checkable
class HasCompanions(Protocol):
    """Optional capability: additional files that `read` reads for a source. If one of them changes, the source is read again."""

    def companions(self, path: Path) -> Iterable[Path]:
        """Return the files of the source at `path`, existing or not."""
        ...


@dataclass(frozen=True, slots=True)
class ForeignConfiguration:
    """A program's configuration, converted for review by the user. Nothing is applied automatically."""

    pieces: JsonObject = field(default_factory=empty)
    """Sections of a moot configuration, such as `agents` and `mcp`. Secrets are omitted; MCP servers that need one are disabled."""
    unsupported: JsonObject = field(default_factory=empty)
    """Settings without an equivalent, unchanged and under the program's own names."""
    notes: tuple[str, ...] = ()
    """One line for each inexact conversion and each point that needs review."""
    lost: tuple[str, ...] = ()
    """One line for each setting without an equivalent, with the reason."""


@runtime_checkable
class HasConfiguration(Protocol):
    """Optional capability: read the configuration that the format's program stores next to its conversations."""

    def configuration(self, path: Path) -> ForeignConfiguration:
        """Return the configuration in or next to a source or folder of sources. Never raises: unreadable files become notes."""
        ...


@runtime_checkable
class NamesRecords(Protocol):
    """Optional capability of a format with records that contain text but are not messages."""

    def knows_record(self, body: JsonObject) -> bool:
        """Return True if the format leaves the record out on purpose, for example because it repeats a message."""
        ...


@runtime_checkable
class MultiSource(Protocol):
    """Optional capability: a folder with many sources, each of which is read and remembered separately."""

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield each source in a folder for which `sniff` returns True, in a stable order. Links are not followed."""
        ...


@runtime_checkable
class AgentSessions(Protocol):
    """Optional capability: the agent service that can continue these sessions by their `source_id`s."""

    agent_type: str


@runtime_checkable
class Resumable(Protocol):
    """Optional capability: each `source_id` is the id by which a program resumes a session, unique across programs.

    This identifies sessions created by moot's own runs, whichever agent service drove them.
    """

    resumable: Literal[True]


@runtime_checkable
class HasResumeCommand(Protocol):
    """Optional capability: the command by which the format's program resumes a session. The session's `source_id` is its last argument."""

    resume_command: tuple[str, ...]


def _sum(one: Counts, other: Counts) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


@dataclass(frozen=True, slots=True)
class InstallableSession:
    """A conversation as a session file in a program's own folder."""

    path: Path
    data: bytes
    command: tuple[str, ...]
    """The command that resumes it, run in `directory`."""
    directory: Path
    fidelity: Fidelity
    beside: Mapping[Path, bytes] = field(default_factory=dict[Path, bytes])
    """Further files that the program needs to find the session. Existing files are kept."""
    bookkeeping: bytes = b""
    """Prefix of lines that don't belong to the conversation. An existing file may contain other lines with this prefix; empty = there are
    no such lines."""
    setup: tuple[str, ...] = ()
    """The command to run before `command`, so that the program reads the file; empty = none."""


@runtime_checkable
class Installable(Protocol):
    """Optional capability of a format: write a conversation as a session that its program finds by `id`."""

    def session(self, exported: ExportedConversation, id: str, directory: Path, places: tuple[Path, ...]) -> InstallableSession:
        """Return a session file to write to the first of the format's own `places`, for a program that is started in `directory`.

        Nothing is written.
        """
        ...
