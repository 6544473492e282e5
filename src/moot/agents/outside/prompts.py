"""Prompts for agents: text, and images as `data:` URLs."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from moot.errors import MootError
from moot.types.context import RunContext
from moot.types.part import Part

_TEXT = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_LONGEST = 200_000
"""Maximum size of a text file included in the prompt, in bytes."""


@dataclass(frozen=True, slots=True)
class Told:
    """The text, and the images in order."""

    text: str
    pictures: tuple[str, ...] = ()


async def told_parts(context: RunContext, parts: tuple[Part, ...]) -> Told:
    """Convert the parts of a prompt: text files are included, files other than images are only named."""
    words: list[str] = []
    pictures: list[str] = []
    for part in parts:
        if part.get("type") == "text":
            words.append(str(part.get("text", "")))
        elif part.get("type") == "file":
            await _file(context, part, words, pictures)
    return Told("\n\n".join(word for word in words if word), tuple(pictures))


async def _file(context: RunContext, part: Part, words: list[str], pictures: list[str]) -> None:
    url, kind = str(part.get("url", "")), str(part.get("mediaType", "application/octet-stream"))
    name = str(part.get("filename") or kind)
    try:
        data = await _bytes(context, url)
    except (MootError, ValueError) as error:
        words.append(f"[the file {name} can't be read: {error}]")
        return
    if data is None:
        words.append(f"[the file {name}: {url}]")
    elif kind.startswith("image/"):
        pictures.append(f"data:{kind};base64,{base64.b64encode(data).decode()}")
    elif kind.startswith(_TEXT):
        words.append(f"[the file {name}]\n{data[:_LONGEST].decode('utf-8', 'replace')}")
    else:
        words.append(f"[the file {name}, {len(data)} bytes, not shown]")


async def _bytes(context: RunContext, url: str) -> bytes | None:
    """Return the bytes, or None if they are stored elsewhere; nothing is fetched."""
    if url.startswith("blob:"):
        return await context.ports.blobs.get(url.removeprefix("blob:"))
    if url.startswith("data:"):
        head, _, body = url.partition(",")
        return base64.b64decode(body, validate=False) if head.endswith(";base64") else body.encode()
    return None
