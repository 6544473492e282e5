"""The page with an archive: the home, usage, the filters of the list, and the head of an imported conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from browser.conftest import Visitor
from browser.moot_server import CONFIG, Served, served
from browser.test_conversation import until
from browser.visits import OUTAGE, PHONE, Visit, inaccessible
from host_stage import FILE, Machines, line

NOW = datetime.now(UTC)


def session(home: Path, name: str, at: datetime, model: str) -> None:
    """Write a Claude Code session in which a file is edited."""
    folder = home / "code" / "shop"
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    common = {"isSidechain": False, "userType": "external", "cwd": str(folder), "sessionId": name, "version": "2.1.330"}
    usage = {"input_tokens": 1000, "output_tokens": 500, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    edit = {"file_path": str(folder / "upload.py"), "old_string": "a\n", "new_string": "a\nb\n"}
    answers: list[tuple[list[dict[str, Any]], str]] = [
        ([{"type": "tool_use", "id": f"toolu_{name[:4]}", "name": "Edit", "input": edit}], "tool_use"),
        ([{"type": "text", "text": "The upload is fixed."}], "end_turn"),
    ]
    lines: list[dict[str, Any]] = [{"type": "user", "uuid": f"{name}-1", "parentUuid": None, "message": prompt(f"Fix upload {name[:4]}")}]
    for number, (content, reason) in enumerate(answers, 2):
        message = {"id": f"msg_{name[:4]}{number}", "type": "message", "role": "assistant", "model": model}
        message |= {"content": content, "stop_reason": reason, "usage": usage}
        lines.append({"type": "assistant", "uuid": f"{name}-{number}", "parentUuid": lines[-1]["uuid"], "message": message})
        if reason == "tool_use":
            result = [{"type": "tool_result", "tool_use_id": f"toolu_{name[:4]}", "content": "ok"}]
            lines.append({"type": "user", "uuid": f"{name}-r", "parentUuid": lines[-1]["uuid"], "message": prompt(result)})
    times = [{"timestamp": (at + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")} for second in range(len(lines))]
    place = home / ".claude" / "projects" / str(folder).replace("/", "-")
    place.mkdir(parents=True, exist_ok=True)
    texts = [json.dumps({**common, **line, **time}) for line, time in zip(lines, times, strict=True)]
    (place / f"{name}.jsonl").write_text("\n".join(texts) + "\n")


def prompt(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with two imported sessions, two calls of a program, and a conversation of its own."""
    with served(tmp_path_factory.mktemp("archive"), CONFIG + "budgets: {{monthly: {{per: month, cost: 100}}}}\n") as one:
        home = Path(one.moot.environ["HOME"])
        session(home, "aaaa1111-0000-4000-8000-000000000001", NOW - timedelta(days=10), "claude-sonnet-4-5-20250929")
        session(home, "bbbb2222-0000-4000-8000-000000000002", NOW - timedelta(minutes=5), "a-model-without-price")
        imported = one.moot.run("import", "--all")
        assert b"2 added" in imported.stdout + imported.stderr, imported
        for number in range(2):
            body = {"model": "obedient@mine", "messages": [{"role": "user", "content": f"say Batch {number}"}]}
            one.call("POST", "/v1/chat/completions", body)
        one.say("say Hello")
        yield one


def rows(page: Page) -> Any:
    return page.get_by_role("navigation", name="Conversations").locator("a[data-id]")


def test_the_list_is_filtered_and_the_address_keeps_the_filter(visit: Visitor, archive: Served, axe: str) -> None:
    page = visit(at=archive).page
    expect(rows(page)).to_have_count(3)
    page.get_by_role("button", name="Filters", exact=True).press("Enter")
    page.get_by_role("combobox", name="Agent", exact=True).select_option("claude-code")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("From", exact=True).fill((NOW - timedelta(days=3)).strftime("%Y-%m-%d"))
    expect(rows(page)).to_have_count(1)
    assert inaccessible(page, axe) == []
    rows(page).first.press("Enter")
    expect(page.get_by_role("heading", name="Fix upload bbbb")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/c/.*\?agent=claude-code&from="))
    page.reload()
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_text("claude-code · since")).to_be_visible()
    page.get_by_role("button", name="Clear filters").press("Enter")
    expect(rows(page)).to_have_count(3)
    expect(page).to_have_url(re.compile(r"/c/[^?]*$"))


