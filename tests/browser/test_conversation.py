from __future__ import annotations

import re
from collections.abc import Callable
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.visits import OUTAGE, PHONE

SLOW = "scripted@told"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def say(page: Page, text: str) -> None:
    field(page).fill(text)
    field(page).press("Enter")


def messages(page: Page) -> Locator:
    return page.get_by_role("log", name="Messages")


def ready(page: Page) -> None:
    """Wait until no run is active and the page has caught up with the store."""
    expect(page.get_by_role("button", name="Stop (Esc)")).to_have_count(0, timeout=20_000)
    expect(messages(page).get_by_role("button", name="Regenerate").last).to_be_attached(timeout=10_000)


def spoken(server: Served, text: str) -> str:
    """Create a conversation whose only answer is this text, line breaks included."""
    id = server.say("say something")
    answer = server.call("GET", f"/api/conversations/{id}/messages")["data"][-1]["id"]
    server.call("PUT", f"/api/conversations/{id}/messages/{answer}", {"parts": [{"type": "text", "text": text}]})
    return id


def until(page: Page, true: Callable[[], bool]) -> None:
    """Wait for a condition that no locator can express."""
    for _ in range(600):
        if true():
            return
        page.wait_for_timeout(100)
    raise AssertionError("not so within a minute")


def stop(page: Page) -> None:
    """Stop the answer that is being written."""
    page.get_by_role("button", name="Stop (Esc)").click()
    expect(messages(page).get_by_text("Stopped")).to_be_visible()


def test_a_first_prompt_makes_a_conversation_with_an_address(visit: Visitor) -> None:
    page = visit().page
    say(page, "say Good morning to **you**")
    expect(messages(page).locator("strong").get_by_text("you")).to_be_visible(timeout=15_000)
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}$"))
    ready(page)
    page.reload()
    expect(messages(page).locator("strong").get_by_text("you")).to_be_visible()


def test_an_approved_call_shows_its_approval_on_the_card(visit: Visitor) -> None:
    page = visit().page
    say(page, 'call shell {"command": "mkdir -p made && echo it was made"}')
    card = page.get_by_role("region", name="Run a command?")
    expect(card.get_by_text("mkdir -p made && echo it was made")).to_be_visible(timeout=15_000)
    page.wait_for_timeout(500)  # keys and clicks count only after the card was visible for a moment
    card.get_by_role("button", name="Allow once").click()
    line = messages(page).get_by_role("button", name=re.compile("^Done Run mkdir"))
    expect(line).to_be_visible(timeout=15_000)
    expect(card).to_have_count(0)
    line.click()
    expect(messages(page).get_by_text("it was made", exact=True)).to_be_visible()


def test_a_key_pressed_as_the_question_appears_is_not_an_answer(visit: Visitor, server: Served) -> None:
    page = visit().page
    page.add_init_script(
        """new MutationObserver(() => {
            const button = [...document.querySelectorAll('button')].find((one) => one.textContent === 'Allow once')
            if (button && !window.pressed) { window.pressed = true; button.click() }
        }).observe(document, { childList: true, subtree: true })"""
    )
    page.reload()
    say(page, 'call shell {"command": "echo too early"}')
    expect(page.get_by_role("button", name="Allow once")).to_be_visible(timeout=15_000)
    page.wait_for_timeout(600)
    assert page.evaluate("window.pressed")
    expect(page.get_by_role("button", name="Allow once")).to_be_enabled()
    asked = server.call("GET", "/api/approvals?open=true")["data"]
    assert any(one["input"] == {"command": "echo too early"} for one in asked)
    page.get_by_role("button", name="Deny…").click()
    page.get_by_label("Reason (optional)").fill("because")
    page.get_by_role("button", name="Deny", exact=True).click()
    expect(messages(page).get_by_role("button", name=re.compile("^Denied Run echo too early"))).to_be_visible(timeout=15_000)


def test_a_call_runs_with_its_edited_arguments(visit: Visitor) -> None:
    page = visit().page
    say(page, 'call shell {"command": "echo the model wants this"}')
    page.get_by_role("button", name="Edit…").click(timeout=15_000)
    page.get_by_label("Edited arguments").fill('{"command": "echo i want that"}')
    page.get_by_role("button", name="Run once").click()
    line = messages(page).get_by_role("button", name=re.compile("^Done Run"))
    expect(line).to_be_visible(timeout=15_000)
    line.click()
    expect(messages(page).get_by_text("i want that").first).to_be_visible()


