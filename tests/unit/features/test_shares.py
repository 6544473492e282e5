from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from moot.errors import UsageError
from moot.features.shares import RedactedConversation, kinds_of, redact_conversation, refuse_whole
from moot.formats.recording.format import RecordingFormat
from moot.guard.private_data import Finder
from moot.plugins import FORMATS
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation
from moot.types.message import Message

CONFIGURED = "zebra-crossing-9"
KEY = "sk-ant-api03-Vb2Qk9Xw3mZt7Lp0Rs5Yd8"
BLOCK = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----"
CANARIES = (
    CONFIGURED,
    KEY,
    BLOCK,
    'password = "correct horse battery"',
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzz",
    "/home/quentin/work",
    "C:\\Users\\Quentin Tarn\\x",
    "quentin.t@example.org",
    "https://me:pw12345@host.example/x",
)
LEFT = (CONFIGURED, "Vb2Qk9Xw3m", "b3BlbnNza", "horse battery", "wJalrXU", "quentin", "Quentin", "Tarn", "pw12345")
"""Distinctive parts of each canary that must not appear anywhere."""


def finder(**more: Any) -> Finder:
    return Finder(secrets=[CONFIGURED], homes=["/srv/people/quentin"], names=["quentin"], **more)


def shared(*parts: Any, title: str = "", metadata: Any = None, **more: Any) -> RedactedConversation:
    message = Message("m1", "assistant", parts, metadata or {})
    return redact_conversation(ExportedConversation(Conversation("c1", title=title), (message,)), finder(**more))


def every_form(one: RedactedConversation) -> bytes:
    """Return everything that a format could write of it, with decoded base64."""
    written = [FORMATS.make(name).write(one.exported).data for name in ("html", "ipynb", "json", "jsonl")]
    files = [str(part.get("url", "")).partition(",")[2] for message in one.exported.messages for part in message.parts]
    return b"".join([*written, *(base64.b64decode(file) for file in files), repr(one).encode()])


def picture(format: str) -> str:
    """An image with canaries in every place of its file that can have text."""
    made, output = Image.new("RGB", (9, 7), "red"), io.BytesIO()
    exif = Image.Exif()
    exif[0x010E], exif[0x013B] = f"taken at /home/quentin/{KEY}", "quentin"
    if format == "PNG":
        words = PngImagePlugin.PngInfo()
        words.add_text("Comment", KEY)
        made.save(output, format, pnginfo=words, exif=exif)
    else:
        made.save(output, format, exif=exif, comment=KEY.encode(), icc_profile=KEY.encode())
    return f"data:image/{format.lower()};base64,{base64.b64encode(output.getvalue()).decode()}"


@st.composite
def places(draw: st.DrawFn, canary: str) -> tuple[list[Any], str, dict[str, Any]]:
    """Parts, title and metadata with a canary in one of the places that can have text."""
    around = draw(st.sampled_from(["", " ", "see: ", "\n"]))
    text = f"{around}{canary} and more"
    cut = draw(st.integers(1, len(text) - 1))
    parts: list[Any] = [{"type": "text", "text": "before"}]
    title, metadata = "", dict[str, Any]()
    call: dict[str, Any] = {"type": "dynamic-tool", "toolName": "shell", "toolCallId": "c", "state": "output-available", "input": {}}
    match draw(st.integers(0, 13)):
        case 0:
            parts.append({"type": "text", "text": text})
        case 1:
            parts += [{"type": "text", "text": text[:cut]}, {"type": "step-start"}, {"type": "text", "text": text[cut:]}]
        case 2:
            parts += [{"type": "reasoning", "text": text[:cut]}, {"type": "reasoning", "text": text[cut:]}]
        case 3:
            parts.append({**call, "input": {"command": text}, "output": ""})
        case 4:
            parts.append({**call, "input": {text: [{"deep": text}]}, "output": {"rows": [text]}})
        case 5:
            parts.append({**call, "output": {"content": [{"type": "text", "text": text[:cut]}, {"type": "text", "text": text[cut:]}]}})
        case 6:
            parts.append({**call, "state": "output-error", "errorText": text, "output": [text[:cut], text[cut:], ""]})
        case 7:
            title = text
        case 8:
            metadata = {"model": text, "note": text, "steps": [{"model": text, "request": text}]}
        case 9:
            data = base64.b64encode(text.encode()).decode()
            parts.append({"type": "file", "mediaType": "text/plain", "url": f"data:text/plain;base64,{data}", "filename": text})
        case 10:
            data = base64.b64encode(b"%PDF-1.4 " + text.encode()).decode()
            parts.append({"type": "file", "mediaType": "application/pdf", "url": f"data:application/pdf;base64,{data}"})
        case 11:
            parts.append({"type": "text", "text": "x", "providerMetadata": {"mine": {"signature": text}}})
            parts.append({"type": "reasoning", "text": "x", "providerMetadata": {"mine": {"signature": text}}})
        case 12:
            parts.append({"type": "data-whatever", "data": {"x": text}})
            parts.append({"type": "steering-message", "id": "s", "parts": [{"type": "text", "text": text}]})
        case _:
            parts.append({"type": "source-url", "url": f"https://example.org/?q={text}", "title": text})
    return parts, title, metadata


