from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import Page, expect

from browser.conftest import Visitor
from browser.moot_server import Served, served
from browser.test_conversation import until
from browser.visits import PHONE, inaccessible


def entry(page: Page, title: str) -> Page:
    return page.get_by_role("navigation", name="Conversations").get_by_role("link", name=title)  # type: ignore[return-value]


def named(server: Served, title: str, text: str = "say Hello") -> str:
    id = server.say(text)
    server.call("PATCH", f"/api/conversations/{id}", {"title": title})
    return id


def act(page: Page, title: str, what: str) -> None:
    entry(page, title).hover()  # shows the button after the list has settled
    page.get_by_role("button", name=f"Actions for {title}").click()
    page.get_by_role("menuitem", name=what).click()


def test_a_conversation_is_renamed_archived_deleted_and_restored(visit: Visitor, server: Served) -> None:
    name = f"List {uuid4().hex[:6]}"
    named(server, name)
    page = visit().page
    act(page, name, "Rename")
    page.get_by_role("textbox", name="Title", exact=True).fill(f"{name} anew")
    page.keyboard.press("Enter")
    name = f"{name} anew"
    expect(entry(page, name)).to_be_visible()

    act(page, name, "Archive")
    expect(entry(page, name)).to_have_count(0)
    page.get_by_label("Filter by status").select_option("archived")
    expect(entry(page, name)).to_be_visible()
    act(page, name, "Unarchive")
    expect(entry(page, name)).to_have_count(0)

    page.get_by_label("Filter by status").select_option("active")
    act(page, name, "Delete")
    expect(entry(page, name)).to_have_count(0)
    expect(page.get_by_text("Conversation deleted")).to_be_visible()
    page.get_by_role("status", name="Notifications").get_by_role("button", name="Undo").last.click()
    expect(entry(page, name)).to_be_visible()

    act(page, name, "Delete")
    page.get_by_label("Filter by status").select_option("deleted")
    act(page, name, "Restore")
    page.get_by_label("Filter by status").select_option("active")
    expect(entry(page, name)).to_be_visible()


def test_the_list_is_walked_and_changed_by_keys(visit: Visitor, server: Served) -> None:
    names = [f"Keys {uuid4().hex[:6]}" for _ in range(2)]
    for name in names:
        named(server, name)
    page = visit().page
    entry(page, names[1]).focus()
    page.keyboard.press("ArrowDown")
    expect(entry(page, names[0])).to_be_focused()
    page.keyboard.press("F2")
    page.keyboard.type("Renamed by keys")
    page.keyboard.press("Enter")
    expect(entry(page, "Renamed by keys")).to_be_focused()
    page.keyboard.press("Delete")
    expect(entry(page, "Renamed by keys")).to_have_count(0)


def test_a_search_finds_message_text_and_jumps_to_it(visit: Visitor, server: Served) -> None:
    word = f"quokka{uuid4().hex[:6]}"
    id = named(server, "Where animals are", f"say a {word} lives here")
    tab = visit()
    page = tab.page
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search and commands").fill(word)
    found = page.get_by_role("group", name="Messages").get_by_role("option").first
    expect(found.locator("mark").first).to_have_text(word)
    tab.shot("search-desktop-light")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/c/{id}#"))
    expect(page.locator("main").get_by_text(word).first).to_be_in_viewport()


