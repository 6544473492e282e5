from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from format_samples import samples_of
from format_samples.apps import CLAI as SAMPLE
from format_samples.apps import tai_database as sample
from format_samples.talkcody import sample as talkcody_sample
from moot.config.changes import check_text
from moot.errors import UsageError
from moot.formats.kit.configuration import ConfigurationBuilder
from moot.imports.configuration import configuration_of, refuse_live, to_yaml
from moot.imports.sources import sources_at
from moot.plugins import FORMATS
from moot.types.format import ForeignConfiguration

CONFIG = """
providers:
  openai: {apiKey: sk-abcdefghijklmnopqrstuvwx123456, defaultModel: gpt-4o}
agent: {defaultProvider: openai, maxToolRounds: 12}
profiles:
  reader:
    instructions: "At ${HOME}"
    tools: [read, gmail]
    hooks:
      beforeRun:
        - {tool: exec, args: {command: "tidy {{last_run}}"}, skipIf: "^0"}
        - {tool: exec, args: {command: "rm -rf / {{last_run_epoch}}"}}
cron: {enabled: true, jobs: [{name: nightly, schedule: "0 3 * * *", prompt: tidy}]}
channels: {discord: {token: hunter2hunter2}}
permissions:
  defaultMode: auto
  tools: {exec: {mode: approve}, read: {mode: auto}, write: {mode: conditional, rules: [{match: {path: x}, action: auto}]}}
"""


def found(path: Path, data: Path) -> ForeignConfiguration:
    return configuration_of(sources_at(path, "", data))


def loaded(text: str, environ: dict[str, str] | None = None) -> Any:
    check_text(text, Path("found.yaml"), environ or {})
    return YAML(typ="safe").load(text)