def test_questions_of_a_model_take_free_text_answers(visit: Visitor) -> None:
    page = visit().page
    say(page, 'call ask_user {"questions": [{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]}')
    form = page.get_by_role("form", name="Questions")
    expect(form.get_by_label("red")).to_be_visible(timeout=15_000)
    form.get_by_label("Other answer").fill("sea green")
    form.get_by_role("button", name="Submit", exact=True).click()
    expect(form).to_have_count(0, timeout=15_000)
    line = messages(page).get_by_role("button", name=re.compile("Ask 1 question"))
    line.click()
    expect(messages(page).get_by_text("sea green").first).to_be_visible()


def test_a_reload_during_a_stream_continues_without_duplicates(visit: Visitor, server: Served) -> None:
    id = server.say("slowly please", model=SLOW, wait=False)
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("word word word")).to_be_visible(timeout=15_000)
    page.reload()
    expect(messages(page).get_by_text("word word word")).to_be_visible(timeout=15_000)
    server.told.release()
    ready(page)
    text = messages(page).locator(".prose").last.inner_text()
    assert text.split() == ["word"] * 120
    assert page.get_by_role("button", name="Regenerate").count() == 1


def test_a_network_outage_loses_nothing(visit: Visitor, server: Served) -> None:
    id = server.say("slowly please", model=SLOW, wait=False)
    tab = visit(f"/c/{id}", allowed=OUTAGE)
    page = tab.page
    expect(messages(page).get_by_text("word word word")).to_be_visible(timeout=15_000)
    tab.context.set_offline(True)
    expect(page.get_by_text("Can’t reach the server")).to_be_visible()
    server.told.release()
    until(page, lambda: server.ended(id))
    tab.context.set_offline(False)
    ready(page)
    assert messages(page).locator(".prose").last.inner_text().split() == ["word"] * 120


def test_stopping_a_run_keeps_its_partial_answer(visit: Visitor, server: Served) -> None:
    id = server.say("without end please", model=SLOW, wait=False)
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("word word word")).to_be_visible(timeout=15_000)
    page.get_by_role("button", name="Stop (Esc)").click()
    expect(messages(page).get_by_text("Stopped")).to_be_visible(timeout=15_000)
    expect(messages(page).get_by_text("word word word")).to_be_visible()


def test_prompts_during_a_run_are_queued_and_can_be_removed(visit: Visitor, server: Served) -> None:
    id = server.say("without end please", model=SLOW, wait=False)
    page = visit(f"/c/{id}").page
    expect(page.get_by_role("button", name="Stop (Esc)")).to_be_visible(timeout=15_000)
    say(page, "say I waited")
    waiting = page.get_by_role("list", name="Queued messages")
    expect(waiting.get_by_text("say I waited")).to_be_visible(timeout=10_000)
    waiting.get_by_role("button", name="Remove from queue").click()
    expect(waiting).to_have_count(0, timeout=10_000)
    page.get_by_role("button", name="Stop (Esc)").click()
    expect(messages(page).get_by_text("Stopped")).to_be_visible()
    expect(messages(page).get_by_text("say I waited")).to_have_count(0)


def test_a_prompt_is_queued_before_the_stream_of_the_run_is_open(visit: Visitor, server: Served) -> None:
    id = server.say("without end please", model=SLOW, wait=False)
    page = visit().page
    held: list[Route] = []
    page.route(re.compile(r"/api/chat/[^/]+/stream$"), lambda route: held.append(route), times=1)
    page.goto(f"{server.url}/c/{id}")
    until(page, lambda: bool(held))
    say(page, "say I waited")
    expect(page.get_by_role("list", name="Queued messages").get_by_text("say I waited")).to_be_visible()
    held[0].continue_()
    page.get_by_role("button", name="Stop (Esc)").click()
    expect(field(page)).to_have_value("say I waited")
    expect(messages(page).get_by_text("Stopped")).to_be_visible()


def test_a_reload_with_a_queued_prompt_keeps_the_answer_live(visit: Visitor, server: Served) -> None:
    id = server.say("without end please", model=SLOW, wait=False)
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("word word word")).to_be_visible()
    say(page, "say I waited")
    waiting = page.get_by_role("list", name="Queued messages")
    expect(waiting.get_by_text("say I waited")).to_be_visible()
    page.reload()
    expect(waiting.get_by_text("say I waited")).to_be_visible()
    expect(messages(page).get_by_text("word word word")).to_be_visible()
    seen = len(messages(page).locator(".prose").last.inner_text().split())
    until(page, lambda: len(messages(page).locator(".prose").last.inner_text().split()) > seen)
    expect(messages(page).get_by_text("say I waited")).to_have_count(0)
    assert messages(page).locator(".prose").count() == 1
    field(page).press("Escape")
    expect(field(page)).to_have_value("say I waited")