def test_the_list_is_filtered_by_machine_if_there_are_others(visit: Visitor, archive: Served, tmp_path: Path) -> None:
    page = visit(at=archive).page
    page.get_by_role("button", name="Filters", exact=True).click()
    expect(page.get_by_role("combobox", name="Agent", exact=True).get_by_role("option")).to_have_count(3)
    expect(page.get_by_role("combobox", name="Machine")).to_have_count(0)
    with served(tmp_path, CONFIG + "hosts: {{laptop: {{ssh: laptop}}}}\n") as own:
        machines = Machines(tmp_path)
        machines.write("laptop", FILE, line(1, "Where is the log?") + line(2, "In the folder sessions."))
        own.moot.more["PATH"] = f"{machines.bin}:{own.moot.environ['PATH']}"
        synchronized = own.moot.run("sync")
        assert synchronized.returncode == 0, synchronized
        own.say("say Hello")
        page = visit(at=own, allowed=OUTAGE).page  # the server is stopped before the page is closed
        expect(rows(page)).to_have_count(2)
        expect(rows(page).filter(has_text="Where is the log?")).to_contain_text("from claude-code on laptop")
        page.get_by_role("button", name="Filters", exact=True).click()
        machine = page.get_by_role("combobox", name="Machine")
        expect(machine.get_by_role("option")).to_have_text(["All machines", "This machine", "laptop"])
        machine.select_option("laptop")
        expect(rows(page)).to_have_text(re.compile("Where is the log"))
        machine.select_option("This machine")
        expect(rows(page)).to_have_text(re.compile("say Hello"))
        page.reload()
        expect(page.get_by_text("Filtered by: This machine")).to_be_visible()
        expect(rows(page)).to_have_text(re.compile("say Hello"))


def test_a_filter_by_model_without_a_match_says_so(visit: Visitor, archive: Served) -> None:
    page = visit("/?model=a-model-without-price&to=2020-01-01", at=archive).page
    expect(page.get_by_text("No conversations match the filters.")).to_be_visible()
    page.get_by_role("button", name="Filters", exact=True).click()
    page.get_by_label("To", exact=True).fill("")
    expect(rows(page)).to_have_text(re.compile("Fix upload bbbb"))


def test_calls_of_programs_are_one_entry_that_unfolds(visit: Visitor, archive: Served) -> None:
    page = visit(at=archive).page
    entry = page.get_by_role("button", name="API calls")
    expect(entry).to_contain_text("2 conversations")
    expect(rows(page).filter(has_text="Batch")).to_have_count(0)
    entry.press("Enter")
    expect(rows(page).filter(has_text="Batch")).to_have_count(2)
    entry.press("Enter")
    expect(rows(page).filter(has_text="Batch")).to_have_count(0)


@pytest.mark.parametrize("viewport", [None, PHONE], ids=["desktop", "phone"])
def test_the_head_shows_the_facts_and_copies_the_resume_command(
    visit: Visitor, archive: Served, axe: str, viewport: dict[str, int] | None
) -> None:
    found = archive.call("GET", "/api/conversations?model=claude-sonnet-4-5-20250929")["data"][0]
    tab: Visit = visit(f"/c/{found['id']}", at=archive, **({"viewport": viewport} if viewport else {}))
    page = tab.page
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    head = page.locator("header", has=page.get_by_role("heading", name="Fix upload aaaa"))
    if viewport:
        head.get_by_role("button", name="Details").press("Enter")
    for fact in ("claude-sonnet-4-5-20250929", "claude-code"):
        expect(head.get_by_text(fact, exact=True).last).to_be_visible()
    expect(head.get_by_text("from claude-code")).to_be_visible()
    folder = Path(archive.moot.environ["HOME"]) / "code" / "shop"
    expect(head.get_by_text(str(folder), exact=True)).to_be_visible()
    expect(head.get_by_role("img", name=re.compile(r"cost \$0\.0210"))).to_be_visible()
    head.get_by_role("button", name=re.compile("^Resume: copy")).press("Enter")
    expect(head.get_by_text("Resume command copied")).to_be_attached()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"cd {folder} && claude --resume aaaa1111-0000-4000-8000-000000000001"
    assert inaccessible(page, axe) == []
    tab.shot(f"head-{'phone' if viewport else 'desktop'}-light")


def test_the_calendar_of_the_home_is_walked_by_keys_and_filters_the_list(visit: Visitor, archive: Served, axe: str) -> None:
    tab = visit("/?model=a-model-without-price", at=archive)
    page = tab.page
    activity = page.get_by_role("region", name="Activity")
    expect(activity.get_by_text(re.compile(r"Last year: 5 responses .* \+ \d unpriced"))).to_be_visible()
    today = activity.get_by_role("gridcell").and_(activity.locator("[tabindex='0']"))
    expect(today).to_have_count(1)
    today.focus()
    for _ in range(10):
        page.keyboard.press("ArrowUp")
    expect(activity.get_by_role("status")).to_contain_text(re.compile(r"1 response · 3K tokens · \$0\.0210"))
    assert inaccessible(page, axe) == []
    tab.shot("home-desktop-light")
    activity.get_by_role("button", name="Show conversations from this day").press("Enter")
    expect(rows(page)).to_have_text(re.compile("Fix upload aaaa"))
    activity.get_by_role("button", name="Show as a table").press("Enter")
    table = activity.get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table).to_contain_text("$0.0210")
    assert inaccessible(page, axe) == []


def test_the_home_links_to_the_message_that_edited_a_file(visit: Visitor, archive: Served) -> None:
    page = visit(at=archive, viewport=PHONE, theme="dark").page
    edits = page.get_by_role("region", name="Recently edited files")
    expect(edits.get_by_role("link")).to_have_count(2)
    edits.get_by_role("link", name=re.compile(r"^upload\.py \+1")).first.press("Enter")
    expect(page.get_by_role("heading", name="Fix upload bbbb")).to_be_visible()
    expect(page.get_by_text("The upload is fixed.")).to_be_in_viewport()