@settings(max_examples=100, deadline=None)
@given(data=st.data(), canary=st.sampled_from(CANARIES))
def test_canaries_are_redacted_everywhere(data: st.DataObject, canary: str) -> None:
    parts, title, metadata = data.draw(places(canary))
    made = every_form(shared(*parts, title=title, metadata=metadata)).decode("utf-8", "replace")
    assert not [left for left in LEFT if left in made]


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP"])
def test_an_image_keeps_its_pixels_and_loses_its_metadata(format: str) -> None:
    url = picture(format)
    assert b"quentin" in base64.b64decode(url.partition(",")[2])
    one = shared({"type": "file", "mediaType": f"image/{format.lower()}", "url": url, "filename": "a"})
    data = base64.b64decode(str(one.exported.messages[0].parts[0]["url"]).partition(",")[2])
    assert not any(left.encode() in data for left in LEFT)
    with Image.open(io.BytesIO(data)) as opened:
        assert opened.size == (9, 7) and not opened.getexif()
    assert [left.kind for left in one.left_out] == ["pictures"]


def test_decompression_bombs_and_invalid_pictures_are_removed() -> None:
    for data in (b"no picture " + KEY.encode(), b"\x89PNG\r\n\x1a\n" + KEY.encode()):
        one = shared({"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{base64.b64encode(data).decode()}"})
        assert [left.kind for left in one.left_out] == ["files"]
        assert one.exported.messages[0].parts[0]["type"] == "text"


def test_removals_are_listed_by_kind_and_place_without_their_content() -> None:
    one = shared(
        {"type": "text", "text": f"{KEY} of quentin.t@example.org, twice: quentin.t@example.org"},
        {"type": "dynamic-tool", "toolName": "shell", "toolCallId": "c", "state": "output-available", "input": {"dir": "/home/quentin"}},
        title="By quentin",
    )
    told = [(left.kind, left.where, left.count) for left in one.left_out]
    assert ("secrets", "message 1 (assistant), text", 1) in told
    assert ("emails", "message 1 (assistant), text", 2) in told
    assert ("paths", "message 1 (assistant), shell", 1) in told
    assert ("names", "title", 1) in told


def test_a_shared_call_of_a_sub_agent_keeps_only_its_link() -> None:
    call = {"type": "dynamic-tool", "toolName": "shell", "state": "output-available", "input": {}, "output": ""}
    inner = {**call, "toolCallId": "b", "toolMetadata": {"vendorId": KEY, "claude-code": {"parent": "a"}}}
    parts = shared({**call, "toolCallId": "a", "toolMetadata": {"vendorId": KEY}}, inner).exported.messages[0].parts
    assert [part.get("toolMetadata") for part in parts] == [None, {"moot": {"parentToolCallId": "a"}}]


def test_only_the_kept_kinds_of_redactions_stay() -> None:
    text = {"type": "text", "text": f"/home/quentin/x quentin.t@example.org {KEY}"}
    one = shared(text, keep={"emails", "paths", "names"})
    assert one.exported.messages[0].parts[0]["text"] == "/home/quentin/x quentin.t@example.org [secret]"
    one = shared(text, keep=kinds_of("emails"))
    assert one.exported.messages[0].parts[0]["text"] == "~/x quentin.t@example.org [secret]"
    with pytest.raises(UsageError, match="secrets"):
        kinds_of("emails,secrets")


def test_ordinary_text_and_code_are_unchanged() -> None:
    text = (
        "The token limit is 8192 tokens, see git@github.com:moot/moot.git and react@18.2.0.\n"
        "const token = process.env.TOKEN; password: string; /usr/lib/python3 /etc/passwd C:\\Windows\\x\n"
        "def tokenize(secret_santa): return len(secret_santa)  # sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    )
    assert shared({"type": "text", "text": text}).exported.messages[0].parts[0]["text"] == text


def test_recordings_can_not_be_redacted() -> None:
    with pytest.raises(UsageError, match="keeps all raw data"):
        refuse_whole(RecordingFormat())
    for name in ("html", "json"):
        refuse_whole(FORMATS.make(name))