def test_stop_returns_queued_and_steered_prompts_to_the_composer(visit: Visitor, server: Served) -> None:
    id = server.say("without end please", model=SLOW, wait=False)
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("word word word")).to_be_visible()
    say(page, "say I am queued")
    field(page).fill("say I am steered")
    field(page).press("Control+Enter")
    waiting = page.get_by_role("list", name="Queued messages")
    expect(waiting.get_by_role("listitem")).to_have_text([re.compile("say I am steered"), re.compile("say I am queued")])
    page.reload()
    expect(waiting.get_by_role("listitem")).to_have_text([re.compile("say I am steered"), re.compile("say I am queued")])
    field(page).fill("a draft")
    field(page).press("Escape")
    expect(field(page)).to_have_value("say I am steered\n\nsay I am queued\n\na draft")
    expect(waiting).to_have_count(0)
    expect(messages(page).get_by_text("Stopped")).to_be_visible()
    listed = server.call("GET", f"/api/conversations/{id}/messages")["data"]
    assert [part["text"] for message in listed if message["role"] == "user" for part in message["parts"]] == ["without end please"]


def test_a_steered_prompt_can_be_removed_before_it_is_read(visit: Visitor, server: Served) -> None:
    id = server.say("without end please", model=SLOW, wait=False)
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("word word word")).to_be_visible()
    field(page).fill("say I am steered")
    field(page).press("Control+Enter")
    waiting = page.get_by_role("list", name="Queued messages")
    expect(waiting.get_by_text("say I am steered")).to_be_visible()
    waiting.get_by_role("button", name="Remove from queue").click()
    expect(waiting).to_have_count(0)
    until(page, lambda: server.call("GET", f"/api/conversations/{id}/queue")["steered"] == [])
    stop(page)


def test_a_steered_prompt_moves_from_the_queue_into_the_answer(visit: Visitor, server: Served) -> None:
    gate = server.moot.work / f"gate-{uuid4().hex[:8]}"
    id = server.say(f'call shell {{"command": "until [ -e {gate.name} ]; do sleep 0.1; done"}}', mode="auto", wait=False)
    page = visit(f"/c/{id}").page
    expect(page.get_by_role("button", name="Stop (Esc)")).to_be_visible()
    field(page).fill("say I am steered")
    field(page).press("Control+Enter")
    waiting = page.get_by_role("list", name="Queued messages")
    expect(waiting.get_by_text("say I am steered")).to_be_visible()
    expect(messages(page).get_by_text("say I am steered")).to_have_count(0)
    gate.touch()
    expect(messages(page).get_by_text("say I am steered")).to_be_visible()
    expect(waiting).to_have_count(0)


def test_a_run_that_waits_for_approval_can_be_stopped(visit: Visitor, server: Served) -> None:
    id = server.say('call shell {"command": "touch never"}')
    page = visit(f"/c/{id}").page
    card = page.get_by_role("region", name="Run a command?")
    expect(card).to_be_visible()
    page.get_by_role("button", name="Stop (Esc)").click()
    expect(card).to_have_count(0)
    expect(messages(page).get_by_text("Stopped")).to_be_visible()
    expect(page.get_by_role("button", name="Stop (Esc)")).to_have_count(0)
    until(page, lambda: server.call("GET", f"/api/conversations/{id}")["status"] == "standby")


def test_an_edited_prompt_is_a_sibling_of_the_old_one(visit: Visitor, server: Served) -> None:
    id = server.say("say The first way")
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("The first way", exact=True)).to_be_visible()
    messages(page).get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edit message").fill("say The second way")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(messages(page).get_by_text("The second way", exact=True)).to_be_visible(timeout=15_000)
    ready(page)
    messages(page).get_by_role("button", name="Previous version").first.click()
    expect(messages(page).get_by_text("The first way", exact=True)).to_be_visible(timeout=10_000)
    expect(messages(page).get_by_text("The second way", exact=True)).to_have_count(0)