def test_the_home_shows_costs_and_the_questions_that_wait(visit: Visitor, archive: Served) -> None:
    page = visit(at=archive).page
    expect(page.get_by_role("region", name="Cost by project")).to_contain_text(re.compile(r"shop\$0\.0210 \+ 1 unpriced"))
    expect(page.get_by_role("region", name="Cost by model")).to_contain_text("claude-sonnet-4-5-20250929$0.0210")
    expect(page.get_by_role("region", name="Recent conversations").get_by_role("link")).to_have_count(3)
    waiting = archive.say('call shell {"command": "touch made"}', wait=False)
    question = page.get_by_role("region", name="A request is waiting for you")
    page.reload()
    expect(question.get_by_role("link").nth(1)).to_contain_text("shell")
    question.get_by_role("link").nth(1).press("Enter")
    page.wait_for_url(re.compile(f"/c/{waiting}"))


def test_usage_is_a_view_of_its_own_that_begins_with_the_whole_archive(visit: Visitor, archive: Served, axe: str) -> None:
    page = visit(at=archive).page
    page.get_by_role("link", name="Usage", exact=False).first.press("Enter")
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_focused()
    expect(page.get_by_role("radio", name="All time")).to_be_checked()
    expect(page.get_by_text(re.compile(r"^\$0\.0210 \+ \d unpriced$")).first).to_be_visible()
    for table, row in (("By model", "a-model-without-price"), ("By agent", "claude-code"), ("By project", "shop"), ("By tool", "Edit")):
        expect(page.get_by_role("region", name=table, exact=True)).to_contain_text(row)
    assert inaccessible(page, axe) == []
    page.get_by_role("radio", name="7 days").check(force=True)
    expect(page.get_by_role("region", name="By model")).not_to_contain_text("claude-sonnet")


PARTS = {
    "/": {
        "Activity": ("/api/stats/activity", "Last year: "),
        "Cost by project": ("/api/stats", "shop"),
        "Cost by model": ("/api/stats", "claude-sonnet"),
        "Recent conversations": ("/api/conversations", "Fix upload aaaa"),
        "Recently edited files": ("/api/edits", "upload.py"),
        "Failed runs": ("/api/runs", ""),
    },
    "/usage": {
        "Budgets": ("/api/stats/budgets", "monthly"),
        "Subscription limits": ("/api/stats/windows", "claude-code"),
        "Usage": ("/api/stats", "By model"),
    },
}
"""The parts of the overview and of usage, each with the path that it needs and a text that it shows; empty = nothing is shown."""


@pytest.mark.parametrize("path", PARTS)
def test_what_is_not_loaded_is_shown_as_loading_or_as_an_error_with_a_retry_button(visit: Visitor, archive: Served, path: str) -> None:
    page = visit(at=archive, allowed=("status of 500",)).page
    parts = {name: page.locator("section, main", has=page.get_by_role("heading", name=name, exact=True)).last for name in PARTS[path]}
    needed = {url for url, _ in PARTS[path].values()}
    held, released = list[Route](), list[bool]()
    page.route(
        lambda url: urlsplit(url).path in needed and "live=true" not in url,
        lambda route: route.continue_() if released else held.append(route),
    )
    page.goto(f"{archive.url}{path}")
    for name, part in parts.items():
        expect(part.get_by_role("status", name="Loading").last).to_be_visible()
        expect(part).not_to_contain_text(PARTS[path][name][1] or "nothing")
    released.append(True)
    for route in held:
        route.fulfill(status=500, content_type="application/problem+json", body='{"detail": "The disk is full."}')
    for part in parts.values():
        expect(part.get_by_role("alert").last).to_contain_text("The disk is full.")
    for name, part in parts.items():
        if part.get_by_role("alert").count():  # not loaded together with another part
            part.get_by_role("button", name="Retry").last.press("Enter")
        expect(part).to_contain_text(shown) if (shown := PARTS[path][name][1]) else expect(part).to_have_count(0)
    expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)


def test_an_error_of_the_open_requests_stays_until_they_are_fetched(visit: Visitor, archive: Served) -> None:
    page = visit(at=archive, allowed=("status of 500",)).page
    failing, held = [True], list[Route]()

    def answer(route: Route) -> None:
        if failing:
            route.fulfill(status=500, content_type="application/problem+json", body='{"detail": "The disk is full."}')
        else:
            held.append(route)

    page.route(re.compile(r"/api/approvals\?"), answer)
    page.reload()
    problem = page.get_by_role("region", name="Inbox").get_by_role("alert")
    expect(problem).to_contain_text("The disk is full.")
    failing.clear()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # fetches them again in the background
    until(page, lambda: bool(held))
    expect(problem).to_contain_text("The disk is full.")
    held[0].fulfill(json={"data": []})
    expect(problem).to_have_count(0)


def test_the_earlier_address_of_usage_leads_to_it(visit: Visitor, archive: Served) -> None:
    page = visit("/settings/usage", at=archive).page
    page.wait_for_url(re.compile("/usage$"))
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
