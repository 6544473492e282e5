"""Prompts from the editor: texts, pictures, recordings, links to files, and contents of files that may not be saved yet."""

from __future__ import annotations

import binascii
import os
import re
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp.helpers import ContentBlock
from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from moot.convert.files.attachments import local_file, pasted_file
from moot.convert.files.media_types import SOUND_FORMATS, attached_sound
from moot.errors import UsageError
from moot.features.prompts.attachments import MAX_MEDIA, MAX_TEXT, attached, media_of
from moot.types.message import Part

_LINES = re.compile(r"L?(\d{1,9})(?:[-:]L?(\d{1,9}))?")


def read_prompt(blocks: Sequence[ContentBlock], directory: str) -> tuple[str, tuple[Part, ...]]:
    """Return the text of a prompt and its files. Links to local files become references such as `@src/app.py`.

    Raise UsageError for content that can't be sent.
    """
    words: list[str] = []
    files: list[Part] = []
    for block in blocks:
        if isinstance(block, TextContentBlock):
            words.append(block.text)
        elif isinstance(block, ImageContentBlock):
            data = _decoded(block.data, "image")
            media = media_of(data)
            if not media.startswith("image/"):
                raise UsageError("The image is not a PNG, JPEG, GIF or WebP image.")
            files.append(pasted_file(data, f"image.{media.partition('/')[2]}", media))
        elif isinstance(block, AudioContentBlock):
            data = _decoded(block.data, "recording")
            if (sound := attached_sound(data, "")) is None:
                raise UsageError(f"The recording has an unknown format. Supported formats: {SOUND_FORMATS}.")
            files.append(pasted_file(data, f"recording.{sound.ending}", sound.media_type))
        elif isinstance(block, EmbeddedResourceContentBlock):
            part, name = _embedded(block.resource, directory)
            files.append(part)
            words.append(_separated(words, name))
        else:
            words.append(_separated(words, _link(block.uri, directory)))
    return "".join(words), tuple(files)


def _decoded(data: str, what: str) -> bytes:
    if len(data) > MAX_MEDIA * 4 // 3 + 4:
        raise UsageError(f"The {what} is larger than {MAX_MEDIA >> 20} MiB.", fix="Send a smaller one.")
    try:
        return b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"The {what} is not valid base64.") from error


def _embedded(resource: TextResourceContents | BlobResourceContents, directory: str) -> tuple[Part, str]:
    path, lines = _place(resource.uri)
    name = _shown(path, directory)
    if isinstance(resource, BlobResourceContents):
        return attached(_decoded(resource.blob, "file"), path).part, name
    data = resource.text.encode("utf-8", "replace")
    if len(data) > MAX_TEXT:
        raise UsageError(f"{name!r} has more than {MAX_TEXT >> 20} MiB of text, which is too much for any model.")
    return local_file(data, path, lines=lines), f"{name}#{lines[0]}-{lines[1]}" if lines else name


def _place(uri: str) -> tuple[str, tuple[int, int] | None]:
    """Return the path in a `file:` URI, with the lines that its fragment names; any other URI is returned unchanged."""
    parsed = urlsplit(uri)
    if parsed.scheme != "file":
        return uri, None
    match = _LINES.fullmatch(parsed.fragment)
    lines = (int(match[1]), int(match[2] or match[1])) if match is not None else None
    return os.path.normpath(unquote(parsed.path)), lines


def _shown(path: str, directory: str) -> str:
    return os.path.relpath(path, directory) if Path(path).is_relative_to(directory) else path


def _link(uri: str, directory: str) -> str:
    path, lines = _place(uri)
    if path == uri or '"' in path or "\n" in path:
        return uri
    name = _shown(path, directory) + (f"#{lines[0]}-{lines[1]}" if lines else "")
    return f'@"{name}"' if any(character.isspace() or character in "'`@" for character in name) else f"@{name}"


def _separated(words: list[str], name: str) -> str:
    before = words[-1][-1:] if words else ""
    return f" {name}" if before and not before.isspace() and before not in "([{" else name
