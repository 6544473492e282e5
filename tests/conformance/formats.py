"""Checks that every format must pass."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from format_samples import samples_of
from moot.errors import MootError, UsageError
from moot.formats.kit.bases import ManyFiles
from moot.imports.hosts.places import DATABASES, LOGS, remote_places
from moot.types.conversation import Conversation
from moot.types.format import (
    DeclaresFidelity,
    ExportedConversation,
    Fidelity,
    Format,
    Sample,
    TerminalReadable,
    WholeConversation,
    WriteOnly,
)
from moot.types.message import Message, Part, text_of, text_part

THINGS = {
    "messages",
    "reasoning",
    "signatures",
    "tool calls",
    "files",
    "pictures",
    "other parts",
    "times",
    "models",
    "usage",
    "costs",
    "titles",
    "branches",
    "sub-agents",
    "records",
}
"""The names of counted content."""

FOREIGN = (
    b"",
    b"\n",
    b"{",
    b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    b"\xff\xfe\x00",
    b"[]",
    b"{}\n" * 3,
    b"just some words\n",
    b"a,b\n1,2\n",
)


SECRETS = (
    *(
        "auth.json",
        "auth-profiles.json",
        ".credentials.json",
        "credentials.json",
        "oauth_creds.json",
        "token.json",
        "secrets.json",
        "key.json",
    ),
    *(
        "settings.json",
        "settings.local.json",
        "config.json",
        "config.yaml",
        "config.toml",
        "mcp.json",
        "models.json",
        ".claude.json",
        ".env",
    ),
    *("id_rsa", "server.pem", "keys.db", "cookies.sqlite", "customers.db", "service-account.json", "unknown.json"),
)
"""Names of files with keys, settings and other data that no format needs."""


PACKED = (b"SQLite format 3\x00", b"PK\x03\x04", b"\x1f\x8b")
"""Prefixes of sources whose records are not their bytes: a row's raw is built from its values, a packed file's was unpacked."""


def exported(texts: Sequence[str], extra: Sequence[Part] = ()) -> ExportedConversation:
    """User and agent taking turns with these texts; the last message has the extra parts too."""
    roles = ["user", "assistant"]
    messages = [Message(f"m{at}", roles[at % 2], (text_part(text),), created_at=1_700_000_000_000 + at) for at, text in enumerate(texts)]  # type: ignore[arg-type]
    if extra:
        messages.append(Message("extra", "assistant", (text_part("more"), *extra)))
    return ExportedConversation(Conversation("c1", title="A title"), tuple(messages))


def written(format: Format, conversation: ExportedConversation) -> tuple[bytes, Fidelity] | None:
    """None for a format that can only be read; it must have samples then."""
    try:
        made = format.write(conversation)
    except UsageError:
        assert samples_of(format), "a read-only format needs samples"
        return None
    return made.data, made.fidelity


def source(format: Format, folder: Path, data: Sample) -> Path:
    """Write a sample as a file or a folder of files."""
    if isinstance(data, bytes):
        path = folder / f"source{format.suffix}"
        path.write_bytes(data)
        return path
    for name, content in data.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "source"


def content(path: Path) -> bytes:
    """Return the bytes of a file, or of all files in a folder."""
    return path.read_bytes() if path.is_file() else b"".join(one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file())


def is_claimed(format: Format, path: Path) -> bool:
    """Return whether the format recognizes the source."""
    return format.sniff(path, path.read_bytes()[: 1 << 16] if path.is_file() else b"")


def spoiled(sample: Sample, at: int, junk: bytes) -> Sample:
    """Return the sample with junk inserted at one position."""
    if isinstance(sample, bytes):
        return sample[:at] + junk + sample[at:]
    files = dict(sample)
    for name, data in files.items():
        if at <= len(data):
            files[name] = data[:at] + junk + data[at:]
            break
        at -= len(data)
    return files


def size_of(sample: Sample) -> int:
    return len(sample) if isinstance(sample, bytes) else sum(len(data) for data in sample.values())


def check_itself(format: Format) -> None:
    assert format.version >= 1 and format.suffix.startswith(".") and format.suffix == format.suffix.lower()
    if isinstance(format, DeclaresFidelity):
        assert format.words and "\n" not in format.words and format.words[0].islower(), "its words are no line of a list"
        assert set(format.holds) <= THINGS, f"nobody knows what {sorted(set(format.holds) - THINGS)} are"
    if isinstance(format, WriteOnly):
        assert isinstance(format, DeclaresFidelity), "what is only written says what it holds"


def check_only_named_files_are_copied(format: Format) -> None:
    """In each of its locations, the format names the files that it needs, and nothing else is copied from another machine."""
    places = remote_places((format.name,))
    sources = [name for name in (format.files if isinstance(format, ManyFiles) else ()) if "/" in name]
    for place in (place.path.replace("*", "x") for place in places.all):
        if places.wants(f"{place}/x"):
            raise AssertionError(f"every file in {place} is copied")
        found = [f"{place}/{below}{name}" for below in ("", "a/", "a/b/", "a/b/c/") for name in SECRETS]
        # a folder in which each file with this ending is a conversation
        assert not [path for path in found if places.wants(path) and not any(Path(path).match(name) for name in sources)]
    unnamed = [place.path for place in places.all if not place.names and not place.path.endswith((*DATABASES, *LOGS))]
    assert not unnamed, f"stored_files doesn't say which files in {unnamed} are needed"


def check_round_trip(format: Format, folder: Path, texts: Sequence[str]) -> None:
    """The format recognizes its own output and reads the same texts, order and roles."""
    conversation = exported(texts)
    made = written(format, conversation)
    if made is None:
        return
    data, fidelity = made
    path = source(format, folder, data)
    if isinstance(format, WriteOnly):
        check_outward(format, path, fidelity, len(texts))
        return
    assert format.sniff(path, data[: 1 << 16]), "it does not know its own file"
    [read] = check_read(format, path)
    assert [(one.role, text_of(one.parts)) for one in read.messages] == [(one.role, text_of(one.parts)) for one in conversation.messages]
    assert _count(fidelity, "messages") == len(texts), f"{len(texts)} messages were written, and it counts {fidelity}"
    assert _count(read.fidelity, "messages") == len(texts), f"{len(texts)} messages were read, and it counts {read.fidelity}"


def check_outward(format: Format, path: Path, fidelity: Fidelity, messages: int) -> None:
    """A write-only format claims nothing, refuses to read, and counts what it drops."""
    assert not format.sniff(path, path.read_bytes()[: 1 << 16]), "it claims what it can't read"
    try:
        read_whole(format, path)
    except UsageError as error:
        assert "import" in str(error)
    else:
        raise AssertionError("it is only written, and reads something")
    assert _count(fidelity, "messages") == messages


def check_lost_content_is_counted(format: Format) -> None:
    """Everything that is not written is counted."""
    extra: list[Part] = [
        {"type": "reasoning", "text": "because", "state": "done"},
        {"type": "tool-read_file", "toolCallId": "t1", "state": "output-available", "input": {"path": "a"}, "output": "x"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"},
    ]
    if (without := written(format, exported(["a", "b"]))) is None:
        return
    made = written(format, exported(["a", "b"], extra))
    assert made is not None
    more = _total(made[1]) - _total(without[1])
    assert more >= 1 + len(extra), (
        f"a message with {len(extra)} further parts was written, and only {more} things more are counted: {made[1]}"
    )


def read_whole(format: Format, path: Path) -> list[WholeConversation]:
    return [one.whole() for one in format.read(path)]


def check_read(format: Format, path: Path) -> list[WholeConversation]:
    """Check its conversations: complete ids, parents and raw; reading twice gives the same, and the source is unchanged."""
    before = (content(path), sorted(path.parent.rglob("*")))
    read = read_whole(format, path)
    assert [(one.entries, one.facts) for one in read_whole(format, path)] == [(one.entries, one.facts) for one in read], (
        "read twice it is not the same"
    )
    assert (content(path), sorted(path.parent.rglob("*"))) == before, "reading changed the source"
    assert len({one.conversation.source_id for one in read}) == len(read), "two conversations have one id"
    for conversation in read:
        check_conversation(conversation, before[0])
    return read


def check_conversation(conversation: WholeConversation, data: bytes) -> None:
    seen: set[str] = set()
    for message in conversation.messages:
        assert message.source_id and message.source_id not in seen, f"the id {message.source_id!r} is taken"
        assert message.parent is None or message.parent in seen, f"{message.source_id!r} precedes its parent"
        assert message.role in ("system", "user", "assistant")
        assert message.raw, f"{message.source_id!r} has no raw"
        seen.add(message.source_id)
    if not data.startswith(PACKED):
        assert all(is_made_of(entry.raw, data) for entry in conversation.entries), "raw is not the source's own bytes"
    assert conversation.facts.head is None or conversation.facts.head in seen
    counts = [conversation.fidelity.kept, conversation.fidelity.approximated, conversation.fidelity.lost]
    assert all(type(count) is int and count >= 0 for kind in counts for count in kind.values())


def is_made_of(raw: bytes, data: bytes) -> bool:
    """Return True if raw consists of a few long slices of the source, unlike re-encoded values."""
    at = stretches = 0
    while at < len(raw):
        length = bisect(range(1, len(raw) - at + 1), False, key=lambda size: raw[at : at + size] not in data)
        if length == 0:
            return False
        at, stretches = at + length, stretches + 1
    return stretches <= 1 + len(raw) // 24


def check_foreign(format: Format, folder: Path, data: bytes) -> None:
    """The format does not claim foreign sources, and reads any input or raises UsageError."""
    path = source(format, folder, data)
    claimed = format.sniff(path, data[: 1 << 16])
    if data in FOREIGN:
        assert not claimed, f"it claims {data!r}"
    try:
        read = read_whole(format, path)
    except MootError as error:
        assert not claimed or not data, f"it claims {data[:80]!r} and can't read it: {error}"
    else:
        for conversation in read:
            check_conversation(conversation, data)


def check_a_broken_record(format: Format, folder: Path, sample: Sample, at: int, junk: bytes) -> None:
    """Junk inside a file costs at most what it hits: reading raises nothing but moot's own errors and counts unreadable content."""
    path = source(format, folder, spoiled(sample, at, junk))
    try:
        read = read_whole(format, path)
    except MootError:
        return
    for conversation in read:
        check_conversation(conversation, content(path))


