from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply
from moot.types.conversation import Project
from moot.types.ids import new_id
from moot.types.message import text_part
from moot.types.run import Prompt


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(when="", text="Done.", times=0)]) as server:
        yield server


def told(moot: MootProcess, *arguments: str) -> Any:
    ended = moot.run(*arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def project_of(moot: MootProcess) -> str:
    return told(moot, "chat", "list")["data"][0]["project"]


def test_a_conversation_belongs_to_the_project_of_its_folder(moot: MootProcess) -> None:
    moot.run("run", "before")
    assert project_of(moot) == "default"
    around = told(moot, "projects", "add", "around", "--root", str(moot.work.parent))
    moot.run("run", "in the outer one")
    assert project_of(moot) == around["id"]
    near = told(moot, "projects", "add", "near", "--root", str(moot.work))
    moot.run("run", "in the nearer one")
    assert project_of(moot) == near["id"]
    told(moot, "projects", "edit", "near", "--root", str(moot.work) + "/.")
    (moot.work.parent / "work-too").mkdir()
    told(moot, "projects", "edit", "near", "--root", str(moot.work.parent / "work-too"))
    moot.run("run", "in a folder that only begins alike")
    assert project_of(moot) == around["id"]


def test_conversations_are_listed_by_the_name_of_their_project(moot: MootProcess) -> None:
    told(moot, "projects", "add", "near")
    moot.run("run", "hello")
    assert [one["message_count"] for one in told(moot, "chat", "list", "--project", "default")["data"]] == [2]
    assert told(moot, "chat", "list", "--project", "near")["data"] == []
    unknown = moot.run("chat", "list", "--project", "nera")
    assert (unknown.returncode, b"No project has the id or name 'nera'" in unknown.stderr) == (2, True)


def test_projects_are_listed_shown_and_changed(moot: MootProcess) -> None:
    made = told(moot, "projects", "add", "thesis", "--context", "About bees.", "--rules", "Cite every claim.")
    assert told(moot, "projects", "show", "thesis") == made
    changed = told(moot, "projects", "edit", "thesis", "--name", "book", "--rules", "")
    assert made["updated_at"] == made["created_at"] < changed["updated_at"]
    assert changed == {**made, "name": "book", "rules": "", "updated_at": changed["updated_at"]}
    assert told(moot, "projects", "edit", "book", "--name", "book") == changed
    assert [item["name"] for item in told(moot, "projects", "list")["data"]] == ["default", "book"]
    assert "book" in moot.run("projects", "list").stdout.decode()


def test_conversations_of_a_removed_project_move_to_the_default_one(moot: MootProcess) -> None:
    told(moot, "projects", "add", "near", "--root", str(moot.work))
    moot.run("run", "hello")
    before = told(moot, "chat", "list")["data"]
    unasked = moot.run("projects", "remove", "near")
    assert unasked.returncode == 3 and b"Move 1 conversation to the default project" in unasked.stderr
    assert told(moot, "chat", "list")["data"] == before
    assert told(moot, "projects", "remove", "near", "--yes")["conversations"] == 1
    assert [item["name"] for item in told(moot, "projects", "list")["data"]] == ["default"]
    assert [{**item, "seq": 0} for item in told(moot, "chat", "list")["data"]] == [{**before[0], "project": "default", "seq": 0}]
    assert [item["name"] for item in told(moot, "stats")["projects"]] == ["work"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("add", "x", "--root", "/no/such/folder"), 2, "not a directory"),
        (("add", " "), 2, "name is empty"),
        (("edit", "default"), 2, "No changes were specified"),
        (("show", "nosuch"), 2, "No project has"),
        (("edit", "default", "--name", ""), 2, "name is empty"),
        (("remove", "default", "--yes"), 7, "default project can't be removed"),
        (("remove", "nosuch", "--yes"), 2, "No project has"),
    ],
)
def test_usage_errors_are_reported(moot: MootProcess, arguments: tuple[str, ...], code: int, words: str) -> None:
    ended = moot.run("projects", *arguments)
    said = ended.stderr.decode()
    assert ended.returncode == code and words in said and "Traceback" not in said


@pytest.mark.anyio
async def test_agents_receive_the_project_instructions(stage: Callable[..., Any], tmp_path: Path) -> None:
    async with stage([Reply(text="Yes.", times=0)]) as on:
        root = tmp_path / "shop"
        root.mkdir()
        shop = Project(new_id(), "shop", root_path=str(root), context="It sells lamps.", rules="Never touch prices.")
        await on.engine.store.projects.create(shop)
        for directory, said in ((root, True), (tmp_path, False)):
            run = (await on.engine.runs.submit(Prompt((text_part("hello"),), directory=str(directory)))).run
            assert (await on.engine.runs.wait(run.id)).status == "finished"
            sent = json.dumps(on.server.requests[-1].json)
            assert ("It sells lamps." in sent, "Never touch prices." in sent) == (said, said)
