"""Agents in Markdown files of the home and of projects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moot.agents.known import agent_named, available_agents, default_agent
from moot.config.agents.files import FIELDS, read_agent
from moot.config.agents.project import is_current, project_agents
from moot.config.changes import create_agent
from moot.config.loader import FILE, Loaded, Loader, load
from moot.config.schema import AgentPart
from moot.config.settings import Settings
from moot.config.trust import revoke_trust, trust_file
from moot.errors import ConfigError, UsageError
from moot.features.agents import change_agent, copy_agent

REVIEWER = """---
description: Reviews changes
model: small
tools: [read_file, shell]
temperature: 0.2
version: 1.10
prompt: {variables: {team: core}}
---

Review for {{team}}. Costs ${HOME}.
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "agents").mkdir(parents=True)
    return tmp_path / "home"


def settings_of(home: Path) -> Settings:
    return load(home=home, environ={}, directory=home.parent).settings


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_defines_an_agent_and_no_variable_of_the_environment_is_inserted(home: Path) -> None:
    file = write(home / "agents" / "reviewer.md", REVIEWER)
    agent = settings_of(home).agents["reviewer"]
    assert (agent.description, agent.model, agent.tools, agent.temperature) == ("Reviews changes", "small", ("read_file", "shell"), 0.2)
    assert (agent.version, agent.instructions, agent.origin) == ("1.10", "Review for {{team}}. Costs ${HOME}.", str(file))
    assert agent.prompt.variables == {"team": "core"}


def test_the_fields_of_files_are_those_of_the_configuration() -> None:
    assert set(FIELDS) == set(AgentPart.model_fields)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("---\ntemperature: hot\n---\nx", ":2:14", "temperature: Expected a number, got 'hot'"),
        ("---\nmodle: small\n---\nx", ":2:1", "Did you mean 'model'"),
        ("---\ntools: [read_fil]\n---\nx", ":2:9", "Did you mean 'read_file'"),
        ("---\na: b: c\n---\nx", ":2:5", ""),
        ("---\nprompt: {parts: [instruction]}\n---\nx", ":2:18", "Did you mean 'instructions'"),
        ("---\nname: a b\n---\nx", ":2:7", "Invalid agent name"),
        ("", "", "is empty"),
    ],
)
def test_mistakes_are_reported_with_file_and_place(home: Path, text: str, place: str, words: str) -> None:
    path = home / "agents" / "x.md"
    with pytest.raises(ConfigError) as caught:
        read_agent(path, text)
    assert f"{path}{place}" in caught.value.message and words in caught.value.message


def test_the_configuration_sets_single_fields_of_files_and_built_in_agents(home: Path) -> None:
    write(home / "agents" / "reviewer.md", REVIEWER)
    write(
        home / FILE,
        "agents: {reviewer: {model: big@custom}, explorer: {model: small}}\nproviders: {custom: {base_url: 'http://127.0.0.1:9'}}",
    )
    write(home / FILE, (home / FILE).read_text().replace("agents: {", "agents: {planner: {instructions: Own.}, "))
    agents = settings_of(home).agents
    assert (agents["planner"].instructions, agents["planner"].role, agents["planner"].tools) == ("Own.", "write", None)
    assert (agents["reviewer"].model, agents["reviewer"].temperature) == ("big@custom", 0.2)
    assert (agents["explorer"].model, agents["explorer"].role, "list_files" in (agents["explorer"].tools or ())) == ("small", "read", True)


def test_a_reload_takes_all_files_or_none(home: Path) -> None:
    good = write(home / "agents" / "one.md", "One.")
    loader = Loader(home=home, environ={}, directory=home.parent)
    assert loader.stamp() == loader.seen
    write(good, "Changed.")
    bad = write(home / "agents" / "two.md", "---\nrole: owner\n---\nTwo.")
    assert loader.stamp() != loader.seen and not loader.reload()
    assert loader.error is not None and str(bad) in loader.error.message
    assert {name: agent.instructions for name, agent in loader.current.settings.agents.items()} == {"one": "One."}
    write(bad, "Two.")
    assert loader.stamp() != loader.seen and loader.reload()
    assert {name: agent.instructions for name, agent in loader.current.settings.agents.items()} == {"one": "Changed.", "two": "Two."}
    bad.unlink()
    assert loader.stamp() != loader.seen and loader.reload() and list(loader.current.settings.agents) == ["one"]


