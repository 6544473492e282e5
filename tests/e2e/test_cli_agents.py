from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import plugin_site
from e2e.cli_process import MootProcess, make
from moot.providers.status import QUESTION


@pytest.fixture
def moot(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    process = make(tmp_path, "agents: {reviewer: {model: small, description: reads what is there}}\n")
    yield process
    process.close()


def listed(moot: MootProcess, *more: str) -> dict[str, dict[str, object]]:
    return {item["name"]: item for item in json.loads(moot.run("agents", "list", "--json", *more).stdout)["data"]}


def program(moot: MootProcess, name: str) -> Path:
    folder = moot.home / "programs"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\nexit 3\n")
    path.chmod(0o755)
    moot.more["PATH"] = f"{folder}:/usr/bin:/bin"
    return path


def test_an_outside_agent_is_listed_once_its_program_is_there(moot: MootProcess) -> None:
    moot.more["PATH"] = "/usr/bin:/bin"
    assert {"default", "reviewer"} <= set(listed(moot)) and "codex" not in listed(moot)
    absent = listed(moot, "--all")["codex"]
    assert (absent["ready"], absent["program"]) == (False, "") and "npm install" in str(absent["install"])
    path = program(moot, "codex")
    assert listed(moot)["codex"] == {**absent, "ready": True, "program": str(path), "missing": "", "install": ""}


def test_the_configuration_overrides_known_agents(moot: MootProcess) -> None:
    (moot.home / "config.yaml").write_text("agents: {codex: {model: small, description: mine}}\n")
    assert listed(moot)["codex"]["agent_type"] == "moot"


def test_an_agent_is_added_and_can_be_named(moot: MootProcess) -> None:
    added = moot.run("agents", "add", "terse", "--model", "small", "--instructions", "Be: short.", "--json")
    assert added.returncode == 0 and json.loads(added.stdout)["instructions"] == "Be: short."
    assert listed(moot)["terse"]["model"] == "small" and "reviewer" in listed(moot)
    again = moot.run("agents", "add", "terse")
    assert again.returncode == 2 and "already" in again.stderr.decode()
    for name, words in (("a/b", "letters"), ("x --type nosuch", "nosuch")):
        wrong = moot.run("agents", "add", *name.split())
        assert wrong.returncode == 2 and words in wrong.stderr.decode() and "Traceback" not in wrong.stderr.decode()
    assert set(listed(moot)) >= {"default", "reviewer", "terse"} and "x" not in listed(moot)


def test_a_missing_agent_shows_its_install_command(moot: MootProcess) -> None:
    moot.more["PATH"] = "/usr/bin:/bin"
    tried = moot.run("agents", "test", "codex")
    assert tried.returncode == 2 and "not on the PATH" in tried.stderr.decode() and "npm install" in tried.stderr.decode()
    unknown = moot.run("agents", "test", "codx")
    assert unknown.returncode == 2 and "Did you mean 'codex'" in unknown.stderr.decode()


@pytest.mark.slow
def test_testing_an_outside_agent_stores_nothing(moot: MootProcess, tmp_path: Path) -> None:
    moot.more["PYTHONPATH"] = str(plugin_site.install(tmp_path / "site"))
    assert moot.run("agents", "add", "shouter", "--type", "pipe", "--", "tr", "a-z", "A-Z").returncode == 0
    tried = moot.run("agents", "test", "shouter", "--json")
    assert tried.returncode == 0, tried.stderr
    answered = json.loads(tried.stdout)
    assert (answered["agent"], answered["text"]) == ("shouter", QUESTION.upper())
    assert json.loads(moot.run("chat", "list", "--json").stdout)["data"] == []


def test_a_failed_test_shows_its_reason(moot: MootProcess, tmp_path: Path) -> None:
    moot.more["PYTHONPATH"] = str(plugin_site.install(tmp_path / "site"))
    assert moot.run("agents", "add", "broken", "--type", "pipe", "--", "sh", "-c", "exit 7").returncode == 0
    tried = moot.run("agents", "test", "broken")
    assert tried.returncode == 5 and "exit code 7" in tried.stderr.decode()