def test_a_regenerated_answer_is_a_sibling_of_the_old_one(visit: Visitor, server: Served) -> None:
    id = server.say("say Again and again")
    page = visit(f"/c/{id}").page
    messages(page).get_by_role("button", name="Regenerate").click()
    expect(messages(page).get_by_text("2/2")).to_be_visible(timeout=15_000)
    ready(page)
    messages(page).get_by_role("button", name="Previous version").click()
    expect(messages(page).get_by_text("1/2")).to_be_visible(timeout=10_000)


def test_a_conversation_continues_in_a_copy(visit: Visitor, server: Served) -> None:
    id = server.say("say The trunk")
    page = visit(f"/c/{id}").page
    messages(page).get_by_role("button", name="Fork from here").last.click()
    page.wait_for_url(lambda url: "/c/" in url and id not in url)
    expect(messages(page).get_by_text("The trunk", exact=True)).to_be_visible()


def test_files_are_attached_by_button_and_by_paste(visit: Visitor) -> None:
    page = visit().page
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"some notes"})
    expect(page.get_by_role("list", name="Attached files").get_by_text("notes.txt")).to_be_visible()
    field(page).focus()
    page.evaluate(
        """(bytes) => {
            const data = new DataTransfer()
            data.items.add(new File([new Uint8Array(bytes)], 'dot.png', { type: 'image/png' }))
            document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
        }""",
        list(PIXEL),
    )
    expect(page.get_by_role("list", name="Attached files").get_by_text("dot.png")).to_be_visible()
    page.get_by_role("button", name="Remove notes.txt").click()
    expect(page.get_by_role("button", name="Send (Enter)")).to_be_enabled(timeout=10_000)
    say(page, "say What a picture")
    shown = messages(page).get_by_role("list", name="Attachments").get_by_role("img", name="dot.png")
    expect(shown).to_be_visible(timeout=15_000)
    ready(page)
    page.reload()
    expect(shown).to_be_visible(timeout=15_000)
    until(page, lambda: shown.evaluate("(image) => image.naturalWidth") == 1)  # after the element, its picture is loaded


def test_the_raw_response_can_be_shown(visit: Visitor, server: Served) -> None:
    word = f"w{uuid4().hex[:8]}"
    id = server.say(f"say {word}")
    page = visit(f"/c/{id}").page
    messages(page).get_by_role("button", name="View raw events").click()
    events = page.get_by_role("dialog", name="Raw events")
    event = events.get_by_role("listitem").filter(has_text="text-delta").first
    event.locator("summary").click(timeout=10_000)
    expect(event.get_by_text("data: ").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(events).to_have_count(0)


def test_a_draft_is_still_there_after_a_reload(visit: Visitor, server: Served) -> None:
    id = server.say("say Hello")
    page = visit(f"/c/{id}").page
    field(page).fill("half a thought")
    page.wait_for_timeout(600)  # the draft is saved shortly after the last key
    page.reload()
    expect(field(page)).to_have_value("half a thought")


def test_slash_commands_are_completed_and_run(visit: Visitor, server: Served) -> None:
    id = server.say("say Hello")
    page = visit(f"/c/{id}").page
    field(page).press_sequentially("/titl")
    expect(page.get_by_role("option", name=re.compile("title"))).to_be_visible(timeout=10_000)
    page.keyboard.press("Tab")
    field(page).press_sequentially("A better name")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("A better name", timeout=10_000)
    expect(field(page)).to_have_value("")


@pytest.mark.parametrize("is_new", [True, False])
def test_files_of_the_folder_are_offered_after_an_at_sign(visit: Visitor, server: Served, is_new: bool) -> None:
    name = f"mentioned-{uuid4().hex[:8]}.txt"
    (server.moot.work / name).touch()
    page = visit("/" if is_new else f"/c/{server.say('say Hello', directory=str(server.moot.work))}").page
    field(page).press_sequentially("Read @mentioned")
    page.get_by_role("option", name=name).click()
    expect(field(page)).to_have_value(f"Read @{name} ")


@pytest.mark.parametrize("viewport", [None, PHONE])
def test_models_and_modes_are_chosen_by_keyboard(visit: Visitor, viewport: dict[str, int] | None) -> None:
    page = visit(**({"viewport": viewport} if viewport else {})).page
    mode = page.get_by_role("button", name=re.compile("^Mode:"))
    mode.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("listbox", name="Mode")).to_be_visible()
    for _ in ("Ask", "Edits", "Plan"):  # the first choice is the configured mode
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Mode: Plan")).to_be_focused()