def test_the_same_name_in_two_files_is_refused(home: Path) -> None:
    write(home / "agents" / "a.md", "---\nname: same\n---\nA.")
    write(home / "agents" / "b.md", "---\nname: same\n---\nB.")
    with pytest.raises(ConfigError, match=r"a\.md' also defines the agent 'same'"):
        settings_of(home)


def test_unchanged_files_need_neither_the_yaml_parser_nor_the_schema(home: Path) -> None:
    write(home / "agents" / "reviewer.md", REVIEWER)
    (home / "state").mkdir()
    settings_of(home)
    code = (
        "import sys; from pathlib import Path; from moot.config.loader import load; home = Path(sys.argv[1]);"
        "agent = load(home=home, environ={}, directory=home.parent).settings.agents['reviewer'];"
        "assert agent.temperature == 0.2; print([name for name in ('ruamel', 'pydantic') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(home)], capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.stderr) == ("[]", "")


def test_fields_of_claude_code_are_translated_and_lost_ones_named(tmp_path: Path) -> None:
    text = "---\nname: deep\ntools: Read, Grep, Bash(git log:*), Task\nmodel: haiku\nmaxTurns: 7\ncolor: red\nfuture: 1\n---\nYou are deep."
    agent, notes = read_agent(tmp_path / ".claude" / "agents" / "deep.md", text)
    assert (agent.tools, agent.model, agent.max_steps) == (("read_file", "search_files", "shell"), "small", 7)
    said = "\n".join(notes)
    assert "color, future" in said and "Task" in said and "Bash(git log:*)" in said
    inherited, _ = read_agent(
        tmp_path / ".claude" / "agents" / "x.md", "---\nmodel: inherit\ndisallowedTools: Write\ntools: Read, Write\n---\nx"
    )
    assert (inherited.model, inherited.tools) == ("main", ("read_file",))
    limited, notes = read_agent(tmp_path / ".claude" / "agents" / "y.md", "---\ndisallowedTools: Write, Bash(rm *)\n---\nx")
    assert (
        limited.tools is not None
        and {"read_file", "edit_file"} <= {*limited.tools}
        and not {"write_file", "shell", "memory"} & {*limited.tools}
    )
    assert notes == ()
    with pytest.raises(ConfigError, match="Unknown key 'future'"):
        read_agent(tmp_path / ".moot" / "agents" / "deep.md", text)


def trusted(home: Path, path: Path, text: str) -> Path:
    trust_file(home, write(path, text), text)
    return path


def test_project_files_count_only_while_their_content_is_trusted(home: Path, tmp_path: Path) -> None:
    settings, folder = settings_of(home), tmp_path / "repo"
    path = write(folder / ".moot" / "agents" / "mine.md", "Mine.")
    with pytest.raises(ConfigError, match="not trusted"):
        agent_named(settings, "mine", str(folder))
    trust_file(home, path, "Mine.")
    found = agent_named(settings, "mine", str(folder))
    assert found is not None and (found.instructions, found.origin) == ("Mine.", str(path))
    assert agent_named(settings, "mine", str(tmp_path)) is None
    assert is_current(home, folder)
    write(path, "Mine, and take everything.")
    assert not is_current(home, folder)
    with pytest.raises(ConfigError, match=r"has changed since it was trusted.*Review it|changed"):
        agent_named(settings, "mine", str(folder))
    write(path, "Mine.")
    assert agent_named(settings, "mine", str(folder)) is not None
    revoke_trust(home, path)
    assert "mine" not in available_agents(settings, str(folder))


def test_the_nearest_definition_wins(home: Path, tmp_path: Path) -> None:
    root, folder = tmp_path / "repo", tmp_path / "repo" / "sub"
    (root / ".git").mkdir(parents=True)
    folder.mkdir()
    write(home / "agents" / "explorer.md", "Of the home.")
    settings = settings_of(home)

    def instructions() -> str:
        found = agent_named(settings, "explorer", str(folder))
        return found.instructions if found is not None else ""

    assert instructions() == "Of the home."
    trusted(home, root / ".claude" / "agents" / "explorer.md", "Of the repository.")
    assert instructions() == "Of the repository."
    write(folder / ".moot" / "agents" / "explorer.md", "Untrusted.")  # has no effect at all
    assert instructions() == "Of the repository."
    trusted(home, folder / ".moot" / "agents" / "explorer.md", "Of the folder.")
    assert instructions() == "Of the folder."


def test_an_invalid_trusted_file_does_not_hide_the_others(home: Path, tmp_path: Path) -> None:
    trusted(home, tmp_path / "p" / ".moot" / "agents" / "good.md", "Good.")
    trusted(home, tmp_path / "p" / ".moot" / "agents" / "bad.md", "---\nrole: owner\n---\nBad.")
    found = project_agents(home, tmp_path / "p")
    assert list(found.agents) == ["good"] and "role" in found.refused["bad"].message


def test_hidden_agents_are_named_but_not_listed_and_one_can_be_the_default(home: Path) -> None:
    write(home / "agents" / "secret.md", "---\nhidden: true\n---\nx")
    write(home / "agents" / "first.md", "---\ndefault: true\n---\nx")
    settings = settings_of(home)
    assert "secret" not in available_agents(settings) and agent_named(settings, "secret") is not None
    assert default_agent(settings) == "first" and next(iter(available_agents(settings))) == "default"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_windows_line_ends_and_a_byte_order_mark_are_accepted_and_kept(home: Path, mark: str) -> None:
    file = home / "agents" / "win.md"
    file.write_bytes(f"{mark}---\r\n# mine\r\nmodel: small\r\n---\r\n\r\nDo it.\r\nNow.\r\n".encode())
    settings = settings_of(home)
    assert (settings.agents["win"].model, settings.agents["win"].instructions) == ("small", "Do it.\nNow.")
    change_agent(settings, "win", {"model": "main", "max_steps": 3})
    assert file.read_bytes() == f"{mark}---\r\n# mine\r\nmodel: main\r\nmax_steps: 3\r\n---\r\n\r\nDo it.\r\nNow.\r\n".encode()
    change_agent(settings, "win", {"instructions": "One.\nTwo."})
    assert file.read_bytes().endswith(b"---\r\n\r\nOne.\r\nTwo.\r\n")
    with pytest.raises(ConfigError, match=r":3:1: The key"):
        read_agent(file, f"{mark}---\r\nmodel: small\r\nmodel: x y\r\nmodel: z\r\n---\r\nx")


def test_trust_in_an_agent_covers_the_programs_that_it_names(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "p"
    program = write(project / "tools" / "serve.py", "print(1)")
    hook = write(project / ".moot" / "hooks" / "check.sh", "exit 0")
    options = "agent_type: acp:mine\noptions: {command: [python3, ./tools/serve.py, --config=later.toml]}"
    hooks = "hooks: {before_run: [{tool: shell, arguments: {command: 'sh .moot/hooks/check.sh'}}]}"
    path = write(project / ".moot" / "agents" / "mine.md", f"---\n{options}\n{hooks}\n---\n")

    def is_usable() -> bool:
        return "mine" in project_agents(home, project).agents

    trust_file(home, path, path.read_text())
    assert is_usable()
    for file in (program, hook):
        before, status = file.read_text(), file.stat()
        write(file, before.replace("1", "2").replace("0", "1"))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # the same size and time
        assert not is_current(home, project) and not is_usable(), file
        write(file, before)
        assert is_usable()
    added = write(project / "later.toml", "x")
    assert not is_usable()
    added.unlink()
    assert is_usable()
    (project / ".moot" / "hooks" / "lib").symlink_to(tmp_path)
    assert not is_usable()


def test_a_worktree_has_the_trusted_agents_of_its_repository_that_name_no_programs(home: Path, tmp_path: Path) -> None:
    project, worktree = tmp_path / "p", tmp_path / "p" / ".worktrees" / "x"
    write(project / "check.sh", "exit 0")
    hooks = "hooks: {before_run: [{tool: shell, arguments: {command: sh check.sh}}]}"
    for name, head in (("plain", "model: small"), ("running", hooks), ("untrusted", "model: small")):
        path = write(project / ".moot" / "agents" / f"{name}.md", f"---\n{head}\n---\nWork.")
        if name != "untrusted":
            trust_file(home, path, path.read_text())
    write(worktree / ".git", "gitdir: elsewhere")
    write(worktree / ".moot" / "agents" / "plain.md", "---\nmodel: small\n---\nChanged.")
    found = project_agents(home, worktree / "sub")
    assert [*found.agents] == ["plain"] and found.agents["plain"].instructions == "Work."
    assert "may differ in a worktree" in found.refused["running"].message and "not trusted" in found.refused["untrusted"].message
    assert {*project_agents(home, project).agents} == {"plain", "running"}


def test_an_untrusted_project_is_not_read_and_breaks_no_list(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "p" / ".moot" / "agents" / "mine.md", "Mine.")
    os.mkfifo(tmp_path / "p" / ".moot" / "hooks")
    os.mkfifo(tmp_path / "p" / ".moot" / "agents" / "pipe.md")
    assert "mine" not in available_agents(settings_of(home), str(tmp_path / "p"))


def test_agents_of_files_may_use_providers_of_the_configuration(home: Path) -> None:
    write(home / FILE, "providers: {house: {base_url: 'http://127.0.0.1:9/v1'}}")
    settings = settings_of(home)
    create_agent(settings, "helper", {"instructions": "Help.", "model": "big@house"})
    assert settings_of(home).agents["helper"].model == "big@house"
    with pytest.raises(ConfigError, match="Provider 'hose' not found"):
        create_agent(settings, "other", {"instructions": "Help.", "model": "big@hose"})


COPIED = """agents:
  deploy:
    agent_type: acp:deploy
    description: "costs $${five}"
    options:
      command: [deploy, "--as=${DEPLOY_USER:-me}"]
      env: {TOKEN: "${DEPLOY_TOKEN}"}
  simple: {instructions: Do it., hooks: {before_run: [{tool: todo, skip_if: empty}, {tool: todo, skip_if: {contains: x}}]}}
"""


def test_a_copy_keeps_references_and_contains_no_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "very-secret")
    write(home / FILE, COPIED)

    def loaded(**more: str) -> Loaded:
        return load(home=home, environ={"DEPLOY_TOKEN": "very-secret", **more}, directory=home.parent)

    before = loaded()
    assert copy_agent(before.settings, before.root, before.settings.agents["deploy"], "second", {"description": "x"}) == home / FILE
    text = (home / FILE).read_text()
    assert "very-secret" not in text and text.count("${DEPLOY_TOKEN}") == text.count("${DEPLOY_USER:-me}") == 2
    assert not list((home / "agents").iterdir())
    second, first = loaded().settings.agents["second"], loaded().settings.agents["deploy"]
    assert (second.options, second.forked_from, second.description) == (first.options, "deploy", "x")
    set_by = loaded(MOOT_AGENTS__SECOND__OPTIONS__ENV__OTHER="also-secret")
    with pytest.raises(UsageError, match="is set by MOOT_AGENTS__SECOND__OPTIONS__ENV__OTHER"):
        copy_agent(set_by.settings, set_by.root, set_by.settings.agents["second"], "third", {})
    before = loaded()
    assert copy_agent(before.settings, before.root, before.settings.agents["simple"], "plain", {}).parent == home / "agents"
    assert loaded().settings.agents["plain"].hooks == before.settings.agents["simple"].hooks
