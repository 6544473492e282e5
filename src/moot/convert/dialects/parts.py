"""Stored tool calls and files, in the form in which every dialect sends them back: ids, arguments, outputs, placeholder text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from moot.convert.history import Step
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import BY_CLIENT, Message, Part
from moot.types.model import Model

Kind = Literal["image", "pdf", "audio", "text", "other"]

_TEXTS = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"})


class File(NamedTuple):
    kind: Kind
    media_type: str
    url: str
    name: str
    base64: str
    """The data of a `data:` URL in base64; empty for a URL that the vendor fetches itself."""


def parse_file(part: Part) -> File:
    """Parse a file part. Nothing is fetched."""
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    data = ""
    if url.startswith("data:"):
        head, _, body = url[5:].partition(",")
        media_type = media_type or head.partition(";")[0]
        data = body if head.endswith(";base64") else base64.b64encode(unquote_to_bytes(body)).decode()
    return File(_kind(media_type), media_type or "application/octet-stream", url, str(part.get("filename") or ""), data)


def is_accepted(file: File, model: Model) -> bool:
    """Return True if the file can be sent to the model. Text files can always be sent, as text."""
    return file.kind == "text" or file.kind in model.modalities


def text_of_file(file: File) -> str:
    """Return the content of a text file. For any other file, return a note saying that the file was omitted."""
    if file.kind == "text" and file.base64:
        try:
            text = base64.b64decode(file.base64).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return f"[the file {file.name or file.media_type} can't be read]"
        return f"{file.name}:\n{text}" if file.name else text
    where = "" if file.url.startswith("data:") else f" at {file.url}"
    return f"[{file.name or 'a file'} ({file.media_type}){where}: not shown, this model does not take it]"


def _kind(media_type: str) -> Kind:
    kind = media_type.partition(";")[0].strip().lower()
    if kind.startswith("image/"):
        return "image"
    if kind == "application/pdf":
        return "pdf"
    if kind.startswith("audio/"):
        return "audio"
    return "text" if kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml")) else "other"


_OURS = re.compile(r"#\d+(\.\d+)+$")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"

UNKNOWN = "The outcome of this call is unknown: it was interrupted and may or may not have taken effect."
UNANSWERED = "This call was not carried out: no one approved it."


class Output(NamedTuple):
    """The output of a call, as it is sent to a model."""

    text: str
    files: tuple[Part, ...] = ()
    error: bool = False


def output_of(part: Part) -> Output:
    """Return the call's output. If the call has none, return a text that says so, because every call must be sent with an output."""
    approval = answer if isinstance(answer := part.get("approval"), dict) else dict[str, Json]()
    match part.get("state"):
        case "output-available":
            text, files = _content(part.get("output"))
            return Output(f"[interrupted; the output so far]\n{text}" if part.get("preliminary") else text, files)
        case "output-error":
            return Output(str(part.get("errorText") or "failed"), error=True)
        case "output-denied" | "approval-responded" if part["state"] == "output-denied" or approval.get("approved") is False:
            reason = approval.get("reason")
            said = f": {reason}" if isinstance(reason, str) and reason else "."
            return Output(f"The user denied this call{said}", error=True)
        case "approval-requested":
            return Output(UNANSWERED, error=True)
        case _:
            return Output(UNKNOWN, error=True)


def arguments_of(part: Part) -> JsonObject:
    """Return the call's arguments as an object. Invalid JSON is wrapped in an object, so that the model can see what it wrote."""
    value = part.get("input", part.get("rawInput"))
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    return {"unreadable": value[:2000] if isinstance(value, str) else value}


def wire_ids(calls: Sequence[Part], fits: str = "", taken: set[str] | None = None) -> list[str]:
    """Return the ids with which the calls of a step are sent. A vendor's id is used if it matches the pattern `fits` and is unique.

    Ids are unique within the step, or within the whole request if the same set `taken` is passed for all steps. The set is updated.
    """
    used = set[str]() if taken is None else taken
    ids: list[str] = []
    for call in calls:
        own = str(call.get("toolCallId", ""))
        known = vendor_id(call)
        vendor = _OURS.sub("", own) if known is None else known
        id = vendor if vendor and vendor not in used else own
        count = 0
        while not id or id in used or (fits and re.fullmatch(fits, id) is None):
            # nine letters and digits, which every vendor accepts
            number = int.from_bytes(blake2b((f"{own}/{count}" if count else own).encode("utf-8", "replace"), digest_size=8).digest())
            id = "".join(_ALPHABET[number // len(_ALPHABET) ** place % len(_ALPHABET)] for place in range(9))
            count += 1
        used.add(id)
        ids.append(id)
    return ids


def is_custom(call: Part) -> bool:
    """Return True if the call's input is plain text, as in calls to OpenAI's custom tools."""
    metadata = call.get("toolMetadata")
    return isinstance(metadata, dict) and metadata.get("custom") is True and isinstance(call.get("input"), str)


def made_here(part: Part, dialect: str, message: Message, provider: str, *, field: str = "providerMetadata") -> JsonObject | None:
    """Return the dialect's metadata for a part if this provider made the part, otherwise None.

    Signatures are valid only for the provider that issued them, and many endpoints reject the signatures of others.
    """
    metadata = part.get(field)
    details = metadata.get(dialect) if isinstance(metadata, dict) else None
    if (metadata and details is None) or BY_CLIENT.items() <= message.metadata.items():
        return None
    made = details if isinstance(details, dict) else {}
    return made if made.get("provider", message.metadata.get("provider")) == provider else None


def ran_by(part: Part, dialect: str, message: Message, provider: str) -> bool:
    """Return True if this provider ran the call itself."""
    made = made_here(part, dialect, message, provider, field="callProviderMetadata")
    return part.get("providerExecuted") is True and made is not None and isinstance(made.get("type"), str)


def vendor_id(call: Part) -> str | None:
    """Return the vendor's id of a call, or None if the vendor sent none."""
    metadata = call.get("toolMetadata")
    id = metadata.get("vendorId") if isinstance(metadata, dict) else None
    return id if isinstance(id, str) else None


def texts_and_files(parts: Sequence[Part]) -> list[Part]:
    """Return the texts that are not empty, and the files."""
    return [part for part in parts if part.get("type") == "file" or (part.get("type") == "text" and part.get("text"))]


def text_of_step(step: Step) -> str:
    """Return the texts of a step as one text, for wire formats that allow only one per message."""
    return "\n\n".join(str(part["text"]) for part in step.parts if part.get("type") == "text" and part.get("text"))


def add_turn(turns: list[JsonObject], role: str, field: str, pieces: list[Json], is_output: Callable[[JsonObject], bool]) -> None:
    """Add pieces, outputs first, to the last message if it has this role. Otherwise append a message. Roles must alternate."""
    known = turns[-1][field] if turns and turns[-1]["role"] == role else None
    if isinstance(known, list):
        known += pieces
        known.sort(key=lambda piece: not (isinstance(piece, dict) and is_output(piece)))
    elif pieces:
        turns.append({"role": role, field: pieces})


def _content(output: Json) -> tuple[str, tuple[Part, ...]]:
    """Return the text and files of an output: a string, `{type: content, value: [text and file parts]}`, or other JSON as text."""
    if isinstance(output, str):
        return output, ()
    value = output.get("value") if isinstance(output, dict) and output.get("type") == "content" else None
    if not isinstance(value, list):
        return canonical.dumps(output).decode(), ()
    parts = [part for part in value if isinstance(part, dict)]
    text = "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return text, tuple(part for part in parts if part.get("type") == "file" and isinstance(part.get("url"), str))