def check_claims(formats: Sequence[Format], owner: Format, path: Path) -> None:
    """A source is claimed by its own format only."""
    claimed = [format.name for format in formats if is_claimed(format, path)]
    assert claimed == [owner.name], f"a source of {owner.name!r} is claimed by {claimed}"


def check_a_broken_line(format: Format, folder: Path, texts: Sequence[str]) -> None:
    """In a line-based format, an invalid line affects no other line, is kept, and is counted as lost."""
    made = written(format, exported(texts))
    if made is None or made[0].count(b"\n") <= len(texts) or isinstance(format, WriteOnly | TerminalReadable) or _is_no_lines(made[0]):
        return
    lines = made[0].splitlines(keepends=True)
    junk = b'{"cut off\n'
    path = source(format, folder, b"".join([*lines[:2], junk, *lines[2:]]))
    read = read_whole(format, path)
    assert sum(len(one.messages) for one in read) == len(texts), "one broken line took messages along"
    assert any(entry.raw == junk for one in read for entry in one.entries), "the broken line is gone"
    assert sum(sum(one.fidelity.lost.values()) for one in read) >= 1, "the broken line is not counted"


def _is_no_lines(data: bytes) -> bool:
    if data.startswith(PACKED):
        return True
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _count(fidelity: Fidelity, name: str) -> int:
    return sum(counts.get(name, 0) for counts in (fidelity.kept, fidelity.approximated, fidelity.lost))


def _total(fidelity: Fidelity) -> int:
    return sum(sum(counts.values()) for counts in (fidelity.kept, fidelity.approximated, fidelity.lost))


def samples(format: Any) -> list[Sample]:
    """Return all sources to read: samples and written files."""
    if isinstance(format, WriteOnly):
        return []
    made = written(format, exported(["hello", "hi there", "and?"]))
    own: list[Sample] = list(samples_of(format).values())
    return [*own, *([made[0]] if made else [])]
