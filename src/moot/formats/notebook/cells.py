"""Messages as cells: for a Python notebook, with the Python code of answers in code cells, or for moot's kernel.

Tool calls never become code cells, so that running the notebook can't run them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from moot.convert.files.attachments import typed_text
from moot.formats.kit.fidelity import fence_around, file_kind, pretty
from moot.formats.notebook.outputs import outputs_of
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Part, is_tool, tool_name

_LONGEST_ID = 64
"""Maximum length of a cell's id in notebooks."""
_WHO = {"user": "You", "assistant": "Assistant", "system": "System"}
_PYTHON = re.compile(r"^```(?:python|py|python3|ipython)[ \t]*\n(.*?)^```[ \t]*$\n?", re.MULTILINE | re.DOTALL)


def title_cell(title: str) -> JsonObject:
    """Return the first cell of a notebook, which shows the conversation's title."""
    return _markdown("title", [f"# {title or 'Conversation'}"])


def prompt_cell(message: Message, answers: Iterable[Message]) -> JsonObject:
    """Return a prompt as a cell for moot's kernel, with the answers as its outputs."""
    about: JsonObject = {"moot": {"message": message.id, "role": message.role}}
    id = re.sub(r"[^A-Za-z0-9_-]", "-", message.id)[:_LONGEST_ID]
    source = _lines(typed_text(message.parts))
    return {"cell_type": "code", "execution_count": None, "id": id, "metadata": about, "outputs": outputs_for(answers), "source": source}


def outputs_for(answers: Iterable[Message]) -> list[Json]:
    """Return answers as the outputs of a cell for moot's kernel."""
    found = (bundle for answer in answers for bundle in outputs_of(answer.parts))
    return [{"output_type": "display_data", "data": bundle, "metadata": {}} for bundle in found]


def cells_of(message: Message, number: int) -> Iterator[JsonObject]:
    """Yield the cells of a message for a Python notebook. Text between blocks of Python code becomes Markdown cells."""
    about: JsonObject = {
        "moot": {"message": message.id, "role": message.role, **({"at": message.created_at} if message.created_at else {})}
    }
    texts: list[str] = [f"### {_WHO[message.role]}"]
    pictures: dict[str, Json] = {}
    at = 0

    def name() -> str:
        nonlocal at
        at += 1
        return f"m{number}-{at}"

    for part in message.parts:
        if part.get("type") == "text" and message.role == "assistant":
            text, begin = str(part.get("text", "")), 0
            for found in _PYTHON.finditer(text):
                texts.append(text[begin : found.start()])
                if any(piece.strip() for piece in texts):
                    yield _markdown(name(), texts, pictures, about)
                source = _lines(found[1].removesuffix("\n"))
                yield {"cell_type": "code", "execution_count": None, "id": name(), "metadata": about, "outputs": [], "source": source}
                texts, pictures, begin = [], {}, found.end()
            texts.append(text[begin:])
        else:
            texts.append(_said(part, pictures))
    if any(piece.strip() for piece in texts):
        yield _markdown(name(), texts, pictures, about)


def _said(part: Part, pictures: dict[str, Json]) -> str:
    """Return a part as Markdown. Pictures are attached to the cell."""
    kind = str(part.get("type", ""))
    if is_tool(part):
        return _call(part)
    match kind:
        case "text":
            return str(part.get("text", ""))
        case "reasoning":
            return "\n".join(f"> {line}" for line in str(part.get("text", "")).splitlines())
        case "file":
            return _file(part, pictures)
        case "step-start":
            return ""
        case _:
            return f"**{kind}**\n\n{_fenced(pretty(dict(part)), 'json')}"


def _call(part: Part) -> str:
    pieces = [f"**{tool_name(part)}**", _fenced(pretty(part.get("input")), "json")]
    output = part.get("output")
    if output is not None:
        pieces.append(_fenced(output if isinstance(output, str) else pretty(output)))
    if part.get("errorText"):
        pieces.append(_fenced(str(part["errorText"])))
    return "\n\n".join(pieces)


def _file(part: Part, pictures: dict[str, Json]) -> str:
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    name = str(part.get("filename") or file_kind(part).removesuffix("s"))
    head, _, data = url.partition(",")
    if file_kind(part) == "pictures" and head.startswith("data:") and head.endswith(";base64"):
        attached = f"picture-{len(pictures) + 1}"
        pictures[attached] = {media_type: data}
        return f"![{_plain(name)}](attachment:{attached})"
    return f"*{_plain(name)}* ({media_type})" if url.startswith("data:") else f"*{_plain(name)}* <{url}>"


def _plain(name: str) -> str:
    return re.sub(r"[\[\]()*_`<>\\\n]", " ", name)


def _fenced(text: str, language: str = "") -> str:
    fence = fence_around(text)
    return f"{fence}{language}\n{text}\n{fence}"


def _markdown(id: str, texts: list[str], pictures: Mapping[str, Json] | None = None, about: JsonObject | None = None) -> JsonObject:
    cell: JsonObject = {"cell_type": "markdown", "id": id, "metadata": about or {}, "source": _lines("\n\n".join(filter(str.strip, texts)))}
    return {**cell, "attachments": dict(pictures)} if pictures else cell


def _lines(text: str) -> list[Json]:
    return list[Json](text.splitlines(keepends=True))
