"""Converting what servers send: definitions of tools, prompts and resources, and the content of results."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import mcp_types

from moot.types.canonical import Json, JsonObject
from moot.types.command import CommandParameter
from moot.types.mcp import McpPrompt, McpQuestion, McpResource, McpTool

_TEXT = 2_000
"""Maximum length of a description, in characters."""
_BINARY = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class McpFile:
    """A picture, a recording or another file in the result of a call."""

    data: bytes
    media_type: str
    name: str


@dataclass(frozen=True, slots=True)
class McpResult:
    """The result of a call, without types of the SDK."""

    text: str
    value: Json = None
    """Structured content, or None if there is none."""
    files: tuple[McpFile, ...] = ()
    error: bool = False


def tool_of(tool: mcp_types.Tool) -> McpTool:
    hints = tool.annotations or mcp_types.ToolAnnotations()
    return McpTool(
        tool.name,
        (tool.description or "")[:_TEXT],
        cast("JsonObject", tool.input_schema),
        tool.title or hints.title or "",
        read_only=hints.read_only_hint is True,
        idempotent=hints.read_only_hint is True or hints.idempotent_hint is True,
    )


def prompt_of(prompt: mcp_types.Prompt) -> McpPrompt:
    arguments = [CommandParameter(one.name, (one.description or "")[:_TEXT], one.required is True) for one in prompt.arguments or ()]
    return McpPrompt(prompt.name, (prompt.description or prompt.title or "")[:_TEXT], tuple(arguments))


def resource_of(resource: mcp_types.Resource) -> McpResource:
    about = (resource.description or "")[:_TEXT]
    return McpResource(resource.uri, resource.title or resource.name, about, resource.mime_type or "", resource.size)


def template_of(template: mcp_types.ResourceTemplate) -> McpResource:
    about = (template.description or "")[:_TEXT]
    return McpResource(template.uri_template, template.title or template.name, about, template.mime_type or "", is_template=True)


def files_of(contents: Sequence[mcp_types.TextResourceContents | mcp_types.BlobResourceContents]) -> tuple[McpFile, ...]:
    """Return the content of a resource. Text is UTF-8. Raise ValueError if binary content is not valid base64."""
    return tuple(
        McpFile(one.text.encode("utf-8", "replace"), _text_type(one.mime_type), one.uri)
        if isinstance(one, mcp_types.TextResourceContents)
        else _binary_file(base64.b64decode(one.blob, validate=True), one.mime_type or _BINARY, one.uri)
        for one in contents
    )


def _binary_file(data: bytes, media_type: str, uri: str) -> McpFile:
    if media_type.startswith("text/"):
        try:
            data.decode()
        except UnicodeDecodeError:
            return McpFile(data, _BINARY, uri)
    return McpFile(data, media_type, uri)


def _text_type(media_type: str | None) -> str:
    """Return the media type of a text. Types such as `application/json` become `text/plain`, so that models get the text."""
    return media_type if media_type and media_type.startswith("text/") else "text/plain"


def question_of(asked: mcp_types.ElicitRequestParams) -> McpQuestion:
    if isinstance(asked, mcp_types.ElicitRequestURLParams):
        return McpQuestion(asked.message, {}, asked.url)
    return McpQuestion(asked.message, cast("JsonObject", asked.requested_schema))


def result_of(result: mcp_types.CallToolResult) -> McpResult:
    found = content_of([("", block) for block in result.content])
    return replace(found, value=cast("Json", result.structured_content), error=bool(result.is_error))


def content_of(blocks: Sequence[tuple[str, mcp_types.ContentBlock]]) -> McpResult:
    """Return content blocks as one result. Each one comes with a text to put before it. Resource links are only mentioned."""
    texts: list[str] = []
    files: list[McpFile] = []
    for number, (before, block) in enumerate(blocks, 1):
        match block:
            case mcp_types.TextContent():
                texts.append(f"{before}{block.text}")
            case mcp_types.ImageContent() | mcp_types.AudioContent():
                _add_file(files, texts, block.data, block.mime_type, f"{block.type} {number}")
            case mcp_types.EmbeddedResource():
                found = block.resource
                if isinstance(found, mcp_types.TextResourceContents):
                    texts.append(f"{found.uri}:\n{found.text}")
                else:
                    _add_file(files, texts, found.blob, found.mime_type or _BINARY, str(found.uri))
            case mcp_types.ResourceLink():
                texts.append(
                    f"[resource: {', '.join(filter(None, [block.title or block.name, block.uri, block.mime_type, block.description]))}]"
                )
    return McpResult("\n".join(texts), files=tuple(files))


def _add_file(files: list[McpFile], texts: list[str], data: str, media_type: str, name: str) -> None:
    try:
        files.append(McpFile(base64.b64decode(data, validate=True), media_type, name))
    except (binascii.Error, ValueError):
        texts.append(f"[{name} is not valid base64 and was left out]")