def test_model_written_pages_are_shown_in_an_isolated_frame(visit: Visitor, server: Served) -> None:
    script = "try { parent.document.title = 'taken' } catch { title.textContent = 'Shut in' }; fetch('/api/session').catch(() => 0)"
    html = f"<h1 id=title>A page</h1><script>{script}</script>"
    id = spoken(server, f"```html\n{html}\n```\n\n```mermaid\ngraph LR\n  A[socket] --> B[store]\n```")
    tab = visit(f"/c/{id}", allowed=("SecurityError", "Blocked a frame", "Content Security Policy", "CORS policy", "ERR_FAILED"))
    page = tab.page
    page.get_by_role("button", name="Show preview").click()
    expect(page.frame_locator("iframe[title=Preview]").get_by_role("heading", name="Shut in")).to_be_visible(timeout=10_000)
    page.get_by_role("button", name="Show diagram").click()
    expect(page.frame_locator("iframe[title=Diagram]").get_by_text("socket")).to_be_visible(timeout=20_000)
    assert [frame.get_attribute("sandbox") for frame in page.locator("iframe").all()] == ["allow-scripts"] * 2


def test_formulas_are_drawn_and_prices_stay_text(visit: Visitor, server: Served) -> None:
    inline = r"The sum $a_1 + b$ and \(x^2\) cost $5 and $6."
    table = "| left | right |\n|:--|--:|\n| a | b |"
    id = spoken(server, inline + "\n\n" + r"\[\frac{1}{2}\]" + "\n\n`$c$`\n\n" + table)
    page = visit(f"/c/{id}").page
    prose = messages(page).locator(".prose").last
    expect(prose.locator(".katex")).to_have_count(3)
    expect(prose.locator(".katex-display")).to_have_count(1)
    expect(prose.get_by_text("cost $5 and $6.")).to_be_visible()
    expect(prose.locator("code")).to_have_text("$c$")
    expect(prose.get_by_role("cell", name="b")).to_have_css("text-align", "right")


def test_a_long_conversation_opens_at_once_and_loads_older_messages_on_scroll(visit: Visitor, server: Served) -> None:
    id = server.say("say Number 0")
    for number in range(1, 30):
        server.say(f"say Number {number}", conversation=id)
    server.say("call list_files {}", conversation=id)
    page = visit(f"/c/{id}").page
    expect(messages(page).get_by_text("Number 29", exact=True)).to_be_visible()
    card = messages(page).get_by_role("button", name=re.compile("list_files|List|read-only"))
    card.click()
    expect(card).to_have_attribute("aria-expanded", "true")
    assert messages(page).get_by_role("heading", level=3).count() < 60
    for _ in range(60):
        if messages(page).get_by_text("Number 0", exact=True).is_visible():
            break
        messages(page).evaluate("(box) => box.scrollBy(0, -1500)")
        page.wait_for_timeout(100)
    expect(messages(page).get_by_text("Number 0", exact=True)).to_be_visible()
    expect(card).to_have_count(0)
    page.get_by_role("button", name="Scroll to bottom").click()
    expect(card).to_have_attribute("aria-expanded", "true")


def test_a_prompt_carries_only_the_settings_that_were_chosen_here(visit: Visitor, server: Served) -> None:
    id = server.say("say Hello")
    page = visit(f"/c/{id}").page
    sent: list[dict[str, object]] = []
    page.on(
        "request", lambda asked: sent.append(asked.post_data_json) if asked.method == "POST" and asked.url.endswith("/api/chat") else None
    )
    ready(page)
    say(page, "say One")
    until(page, lambda: len(sent) == 1)
    ready(page)
    assert not {"mode", "agent", "model"} & sent[0].keys()
    assert server.call("GET", f"/api/conversations/{id}")["settings"] == {}
    page.get_by_role("button", name=re.compile("^Model: ")).click()
    page.get_by_role("listbox", name="Model").get_by_role("option", name=re.compile("scripted")).first.click()
    say(page, "say Two")
    until(page, lambda: len(sent) == 2)
    ready(page)
    assert "scripted" in str(sent[1]["model"])
    assert server.call("GET", f"/api/conversations/{id}")["settings"] == {"model": sent[1]["model"]}
    page.get_by_role("button", name=re.compile("^Model: ")).click()
    page.get_by_role("listbox", name="Model").get_by_role("option").first.click()
    until(page, lambda: server.call("GET", f"/api/conversations/{id}")["settings"] == {})
