"""The files and changes of a project on the page."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Route, expect

from browser.conftest import Visitor
from browser.moot_server import Served
from browser.test_conversation import field, messages, ready, say, until
from browser.visits import PHONE, inaccessible

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    (place / "src" / "deep").mkdir(parents=True)
    (place / "src" / "app.py").write_text("".join(f"number_{line} = {line}\n" for line in range(1, 201)))
    (place / "src" / "deep" / "notes.md").write_bytes(b"# Notes\r\n\r\nOne line.\r\n")
    (place / ".gitignore").write_text("*.log\n")
    (place / "debug.log").write_text("x")
    (place / "AGENTS.md").write_text("Be brief.\n")
    return place


@pytest.fixture
def shop(server: Served, root: Path) -> str:
    made = server.call("POST", "/api/projects", {"name": f"shop {root.parent.name}", "root_path": str(root)})
    return f"/projects/{made['id']}"


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def repository(root: Path) -> None:
    """Create a repository in the folder, with `src` in its first commit."""
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    git(root, "add", "src")
    git(root, "commit", "--quiet", "--message=first")


def test_files_are_found_by_keyboard_and_opened_at_a_line(visit: Visitor, axe: str, shop: str) -> None:
    tab = visit(shop)
    page = tab.page
    tree = page.get_by_role("tree", name="Files")
    expect(tree.get_by_role("treeitem")).to_have_text(["src", ".gitignore", "AGENTS.md", "debug.log, ignored by Git"])
    tree.get_by_role("treeitem", name="src").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        expect(page.locator("[role=treeitem]:focus")).to_be_visible()
        expect(tree).not_to_contain_text("Loading")
    expect(tree.get_by_role("treeitem", name="notes.md")).to_be_visible()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "a", "Enter"):  # close `deep`, go to `src`, close it, go to `AGENTS.md`
        page.keyboard.press(key)
    expect(page.get_by_text("This file is protected (AGENTS.md)")).to_be_visible()
    expect(page.get_by_role("button", name="Edit", exact=True)).to_be_disabled()

    page.get_by_role("searchbox", name="Find files").fill("app")
    page.get_by_role("link", name="src/app.py").click()
    expect(page.locator("pre .token").first).to_be_visible()
    page.get_by_label("Go to line").fill("150")
    page.keyboard.press("Enter")
    expect(page.locator("[data-marked='150']")).to_be_in_viewport()
    assert page.url.endswith("?path=src%2Fapp.py&line=150")
    assert not inaccessible(page, axe)
    tab.shot("project-files-desktop-light")
    small = visit(f"{shop}?path=src%2Fapp.py&line=40", viewport=PHONE, theme="dark")
    expect(small.page.locator("[data-marked='40']")).to_be_in_viewport()
    small.shot("project-file-phone-dark")
    small.page.get_by_role("link", name="Back to all files").click()
    expect(small.page.get_by_role("treeitem", name="src")).to_be_visible()
    assert not inaccessible(small.page, axe)
    small.shot("project-tree-phone-dark")


def test_the_rows_that_fit_the_screen_are_rendered_before_the_others(visit: Visitor, server: Served, shop: str, root: Path) -> None:
    held: list[Route] = []
    for number in range(196):
        (root / f"file-{number:03}.txt").touch()
    tab = visit()
    tab.page.add_init_script(COUNT_ROWS)
    with tab.page.expect_request(re.compile(r"/tree\?")):  # while the code of the view is loaded
        tab.page.route(re.compile(r"/assets/Project-"), lambda route: held.append(route), times=1)
        tab.page.goto(f"{server.url}{shop}")
    page = tab.page
    until(page, lambda: bool(held))
    held[0].continue_()
    expect(page.get_by_role("treeitem")).to_have_count(200)
    assert page.evaluate("window.rendered") == [60, 200]


def test_only_the_files_of_a_project_with_a_folder_are_fetched_ahead(visit: Visitor, server: Served, shop: str) -> None:
    bare = server.call("POST", "/api/projects", {"name": "bare"})["id"]
    tab = visit()
    for path, shown in ((f"/projects/{bare}", "This project has no folder"), (f"{shop}?view=changes", "Choose a changed file.")):
        expect(tab.go(path).get_by_text(shown)).to_be_visible()  # the list of projects may not be fetched yet
        tab.go("/settings/projects").locator("main li").first.wait_for()
        tab.page.evaluate("path => { history.pushState(null, '', path) }", path)  # the list is fetched
        expect(tab.page.get_by_text(shown)).to_be_visible()
    assert not [url for url in tab.requests if "/tree?" in url]


COUNT_ROWS = """{
    window.rendered = []
    new MutationObserver(() => {
        const count = document.querySelectorAll('[role=treeitem]').length
        if (count && count !== window.rendered.at(-1)) window.rendered.push(count)
    }).observe(document, { childList: true, subtree: true })
}"""
"""Record the number of rows of the file tree after each change of it."""


def test_a_command_gets_the_file_that_was_opened_last(visit: Visitor, server: Served, shop: str, root: Path) -> None:
    command = server.moot.home / "commands/explain.md"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text("---\naliases: [why]\nrequires: [file]\n---\nsay about $FILE")
    id = server.say("say hello to the open file", directory=str(root))
    page = visit(f"{shop}?path=src%2Fapp.py").page
    expect(page.get_by_text("number_1 = 1").first).to_be_visible()
    held: list[Route] = []
    page.route(re.compile(r"/api/conversations/[^/]+$"), lambda route: held.append(route), times=1)
    page.get_by_role("link", name="say hello to the open file").click()
    until(page, lambda: bool(held))
    ran: list[str] = []
    page.on("request", lambda request: ran.append(request.url) if "/api/commands/" in request.url else None)
    say(page, "/why")  # the project is known only after the conversation is loaded
    field(page).press("Enter")  # again, because nothing has happened
    expect(field(page)).to_have_value("/why")
    assert not ran
    held[0].continue_()
    expect(field(page)).to_have_value("")
    ready(page)
    expect(messages(page)).to_contain_text("say about src/app.py")
    assert [one["role"] for one in server.call("GET", f"/api/conversations/{id}/messages")["data"]] == ["user", "assistant"] * 2
    assert len(ran) == 1


def test_findings_of_a_review_are_links_that_open_the_file_at_the_line(
    visit: Visitor, server: Served, axe: str, shop: str, root: Path
) -> None:
    repository(root)
    finding = "src/app.py:150 The number is wrong."
    done = server.call("POST", "/api/commands/review", {"argument": f"HEAD\nsay {finding}", "directory": str(root)})
    tab = visit(f"/c/{done['replies'][0]['conversation']}")
    page = tab.page
    ready(page)
    found = page.get_by_role("region", name="Findings")
    expect(found.get_by_role("listitem")).to_contain_text("The number is wrong.")
    assert not inaccessible(page, axe)
    tab.shot("review-findings")
    found.get_by_role("link", name="src/app.py:150").click()
    expect(page.locator("[data-marked='150']")).to_be_in_viewport()


def test_a_large_folder_shows_its_first_entries_and_more_on_request(visit: Visitor, axe: str, shop: str, root: Path) -> None:
    for number in range(300):
        (root / f"file-{number:03}.txt").write_text("")
    page = visit(shop).page
    items = page.get_by_role("treeitem")
    expect(items).to_have_count(201)
    items.first.focus()
    page.keyboard.press("End")
    expect(page.locator("[role=treeitem]:focus")).to_have_text("104 more entries")
    assert not inaccessible(page, axe)
    page.keyboard.press("Enter")
    expect(items).to_have_count(304)
    expect(page.locator("[role=treeitem]:focus")).to_have_text("file-195.txt")


def test_a_file_changed_by_another_program_is_not_overwritten_unasked(visit: Visitor, axe: str, shop: str, root: Path) -> None:
    file = root / "src" / "deep" / "notes.md"
    tab = visit(f"{shop}?path=src%2Fdeep%2Fnotes.md", allowed=("412",))
    page = tab.page
    page.get_by_role("button", name="Edit", exact=True).click()
    field = page.get_by_role("textbox", name="Content of src/deep/notes.md")
    field.fill("# Notes\n\nTwo lines.\nHere.\n")
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved src/deep/notes.md")).to_be_visible()
    assert file.read_bytes() == b"# Notes\r\n\r\nTwo lines.\r\nHere.\r\n"

    page.get_by_role("button", name="Edit", exact=True).click()
    field.fill("mine\n")
    file.write_text("theirs\n")
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="The file has changed")
    expect(dialog).to_be_visible()
    assert not inaccessible(page, axe)
    tab.shot("project-conflict-desktop-light")
    dialog.get_by_role("button", name="Keep editing").click()
    expect(field).to_have_value("mine\n")
    page.get_by_role("button", name="Save").click()
    dialog.get_by_role("button", name="Reload file").click()
    expect(page.get_by_role("region", name="Content").get_by_text("theirs")).to_be_visible()

    page.get_by_role("button", name="Edit", exact=True).click()
    field.fill("mine\n")
    file.write_text("theirs again\n")
    page.get_by_role("button", name="Save").click()
    dialog.get_by_role("button", name="Overwrite file").click()
    expect(field).to_have_count(0)
    assert file.read_text() == "mine\n"

    page.get_by_role("button", name="New file").click()
    page.get_by_role("dialog", name="New file").get_by_label("Path").fill("docs/new.md")
    page.get_by_role("button", name="Create file").click()
    expect(page.get_by_role("treeitem", name="new.md")).to_be_visible()


def test_changes_are_staged_and_committed(visit: Visitor, axe: str, shop: str, root: Path) -> None:
    repository(root)
    (root / "src" / "app.py").write_text("number_1 = 7\n")
    tab = visit(shop)
    page = tab.page
    page.get_by_role("link", name="Changes (3)").click()
    page.get_by_role("region", name="Not staged").get_by_role("link", name="modified app.py").click()
    expect(page.get_by_text("number_1 = 7")).to_be_visible()
    tab.shot("project-changes-desktop-light")
    page.get_by_role("button", name="Stage: src/app.py").click()
    expect(page.get_by_role("region", name="Staged", exact=True)).to_contain_text("app.py")
    page.get_by_role("link", name="new AGENTS.md").click()
    expect(page.get_by_text("Be brief.")).to_be_visible()
    assert not inaccessible(page, axe)
    page.get_by_label("Commit message").fill("fix: change a number")
    page.get_by_role("button", name="Commit 1 file").click()
    expect(page.get_by_text("Committed as")).to_be_visible()
    assert git(root, "log", "-1", "--format=%s", "--name-only").split() == ["fix:", "change", "a", "number", "src/app.py"]
    expect(page.get_by_role("link", name="Changes (2)")).to_be_visible()
    small = visit(f"{shop}?view=changes", viewport=PHONE, theme="dark")
    expect(small.page.get_by_role("region", name="New files")).to_be_visible()
    assert not inaccessible(small.page, axe)
    small.shot("project-changes-phone-dark")


def test_tool_calls_and_answers_link_to_the_files_of_the_project(visit: Visitor, server: Served, shop: str, root: Path) -> None:
    project = shop.rpartition("/")[2]
    made = server.call("POST", "/api/conversations", {"project": project})["id"]
    call = {"path": "src/new.py", "content": "print(1)\n"}
    server.say(f"call write_file {json.dumps(call)}", conversation=made, mode="auto")
    tab = visit(f"/c/{made}")
    page = tab.page
    expect(page.get_by_role("list", name="Files changed:").get_by_role("link", name="src/new.py")).to_be_visible()
    expect(page.get_by_role("link", name="Files in project")).to_have_attribute("href", f"/projects/{quote(project)}")
    tab.shot("project-links-desktop-light")
    page.get_by_role("link", name="Open src/new.py").click()
    expect(page.get_by_role("region", name="Content")).to_contain_text("print(1)")
    assert (root / "src" / "new.py").is_file()


def test_a_worktree_is_compared_and_removed(visit: Visitor, axe: str, shop: str, root: Path) -> None:
    repository(root)
    git(root, "worktree", "add", "-q", "-b", "moot/parser", ".worktrees/parser")
    (root / ".worktrees/parser/src/app.py").write_text("number = 7\n")
    (root / ".worktrees/parser/new.txt").write_text("new")
    tab = visit(f"{shop}?view=changes")
    page = tab.page
    worktrees = page.get_by_role("region", name="Worktrees")
    worktrees.get_by_role("link", name="parser 2 changed files").click()
    expect(page.get_by_role("heading", name="src/app.py")).to_have_text("src/app.py+1 −200")
    expect(page.get_by_text("number = 7")).to_be_visible()
    expect(page.get_by_role("heading", name="New files (1)")).to_be_visible()
    assert not inaccessible(page, axe)
    tab.shot("project-worktree-desktop-light")
    worktrees.get_by_role("button", name="Remove the worktree parser").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Uncommitted changes in 2 files will be lost.")
    dialog.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("Removed the worktree parser", exact=True)).to_be_visible()
    expect(worktrees).to_have_count(0)
    assert not (root / ".worktrees/parser").exists()