def test_commands_and_titles_are_found_by_the_same_field(visit: Visitor, server: Served) -> None:
    name = f"Zebra {uuid4().hex[:6]}"
    id = named(server, name)
    page = visit().page
    page.keyboard.press("Control+k")
    page.keyboard.type(name)
    page.get_by_role("group", name="Conversations").get_by_role("option", name=name).wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/c/{id}$"))
    page.keyboard.press("Control+k")
    page.keyboard.type("tokens")
    page.get_by_role("option", name="Settings: tokens").click()
    expect(page.get_by_role("heading", name="Tokens")).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("zzzzqqq")
    expect(page.get_by_text("No results")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_on_a_phone_the_list_is_a_drawer_that_closes_after_a_choice(visit: Visitor, server: Served) -> None:
    name = f"Drawer {uuid4().hex[:6]}"
    id = named(server, name)
    tab = visit(viewport=PHONE)
    page = tab.page
    page.get_by_role("button", name="Conversations and settings").tap()
    drawer = page.get_by_role("dialog", name="Conversations and settings")
    drawer.get_by_role("link", name=name).wait_for()
    tab.shot("drawer-phone-light")
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    page.get_by_role("button", name="Conversations and settings").tap()
    drawer.get_by_role("link", name=name).tap()
    page.wait_for_url(re.compile(f"/c/{id}$"))
    expect(drawer).to_have_count(0)


def test_a_long_list_renders_the_visible_rows_and_loads_more_on_scroll(visit: Visitor, server: Served) -> None:
    for number in range(70):
        server.call("POST", "/api/conversations", {"title": f"Many {number}"})
    tab = visit()
    links = tab.page.get_by_role("navigation", name="Conversations").locator("a[data-id]")
    expect(links.first).to_be_visible()
    assert links.count() < 40
    links.first.hover()
    for _ in range(40):
        if tab.page.get_by_role("link", name="Many 0 ").count():
            break
        tab.page.mouse.wheel(0, 900)
        tab.page.wait_for_timeout(100)
    expect(tab.page.get_by_role("link", name="Many 0 ")).to_be_attached()
    assert links.count() < 40
    assert any("cursor=" in url for url in tab.requests)


def test_several_conversations_are_selected_archived_deleted_and_moved(visit: Visitor, tmp_path: Path, axe: str) -> None:
    with served(tmp_path) as own:  # in a long list, a moved conversation may be out of sight
        _select_several(visit, own, axe)


def _select_several(visit: Visitor, server: Served, axe: str) -> None:
    names = [f"Bulk {uuid4().hex[:6]}" for _ in range(3)]
    ids = [named(server, name) for name in names]
    project = server.call("POST", "/api/projects", {"name": f"Place {uuid4().hex[:6]}"})
    tab = visit(viewport={"width": 360, "height": 900}, theme="dark", at=server)
    page = tab.page
    page.get_by_role("button", name="Conversations and settings").press("Enter")
    bar = page.get_by_role("toolbar", name="Selected conversations")

    def select(*chosen: str) -> None:
        entry(page, chosen[0]).focus()
        page.keyboard.press("x")
        expect(page.get_by_role("checkbox", name=chosen[0])).to_be_focused()
        for name in chosen[1:]:
            page.get_by_role("checkbox", name=name).press("Space")
        expect(bar).to_contain_text(f"{len(chosen)} selected")

    select(*names[:2])
    assert inaccessible(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.shot("list-selection-phone-dark")
    bar.get_by_label("Move to project…").select_option(project["name"])
    undo = page.get_by_role("status", name="Notifications").get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    until(page, lambda: [server.call("GET", f"/api/conversations/{id}")["project"] == project["id"] for id in ids] == [True, True, False])
    select(*names)
    bar.get_by_role("button", name="Archive").press("Enter")
    expect(page.get_by_text("3 conversations archived")).to_be_visible()
    expect(entry(page, names[0])).to_have_count(0)
    undo.last.press("Enter")
    expect(entry(page, names[2])).to_be_visible()
    select(names[2])
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    select(*names[1:])
    bar.get_by_role("button", name="Delete").press("Enter")
    expect(page.get_by_text("2 conversations deleted")).to_be_visible()
    expect(entry(page, names[0])).to_be_visible()
    expect(entry(page, names[1])).to_have_count(0)
    tab.context.close()


def test_conversations_are_pinned_tagged_and_filtered_by_tag(visit: Visitor, tmp_path: Path, axe: str) -> None:
    with served(tmp_path) as own:
        for name in ("Pears", "Plums", "Apples"):
            named(own, name)
        tab = visit(at=own)
        page = tab.page
        titles = page.get_by_role("navigation", name="Conversations").locator("a[data-id]")

        act(page, "Pears", "Pin")
        expect(page.get_by_role("heading", name="Pinned")).to_be_visible()
        expect(titles).to_contain_text(["Pears", "Apples", "Plums"])
        page.get_by_role("status", name="Notifications").get_by_role("button", name="Undo").click()
        expect(page.get_by_role("heading", name="Pinned")).to_have_count(0)
        entry(page, "Pears").press("p")
        expect(titles).to_contain_text(["Pears", "Apples", "Plums"])

        act(page, "Plums", "Tags…")
        dialog = page.get_by_role("dialog", name="Tags")
        field = dialog.get_by_label("New tag")
        field.fill("two.words")
        field.press("Enter")
        expect(dialog.get_by_text("“two.words” isn’t a valid tag.")).to_be_visible()
        field.fill("Fruit, stone")
        field.press("Enter")
        expect(dialog.get_by_role("checkbox")).to_have_count(2)
        assert inaccessible(page, axe) == []
        tab.shot("list-tags")
        dialog.get_by_role("button", name="Save").click()
        expect(entry(page, "Plums")).to_contain_text("fruit")

        entry(page, "Pears").press("x")
        page.get_by_role("checkbox", name="Plums").check()
        bar = page.get_by_role("toolbar", name="Selected conversations")
        tab.shot("list-tags-bar")
        bar.get_by_role("button", name="Tags…").click()
        dialog = page.get_by_role("dialog", name="Tags for 2 conversations")
        fruit = dialog.get_by_role("checkbox", name="fruit")
        assert fruit.evaluate("box => box.indeterminate")
        fruit.check()
        dialog.get_by_role("checkbox", name="stone").click()
        dialog.get_by_role("checkbox", name="stone").uncheck()
        dialog.get_by_role("button", name="Save").click()
        expect(entry(page, "Pears")).to_contain_text("fruit")
        expect(entry(page, "Plums")).not_to_contain_text("+1")

        page.get_by_role("button", name="Filters").click()
        page.get_by_label("Tag").select_option("fruit")
        expect(titles).to_contain_text(["Pears", "Plums"])
        expect(page).to_have_url(re.compile("tag=fruit"))
        assert inaccessible(page, axe) == []
        tab.shot("list-tag-filter")
        phone = visit("/?tag=fruit", viewport=PHONE, theme="dark", at=own)
        phone.page.get_by_role("button", name="Conversations and settings").tap()
        expect(phone.page.get_by_role("heading", name="Pinned")).to_be_visible()
        phone.shot("list-tags-phone-dark")
        phone.context.close()
        tab.context.close()  # before the server stops


def test_conversations_are_dragged_to_a_project(visit: Visitor, tmp_path: Path) -> None:
    with served(tmp_path) as own:
        ids = [named(own, name) for name in ("Pears", "Plums", "Apples")]
        project = own.call("POST", "/api/projects", {"name": "Kitchen"})
        before = own.call("GET", f"/api/conversations/{ids[0]}")["project"]
        tab = visit(at=own)
        page = tab.page
        targets = page.get_by_role("group", name="Move to project…")

        def places() -> list[bool]:
            return [own.call("GET", f"/api/conversations/{id}")["project"] == project["id"] for id in ids]

        def hold(title: str) -> None:
            box = page.get_by_role("navigation", name="Conversations").get_by_text(title, exact=True)
            box.hover()
            page.mouse.down()
            page.mouse.move(100, 500, steps=5)
            expect(targets).to_be_visible()

        hold("Pears")
        targets.get_by_text("Kitchen").hover(force=True)
        tab.shot("list-drag")
        page.mouse.up()
        expect(targets).to_have_count(0)
        expect(page.get_by_text("1 conversation moved to Kitchen")).to_be_visible()
        until(page, lambda: places() == [True, False, False])
        page.get_by_role("status", name="Notifications").get_by_role("button", name="Undo").click()
        expect(page.get_by_role("heading", name="Kitchen")).to_have_count(0)
        until(page, lambda: own.call("GET", f"/api/conversations/{ids[0]}")["project"] == before)

        entry(page, "Pears").press("x")
        page.get_by_role("checkbox", name="Plums").check()
        hold("Plums")
        targets.get_by_text("Kitchen").hover(force=True)
        page.mouse.up()
        expect(page.get_by_text("2 conversations moved to Kitchen")).to_be_visible()
        expect(page.get_by_role("toolbar", name="Selected conversations")).to_have_count(0)
        assert places() == [True, True, False]

        hold("Apples")
        page.mouse.move(700, 400)
        page.mouse.up()
        expect(targets).to_have_count(0)
        assert places() == [True, True, False], "nothing is moved if it is dropped elsewhere"
        tab.context.close()  # before the server stops


def test_a_temporary_conversation_is_not_listed_and_is_deleted_or_kept(visit: Visitor, server: Served, axe: str) -> None:
    word = f"ocelot{uuid4().hex[:6]}"
    tab = visit()
    page = tab.page

    def ask(text: str) -> None:
        page.get_by_role("switch", name="Temporary").click()
        page.get_by_role("textbox", name="Message", exact=True).fill(text)
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/c/"))
        expect(page.get_by_role("button", name="Close and delete")).to_be_enabled()
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)

    ask(f"say a {word}")
    expect(page.get_by_text(f"a {word}").last).to_be_visible()
    expect(entry(page, word)).to_have_count(0)
    assert inaccessible(page, axe) == []
    tab.shot("temporary")
    id = page.url.rpartition("/")[2]
    page.get_by_role("button", name="Close and delete").click()
    expect(page.get_by_role("heading", name="What can I help with?")).to_be_visible()

    def kept() -> list[str]:
        shelves = ("", "&deleted=true")
        return [one["client_id"] for shelf in shelves for one in server.call("GET", f"/api/conversations?limit=200{shelf}")["data"]]

    until(page, lambda: id not in kept())

    ask(f"say another {word}")
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.get_by_role("button", name="Close and delete")).to_have_count(0)
    expect(entry(page, word)).to_be_visible()
