"""Images and sound on the page."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.test_conversation import field, messages, ready, say

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")


WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\x00" * 24


@pytest.fixture
def own(server: Served, tmp_path: Path) -> Iterator[Served]:
    """A server with a model that transcribes."""
    with served(tmp_path, CONFIG.replace("main: obedient@mine", "main: obedient@mine, transcription: scripted@told")) as one:
        yield one


def attach(page: Page, name: str, media_type: str, data: bytes) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files({"name": name, "mimeType": media_type, "buffer": data})
    expect(page.get_by_role("button", name=f"Remove {name}")).to_be_visible()
    expect(page.get_by_label("Uploading")).to_have_count(0)


def prompt(server: Served, page: Page) -> list[Any]:
    """Return the parts of the last user message on the server."""
    listed = server.call("GET", f"/api/conversations/{page.url.rpartition('/c/')[2]}/messages")["data"]
    return [message["parts"] for message in listed if message["role"] == "user"][-1]


def test_the_menu_of_an_attached_image_sets_its_detail(server: Served, visit: Visitor) -> None:
    page = visit().page
    attach(page, "a.png", "image/png", PNG)
    attach(page, "b.png", "image/png", PNG)
    page.get_by_role("button", name="Image detail for a.png").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitemradio", name="Automatic detail")).to_have_attribute("aria-checked", "true")
    expect(page.get_by_role("menuitemradio", name="Automatic detail")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitemradio", name="Low detail")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Image detail for a.png").click()
    expect(page.get_by_role("menuitemradio", name="Low detail")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("Escape")
    say(page, "say Small")
    expect(messages(page).get_by_text("Small", exact=True).last).to_be_visible()
    ready(page)
    assert [part.get("detail") for part in prompt(server, page) if part["type"] == "file"] == ["low", None]


def test_the_transcript_of_an_attached_recording_is_shown(own: Served, visit: Visitor) -> None:
    page = visit(at=own).page
    attach(page, "voice.wav", "audio/wav", WAV)
    say(page, "say Heard")
    ready(page)
    expect(messages(page).get_by_text("Transcript of voice.wav: Hello from **the model**.")).to_be_visible()
    expect(messages(page).get_by_role("link", name="voice.wav")).to_be_visible()


def test_dictation_adds_the_transcript_to_the_message_field(own: Served, visit: Visitor) -> None:
    tab = visit(at=own)
    tab.context.grant_permissions(["microphone"], origin=own.url)
    page = tab.page
    field(page).fill("Note:")
    page.get_by_role("button", name="Dictate").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Recording")).to_be_attached()
    expect(page.get_by_role("button", name="Stop recording")).to_be_focused()
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value("Note: Hello from **the model**.")
    expect(field(page)).to_be_focused()
    expect(page.get_by_role("button", name="Dictate")).to_be_visible()


def test_without_permission_the_error_says_what_to_do(own: Served, visit: Visitor) -> None:
    page = visit(at=own).page
    page.get_by_role("button", name="Dictate").click()
    expect(page.get_by_text("This page isn’t allowed to use the microphone.")).to_be_visible()
    expect(page.get_by_role("button", name="Dictate")).to_be_enabled()


def test_without_a_model_that_transcribes_there_is_no_microphone(visit: Visitor) -> None:
    page = visit().page
    expect(page.get_by_role("button", name="Attach files")).to_be_visible()
    expect(page.get_by_role("button", name="Dictate")).to_have_count(0)


def test_an_answer_is_read_aloud_until_the_user_stops_it(visit: Visitor) -> None:
    page = visit().page
    say(page, "say **Loud** and `clear`")
    ready(page)
    # the browser of the tests has no voices
    page.evaluate(
        "() => { window.said = []; speechSynthesis.speak = (one) => { window.said.push(one.text); window.last = one };"
        " speechSynthesis.cancel = () => window.said.push('cancel') }"
    )
    page.get_by_role("button", name="Read aloud").click()
    page.get_by_role("button", name="Stop reading").click()
    expect(page.get_by_role("button", name="Read aloud")).to_be_visible()
    assert page.evaluate("window.said") == ["cancel", "Loud and clear", "cancel"]
    page.get_by_role("button", name="Read aloud").click()
    expect(page.get_by_role("button", name="Stop reading")).to_be_visible()
    page.evaluate("window.last.onend()")
    expect(page.get_by_role("button", name="Read aloud")).to_be_visible()