@pytest.fixture
def tai(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "tai"
    home.mkdir()
    (home / "agent.db").write_bytes(sample())
    (home / "config.yaml").write_text(CONFIG)
    yield home


def test_the_file_is_a_configuration_of_moot(tai: Path, tmp_path: Path) -> None:
    text = to_yaml(found(tai, tmp_path / "data"))
    value = loaded(text, {"OPENAI_API_KEY": "x", "DISCORD_TOKEN": "x"})
    assert set(value) == {"providers", "models", "agents", "permissions", "cron", "channels"}
    assert value["cron"] == {"nightly": {"prompt": "tidy", "cron": "0 3 * * *"}}
    assert value["agents"]["reader"] == {
        "instructions": "At $${HOME}",
        "tools": ["read_file"],
        "hooks": {"before_run": [{"tool": "shell", "arguments": {"command": "tidy {{last_run}}"}, "skip_if": {"matches": "^0"}}]},
    }
    assert "last_run_epoch" in text  # as a comment
    assert value["permissions"]["rules"] == [
        {"tool": "shell", "action": "ask"},
        {"tool": "read_file", "action": "allow"},
        {"tool": "write_file", "action": "ask"},
    ]
    assert "mode" not in value["permissions"]


def test_secrets_are_left_out_everywhere(tai: Path, tmp_path: Path) -> None:
    text = to_yaml(found(tai, tmp_path / "data"))
    assert "sk-abcdef" not in text and "hunter2" not in text
    assert "api_key: ${OPENAI_API_KEY}" in text


def test_lost_settings_are_named_with_a_reason_and_kept_as_comments(tai: Path, tmp_path: Path) -> None:
    configuration = found(tai, tmp_path / "data")
    text = to_yaml(configuration)
    assert "tai: agent 'reader': no equivalent for the tools gmail" in configuration.lost
    assert all(f"# * lost: {line}" in text for line in configuration.lost)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    for word in ("rm -rf /", "conditional"):
        assert any(word in line for line in comments) and all(word not in line for line in text.splitlines() if not line.startswith("#"))


def test_a_damaged_file_is_a_note(tai: Path, tmp_path: Path) -> None:
    (tai / "config.yaml").write_text("a: &a [*a, *a]\nb: [" + "*a, " * 10)
    assert any("can't be read" in note for note in found(tai, tmp_path / "data").notes)


def test_profiles_servers_and_bans_of_clai(tmp_path: Path) -> None:
    home = tmp_path / ".clai"
    for folder in ("conversations", "profiles", "mcpServers"):
        (home / folder).mkdir(parents=True)
    for number in range(3):
        (home / "conversations" / f"{number}.json").write_text(json.dumps({**json.loads(SAMPLE), "id": str(number)}))
    (home / "textConfig.json").write_text('{"model": "ollama:qwen", "system-prompt": "Be brief.", "cmd-ban": ["git push"]}')
    (home / "profiles" / "ops.json").write_text(
        '{"name": "ops", "model": "gpt-5.2", "use_tools": true, "tools": ["rg", "mcp_x*"], "prompt": "Help."}'
    )
    (home / "mcpServers" / "files.json").write_text(
        '{"command": "npx", "args": ["-y", "files"], "env": {"API_KEY": "abc", "MODE": "fast"}}'
    )
    value = loaded(to_yaml(found(home, tmp_path / "data")))
    assert value["models"] == {"main": "qwen@ollama"} and value["agents"]["default"] == {"instructions": "Be brief."}
    assert value["agents"]["ops"] == {"model": "gpt-5.2", "instructions": "Help.", "tools": ["search_files"]}
    assert value["permissions"]["rules"] == [{"tool": "shell", "match": "git push*", "action": "deny"}]
    server = {"command": "npx", "env": {"API_KEY": "${FILES_API_KEY}", "MODE": "fast"}, "args": ["-y", "files"], "enabled": False}
    assert value["mcp"] == {"files": server}


def test_agents_and_servers_of_talkcody(tmp_path: Path) -> None:
    file = tmp_path / "talkcody.db"
    file.write_bytes(talkcody_sample())
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE agents (id, name, description, model_type, system_prompt, tools_config, source_type, is_enabled)")
        connection.execute(
            "INSERT INTO agents VALUES ('a', 'My agent', 'd', 'small_model', 'Do.', '{\"bash\":true,\"callAgent\":true}', 'local', 1)"
        )
        connection.execute("CREATE TABLE mcp_servers (id, name, url, protocol, api_key, headers, is_enabled, is_built_in)")
        connection.execute("INSERT INTO mcp_servers VALUES ('m', 'Docs', 'https://example.org/mcp', 'http', 'topsecret1', '{}', 1, 0)")
        connection.commit()
    value = loaded(to_yaml(found(file, tmp_path / "data")))
    assert value["agents"] == {"My-agent": {"description": "d", "model": "small", "instructions": "Do.", "tools": ["shell"]}}
    headers = {"Authorization": "${DOCS_AUTHORIZATION}"}
    assert value["mcp"] == {"Docs": {"url": "https://example.org/mcp", "protocol": "http", "headers": headers, "enabled": False}}


def test_dynamic_prompts_of_talkcody_select_parts_and_set_variables(tmp_path: Path) -> None:
    file = tmp_path / "talkcody.db"
    file.write_bytes(talkcody_sample())
    columns = "id, name, system_prompt, is_hidden, output_format, dynamic_enabled, dynamic_providers, dynamic_variables"
    row = ("a", "lead", "In {{env}}: {{ team }}.", 1, "mermaid", 1, '["env", "agents_md", "weather"]', '{"team": "core"}')
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE agents ({columns})")
        connection.execute("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()
    configuration = found(file, tmp_path / "data")
    assert loaded(to_yaml(configuration))["agents"]["lead"] == {
        "model": "main",
        "instructions": "In {{environment}}: {{team}}.",
        "output_format": "mermaid",
        "hidden": True,
        "prompt": {"parts": ["instructions", "environment", "agents_md"], "variables": {"team": "core"}},
    }
    assert "weather" in str(configuration.lost) and "lead" not in str(configuration.unsupported.get("talkcody", {}).get("agents", {}))  # type: ignore[union-attr]


def test_hooks_of_talkcody_are_translated_and_those_of_projects_kept(tmp_path: Path) -> None:
    folder, project = tmp_path / ".local" / "share" / "com.talkcody", tmp_path / "code"
    for place in (folder, tmp_path / ".talkcody", project / ".talkcody"):
        place.mkdir(parents=True)
    hook = {"matcher": "bash", "hooks": [{"type": "command", "command": "look-at-it", "timeout": 5}]}
    (tmp_path / ".talkcody" / "settings.json").write_text(json.dumps({"hooks": {"PostToolUse": [hook], "Stop": [hook]}}))
    (project / ".talkcody" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    file = folder / "talkcody.db"
    file.write_bytes(talkcody_sample())
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE projects SET root_path = ?", (str(project),))
        connection.commit()
    configuration = found(folder, tmp_path / "data")
    assert f"talkcody: hooks of the project {project}: add them to its .moot/config.yaml" in configuration.lost
    command = {"command": "look-at-it", "timeout": 5}
    value = loaded(to_yaml(configuration))
    assert value["hooks"]["PostToolUse"] == [{"matcher": "shell", "hooks": [command]}]
    assert value["hooks"]["Stop"] == [{"hooks": [command]}]


def test_hooks_of_claude_name_tools_of_moot(tmp_path: Path) -> None:
    folder = tmp_path / ".claude"
    for project in ("-a", "-b"):  # two sources with the same settings
        (folder / "projects" / project).mkdir(parents=True)
        line = {
            "type": "user",
            "sessionId": "s",
            "uuid": "u",
            "parentUuid": None,
            "isSidechain": False,
            "message": {"role": "user", "content": "hi"},
        }
        (folder / "projects" / project / "0b0b1ab4-8a05-4a0b-a3a9-0123456789ab.jsonl").write_text(json.dumps(line) + "\n")

    def groups(*matchers: str) -> list[Any]:
        return [{"matcher": matcher, "hooks": [{"type": "command", "command": "$CLAUDE_PROJECT_DIR/x"}]} for matcher in matchers]

    events = {"PreToolUse": groups("Bash", "Edit|Write", "*", "mcp__.*", "Multi.*", "Nonsense"), "PermissionRequest": groups("")}
    (folder / "settings.json").write_text(json.dumps({"hooks": events, "env": {"OTHER": "hunter2hunter2"}}))
    configuration = found(folder / "projects", tmp_path / "data")
    text = to_yaml(configuration)
    value = loaded(text)
    matchers = [group.get("matcher", "") for group in value["hooks"]["PreToolUse"]]
    assert matchers == ["shell", "edit_file|write_file", "", "mcp__.*", "edit_file"]
    assert value["hooks"]["PreToolUse"][0]["hooks"] == [{"command": "$MOOT_PROJECT_DIR/x"}]
    assert "PermissionRequest" in text and "Nonsense" in text and "hunter2" not in text
    assert any("PreToolUse Nonsense: no equivalent" in line for line in configuration.lost)


MUTSUMI = """{
  // the one that asks nothing back
  "editor.fontSize": 12,
  "mutsumi.providers": [{"name": "mine", "baseurl": "http://127.0.0.1:9/v1", "api_key": "sk-abcdefghijklmnopqrstuvwx123456"},],
  "mutsumi.models": {"mine": ["big", "small"]},
  "mutsumi.defaultModel": {"model": "big", "provider": "mine"},
  "mutsumi.titleGeneratorModel": {"model": "small", "provider": "mine"},
  "mutsumi.agentConfig": {"toolSets": {"quick": ["read", "shell", "diagnostics"]}, "agentTypes": {
    "helper": {"toolSets": ["quick"], "defaultModel": {"model": "small", "provider": "mine"}, "defaultMcpServers": ["docs", "gone"]},
    "reviewer": {"defaultRules": ["default/reviewer.md"]}, /* its tools are the built-in ones */
  }},
  "mutsumi.mcpServers": {"docs": {"type": "http", "url": "https://example.org/mcp//x", "headers": {"x-api-key": "topsecret1"}}},
  "mutsumi.autoApproveEnabled": true,
  "mutsumi.httpServer.password": "topsecret2",
}"""


def test_settings_of_mutsumi_are_found_in_the_project_and_in_the_home(tmp_path: Path) -> None:
    project = tmp_path / "code"
    user = tmp_path / ".config" / "Code" / "User"
    for place in (project / ".mutsumi", project / ".vscode", user):
        place.mkdir(parents=True)
    format: Any = FORMATS.make("mtm")
    (project / ".mutsumi" / "a.mtm").write_bytes(samples_of(format)["notebook"])
    (user / "settings.json").write_text(MUTSUMI)
    (project / ".vscode" / "settings.json").write_text('{"mutsumi.defaultModel": {"model": "own", "provider": "mine"}}')
    configuration = found(project / ".mutsumi", tmp_path / "data")
    text = to_yaml(configuration)
    value = loaded(text, {"MINE_API_KEY": "x"})
    assert value["providers"] == {
        "mine": {"base_url": "http://127.0.0.1:9/v1", "api_key": "${MINE_API_KEY}", "models": {"big": {}, "small": {}}}
    }
    assert value["models"] == {"main": "own@mine", "small": "small@mine"}
    assert value["agents"]["helper"] == {"model": "small@mine", "tools": ["read_file", "shell"], "mcp": ["docs"]}
    assert "mtm: agents.helper.defaultMcpServers: the settings don't define the MCP servers gone" in configuration.lost
    assert value["agents"]["reviewer"] == {"tools": ["read_file", "find_files", "search_files"]}
    headers = {"x-api-key": "${DOCS_X_API_KEY}"}
    assert value["mcp"] == {"docs": {"url": "https://example.org/mcp//x", "headers": headers, "enabled": False}}
    assert "topsecret" not in text and "sk-abc" not in text and "default/reviewer.md" in text
    assert any("approved automatically" in note for note in configuration.notes)


@given(st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_the_file_is_valid_and_comments_stay_comments_for_any_input(name: str, words: str, tools: list[str]) -> None:
    draft = ConfigurationBuilder("hostile")
    draft.agent(name, {"instructions": words}, tools=list(tools), known={"read": "read_file"})
    draft.server(name, {"command": words or "x", "env": {name or "A": words}})
    draft.lose(words, words, {name: words, "list": [words]})
    draft.note(words)
    value = loaded(to_yaml(draft.found()))
    assert set(value) == {"agents", "mcp"} and all(server["command"] for server in value["mcp"].values())


def test_neither_the_active_configuration_nor_any_file_is_overwritten(tmp_path: Path) -> None:
    live, there = tmp_path / "config.yaml", tmp_path / "there.yaml"
    there.write_text("")
    with pytest.raises(UsageError, match="active configuration"):
        refuse_live(live, live)
    with pytest.raises(UsageError, match="already"):
        refuse_live(there, live)
    refuse_live(tmp_path / "new.yaml", live)
