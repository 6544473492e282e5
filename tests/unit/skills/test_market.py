"""Indexes of skills and agents: valid ones are searched, and only the content that they name by hash is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from moot.config.plugins.content import digest_of_files
from moot.errors import NotFound, Refused, UsageError
from moot.skills.installation import install, read_entry, read_source
from moot.skills.library import find_skill
from moot.skills.market import content_of, entries_of, entry_named, matching, read_index, read_indexes
from moot.skills.package import read_folder
from moot.types.canonical import Json

pytestmark = pytest.mark.anyio


async def test_the_example_index_is_current_and_its_skill_can_be_installed(repository: Path, tmp_path: Path) -> None:
    folder = repository / "examples" / "index"
    entries = await read_index(str(folder / "index.json"))
    assert [entry.name for entry in matching(entries, "GIT writing")] == ["commit-message"]
    for entry in entries:
        if entry.kind == "agent":
            assert await content_of(entry) == (folder / entry.location).read_bytes()
            continue
        candidate = await read_entry(entry.name, [entry.index])
        assert candidate.digest == digest_of_files(read_folder(folder / "skills" / entry.name))
        install(tmp_path, candidate)
        assert find_skill(tmp_path, entry.name).decision.source["sha256"] == entry.sha256
    with pytest.raises(NotFound, match="Did you mean"):
        entry_named(entries, "skill", "commit-messag")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"version": 2}, "version"),
        ({"skills": {}}, "skills"),
        ({"skills": [1]}, r"skills\[0\]"),
        ({"skills": [{"name": "a", "description": "d", "sha256": "0" * 64}]}, r"skills\[0\].archive"),
        ({"agents": [{"name": "a", "description": "d", "file": "a.md", "sha256": "x"}]}, r"agents\[0\].sha256"),
    ],
)
def test_mistakes_in_an_index_are_named_with_their_place(change: dict[str, Json], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        entries_of({"version": 1, **change}, "here")


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "http://127.0.0.1:9/x.zip"])
async def test_an_index_can_not_name_other_files_or_private_addresses(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "index").mkdir()
    skill = {"name": "a", "description": "d", "archive": location, "sha256": "0" * 64}
    (tmp_path / "index/index.json").write_text(json.dumps({"version": 1, "skills": [skill]}))
    (entry,) = await read_index(str(tmp_path / "index/index.json"))
    with pytest.raises(Refused):
        await content_of(entry)


async def test_content_that_differs_from_the_index_is_refused(repository: Path, tmp_path: Path) -> None:
    folder = repository / "examples" / "index"
    served: dict[str, bytes] = {name: (folder / name).read_bytes() for name in ("index.json", "commit-message.zip")}

    async def answer(request: web.Request) -> web.Response:
        data = served.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)

    app = web.Application()
    app.router.add_get("/{name}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address: Any = runner.addresses[0]
        url = f"http://127.0.0.1:{address[1]}/index.json"
        (found,) = await read_source("commit-message", tmp_path, indexes=[url])
        assert found.source == {"kind": "index", "url": url, "sha256": found.source["sha256"]}
        served["commit-message.zip"] += b"x"
        with pytest.raises(Refused, match="but the index expects"):
            await read_source("commit-message", tmp_path, indexes=[url])
        with pytest.raises(Refused, match="responded with status 404"):
            await read_indexes([url.replace("index.json", "gone.json")])
        served["index.json"] = b"{"
        with pytest.raises(Refused, match="is not valid"):
            await read_indexes([url])
    finally:
        await runner.cleanup()
    with pytest.raises(UsageError, match="No index is configured"):
        await read_indexes([])
