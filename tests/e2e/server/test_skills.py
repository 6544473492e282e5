"""Skills over HTTP: listing, deciding, and installing exactly what was shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import got, sent

pytestmark = pytest.mark.anyio

TEXT = "---\nname: pdf\ndescription: Fill in forms.\nmetadata: {category: office, tags: 'forms, print'}\n---\nDo it.\n"


async def test_a_skill_is_installed_filtered_enabled_and_deleted(server: LiveServer, tmp_path: Path) -> None:
    client, folder = server.client, tmp_path / "pdf"
    folder.mkdir()
    (folder / "SKILL.md").write_text(TEXT)
    (shown,) = (await sent(client, "POST", "/api/skills/preview", {"source": str(folder)}, 200))["data"]
    assert (shown["name"], shown["body"], shown["files"]) == ("pdf", "Do it.", ["SKILL.md"])
    wanted = {"source": str(folder), "name": "pdf", "digest": shown["digest"]}
    (folder / "SKILL.md").write_text(f"{TEXT}And more.\n")
    await sent(client, "POST", "/api/skills", wanted, 409)
    (folder / "SKILL.md").write_text(TEXT)
    assert (await sent(client, "POST", "/api/skills", wanted, 201))["status"] == "offered"
    for query, count in (("", 1), ("?q=FORMS", 1), ("?category=Office&tag=print", 1), ("?tag=other", 0), ("?q=none", 0)):
        assert len((await got(client, f"/api/skills{query}"))["data"]) == count
    changed = await sent(client, "PATCH", "/api/skills/pdf", {"use": "enabled", "priority": 3, "scripts": "never"}, 200)
    assert (changed["status"], changed["priority"], changed["scripts"]) == ("enabled", 3, "never")
    home = server.engine.settings.home
    (home / "skills/pdf/more.md").write_text("x\u200b")
    one = await got(client, "/api/skills/pdf")
    assert one["status"] == "changed" and one["findings"][0]["hides"] is True
    await sent(client, "PATCH", "/api/skills/pdf", {"use": "enabled"}, 403)
    await sent(client, "POST", "/api/skills/pdf/accept", {"digest": "0" * 64}, 409)
    assert (await sent(client, "POST", "/api/skills/pdf/accept", {"digest": one["digest"]}, 200))["status"] == "enabled"
    await sent(client, "DELETE", "/api/skills/pdf", None, 200)
    assert (await got(client, "/api/skills"))["data"] == []
    await sent(client, "POST", "/api/skills/preview", {"source": "relative"}, 400)


async def test_a_skill_is_written_and_its_text_is_changed(server: LiveServer) -> None:
    client, home = server.client, server.engine.settings.home
    fields = {"description": "Write notes.", "body": "List changes."}
    made = await sent(client, "POST", "/api/skills/new", {"name": "notes", **fields}, 201)
    assert (made["status"], made["place"], made["body"]) == ("offered", "home", "List changes.")
    path = home / "skills/notes/SKILL.md"
    assert path.read_text() == "---\nname: notes\ndescription: Write notes.\n---\n\nList changes.\n"
    for body, field in (
        ({"name": "No", **fields}, "name"),
        ({"name": "notes", **fields}, "name"),
        ({**fields, "name": "a", "description": " "}, "description"),
        ({**fields, "name": "a", "body": ""}, "body"),
    ):
        refused = await sent(client, "POST", "/api/skills/new", body, 422)
        assert [error["at"] for error in refused["errors"]] == [f"body.{field}"]
    await sent(client, "PATCH", "/api/skills/notes", {"use": "enabled"}, 200)
    path.write_text(path.read_text().replace("---\n\n", "license: MIT\n---\n\n"))
    await sent(client, "PUT", "/api/skills/notes/text", {**fields, "digest": made["digest"]}, 409)
    shown = await got(client, "/api/skills/notes")
    assert shown["status"] == "changed"
    changed = await sent(client, "PUT", "/api/skills/notes/text", {**fields, "body": "Be brief.", "digest": shown["digest"]}, 200)
    assert (changed["status"], changed["license"], changed["body"]) == ("changed", "MIT", "Be brief.")
    await sent(client, "POST", "/api/skills/notes/accept", {"digest": changed["digest"]}, 200)
    again = await sent(client, "PUT", "/api/skills/notes/text", {**fields, "digest": changed["digest"]}, 200)
    assert (again["status"], again["body"]) == ("enabled", "List changes.")


async def test_only_an_administrator_of_the_machine_decides_about_skills(server: LiveServer) -> None:
    async with server.caller(scopes=["tools"]) as caller:
        for method, path in (("GET", ""), ("GET", "/a"), ("PATCH", "/a"), ("POST", ""), ("POST", "/preview"), ("DELETE", "/a")):
            assert (await caller.request(method, f"/api/skills{path}", json={})).status == 403, f"{method} {path}"


async def test_skills_of_configured_indexes_are_listed_and_installed(server: LiveServer, repository: Path) -> None:
    client, index = server.client, str(repository / "examples/index/index.json")
    assert (await got(client, "/api/skill-indexes"))["data"] == []
    await sent(client, "PATCH", "/api/config", {"values": {"skills.indexes": [index]}}, 200)
    entries = (await got(client, "/api/skill-indexes?q=git"))["data"]
    assert [(entry["kind"], entry["name"]) for entry in entries] == [("skill", "commit-message")]
    (shown,) = (await sent(client, "POST", "/api/skills/preview", {"source": "commit-message"}, 200))["data"]
    wanted = {"source": "commit-message", "name": "commit-message", "digest": shown["digest"]}
    assert (await sent(client, "POST", "/api/skills", wanted, 201))["source"]["kind"] == "index"
    async with server.caller(scopes=["tools"]) as caller:
        assert (await caller.get("/api/skill-indexes")).status == 403
