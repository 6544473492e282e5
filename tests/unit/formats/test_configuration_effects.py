"""Configurations of other programs, converted: they pass `moot config check`, and what has no equivalent is named as lost."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from format_samples import samples_of
from format_samples.apps import CLAI, tai_database
from format_samples.talkcody import sample as talkcody_sample
from moot.config.loader import load
from moot.config.settings import Settings
from moot.formats.apps.mcp_files import files_at
from moot.imports.configuration import configuration_of, to_yaml
from moot.imports.sources import sources_at
from moot.plugins import FORMATS


class Converted:
    """The result of converting the configuration of the program whose sources are at a path."""

    def __init__(self, path: Path, folder: Path, *, servers: Sequence[Path] = ()) -> None:
        found = configuration_of(() if servers else sources_at(path, "", folder / "data"), servers)
        self.lost = "\n".join(found.lost)
        self.text = to_yaml(found)
        self._home = folder / "home"
        self._home.mkdir()
        (self._home / "config.yaml").write_text(self.text)

    def settings(self, *variables: str) -> Settings:
        """Return the settings of a home with this file, which passes `moot config check`."""
        loaded = load(home=self._home, environ=dict.fromkeys(variables, "secret-value"), directory=self._home)
        assert loaded.doubt is None, loaded.doubt
        return loaded.settings

    def check_lost(self, *names: str) -> None:
        assert [name for name in names if name not in self.lost] == [], self.lost


def sample_of(format: str, name: str) -> bytes:
    made: Any = FORMATS.make(format)
    found = samples_of(made)[name]
    assert isinstance(found, bytes)
    return found


def tables_in(file: Path, script: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script)


TAI = """
providers: {openai: {apiKey: sk-abcdefghijklmnopqrstuvwx123456, defaultModel: gpt-4o}}
server: {port: 3000}
agent: {defaultProvider: openai, extraInstructions: Be brief.}
agents:
  lead: {instructions: Lead., tools: [read, weather, delegate, task_status], nudgeOnText: 2}
  helper: {instructions: Help., tools: [exec], skipGlobalContext: true}
custom_tools:
  weather: {description: Get the weather., command: "curl -s wttr.in/{{city}}", parameters: {city: {type: string, description: City}}}
  shell: {description: Bad., command: "bash -c {{it}}", parameters: {it: {type: string, description: It}}}
cron:
  enabled: true
  jobs:
    - {name: nightly, schedule: "0 3 * * *", prompt: tidy, agent: helper, newSession: true, wakeAgent: false}
    - {name: off, schedule: "0 3 * * *", prompt: tidy, enabled: false}
    - {name: seconds, schedule: "0 0 3 * * *", prompt: tidy}
    - {name: chat, schedule: "0 4 * * *", prompt: tell, delivery: {channel: discord, target: "1"}}
webhooks:
  enabled: true
  secret: hunter2hunter2
  routes:
    - {path: github, action: agent, messageTemplate: "Push to {{repository.name}}", agent: helper}
    - {path: noise, action: log, messageTemplate: "x"}
taskWatcher: {enabled: true, prompt: "{{action}}: {{task_title}}", agent: helper, debounceMs: 2000, triggers: [created, updated]}
commands:
  hello: {description: Say hello., command: "date +{{input}}", prompt: "Greet {{input}}: {{output}}", agent: helper, new_session: true}
  odd: {command: "echo `date`"}
tools:
  exec: {enabled: true, allowedCommands: [ls]}
  write: {enabled: true, allowedPaths: [/srv/notes]}
  web_fetch: {enabled: false}
  gmail: {enabled: true, account: me}
channels: {discord: {enabled: true, token: hunter2hunter2, owner: "42"}}
"""


def test_what_tai_does_takes_effect_or_is_named_as_lost(tmp_path: Path) -> None:
    (home := tmp_path / "tai").mkdir()
    (home / "agent.db").write_bytes(tai_database())
    (home / "config.yaml").write_text(TAI)
    for place, words in (("global/rules.md", "Always polite."), ("agents/lead/own.md", "Lead well.")):
        (file := home / "data" / "context" / place).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(words)
    converted = Converted(home, tmp_path)
    settings = converted.settings("OPENAI_API_KEY", "TAI_WEBHOOK_SECRET", "DISCORD_TOKEN")
    lead, helper, default = (settings.agents[name] for name in ("lead", "helper", "default"))
    assert lead.tools == ("read_file", "weather") and lead.agents == ("helper",)
    assert (lead.rules, helper.rules) == ("Always polite.\n\nLead well.", "")
    assert default.rules == "Be brief.\n\nAlways polite." and default.allowed_uris == ("/srv/notes",)
    assert [*settings.custom_tools] == ["weather"]
    assert settings.custom_tools["weather"].line({"city": "Oslo; id"}) == "curl -s wttr.in/'Oslo; id'"
    job = settings.cron["nightly"]
    assert (job.cron, job.agent, job.fresh, job.wake) == ("0 3 * * *", "helper", True, False)
    assert {*settings.cron} == {"nightly", "chat"}
    hook = settings.webhooks["github"]
    assert (hook.auth, hook.secret, hook.agent, hook.conversation) == ("bearer", "secret-value", "helper", "webhook:github")
    watcher = settings.task_watchers["tai"]
    assert (watcher.prompt, watcher.debounce, watcher.fresh) == ("{{changes}}: {{task.title}}", 2.0, True)
    assert {(rule.tool, rule.action) for rule in settings.permissions.rules} == {("shell", "allow"), ("fetch_url", "deny")}
    hello = settings.commands["hello"]
    assert (hello.facts.help, hello.facts.agent) == ("Say hello.", "helper")
    assert hello.prompt == "!`date +$ARGUMENTS`\n\nGreet $ARGUMENTS: (the output of the command above)"
    converted.check_lost(
        "'off'",
        "'seconds'",
        "'chat'",
        "'noise'",
        "custom tool 'shell'",
        "commands 'odd'",
        "commands.hello.new_session",
        "gmail",
        "nudgeOnText",
        "server",
    )
    assert "hunter2" not in converted.text and "sk-abcdef" not in converted.text


def test_types_and_rules_of_mutsumi_limit_agents(tmp_path: Path) -> None:
    project = tmp_path / "code"
    (project / ".mutsumi" / "rules" / "default").mkdir(parents=True)
    (project / ".vscode").mkdir()
    (project / ".mutsumi" / "a.mtm").write_bytes(sample_of("mtm", "notebook"))
    (project / ".mutsumi" / "rules" / "default" / "lead.md").write_text("Plan first.")
    types = {
        "orchestrator": {"allowedChildTypes": ["reviewer", "ghost"], "defaultRules": ["default/lead.md", "../../outside.md"]},
        "reviewer": {"isEntry": False, "defaultSkills": ["x"]},
        "implementer": {},
    }
    (tmp_path / "outside.md").write_text("secret words")
    (project / ".vscode" / "settings.json").write_text(json.dumps({"mutsumi.agentConfig": {"agentTypes": types}}))
    converted = Converted(project / ".mutsumi", tmp_path)
    agents = converted.settings().agents
    assert agents["orchestrator"].agents == ("reviewer",) and agents["orchestrator"].rules == "Plan first."
    assert agents["implementer"].agents == ("implementer", "reviewer")
    assert agents["reviewer"].hidden and agents["reviewer"].agents == () and agents["reviewer"].skills == ("x",)
    converted.check_lost("ghost", "outside.md")


def test_schedules_of_talkcody_become_cron_jobs(tmp_path: Path) -> None:
    file = tmp_path / "talkcody.db"
    file.write_bytes(talkcody_sample())
    columns = (
        *("id", "name", "schedule_kind", "schedule_at", "schedule_every_ms", "schedule_cron_expr", "schedule_tz", "payload_message"),
        *("payload_model", "payload_auto_approve_edits", "exec_catch_up", "retry_max_attempts", "status", "delivery_policy_json"),
    )
    rows = [
        ("a", "Daily", "cron", None, None, "0 9 * * 1-5", "Europe/Berlin", "Go.", None, 1, 1, 2, "enabled", '{"enabled": true}'),
        ("b", "Often", "every", None, 300_000, None, None, "Look.", "m@p", 0, 0, 0, "enabled", "{}"),
        ("c", "Once", "at", 1_893_456_000_000, None, None, None, "Then.", None, 0, 1, 0, "enabled", "{}"),
        ("d", "Not now", "every", None, 300_000, None, None, "No.", None, 0, 1, 0, "paused", "{}"),
    ]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE scheduled_tasks ({', '.join(columns)})")
        connection.executemany(f"INSERT INTO scheduled_tasks VALUES ({', '.join('?' * len(columns))})", rows)
        connection.commit()
    converted = Converted(file, tmp_path)
    jobs = converted.settings().cron
    daily, often = jobs["Daily"], jobs["Often"]
    assert (daily.cron, daily.tz, daily.mode, daily.retries) == ("0 9 * * 1-5", "Europe/Berlin", "edits", 2)
    assert (often.every, often.model, often.catch_up) == (300, "m@p", False)
    assert jobs["Once"].at == "2030-01-01T00:00:00+00:00"
    assert {*jobs} == {"Daily", "Often", "Once"}
    converted.check_lost("'Not now'", "its delivery")


def test_agents_tasks_and_channels_of_cherry(tmp_path: Path) -> None:
    (home := tmp_path / "CherryStudio" / "Data").mkdir(parents=True)
    (home / "cherrystudio.sqlite").write_bytes(sample_of("cherry", "second"))
    tables_in(
        home / "cherrystudio.sqlite",
        """
        CREATE TABLE agent (id, type, name, instructions, model, accessible_paths, allowed_tools, mcps, configuration, deleted_at);
        INSERT INTO agent VALUES ('1', 'claude-code', 'Coder', 'Code.', 'anthropic::opus', '["/srv/a", "/srv/b"]', '["Read"]', '[]',
            '{"max_turns": 7, "permission_mode": "acceptEdits"}', NULL);
        INSERT INTO agent VALUES ('2', 'pi', 'Own', 'Help.', NULL, '[]', '["Read", "Bash"]', '["x"]', '{}', NULL);
        CREATE TABLE agent_task (id, agent_id, name, prompt, schedule_type, schedule_value, status);
        INSERT INTO agent_task VALUES ('t', '2', 'beat', 'Look.', 'interval', '30', 'active');
        INSERT INTO agent_task VALUES ('u', '2', 'stopped', 'Look.', 'cron', '0 1 * * *', 'paused');
        CREATE TABLE job_schedule (id, type, name, "trigger", job_input_template, enabled);
        INSERT INTO job_schedule VALUES ('j', 'agent', 'weekly', '{"expr": "0 1 * * 1"}', '{"agentId": "1", "prompt": "Sum up."}', 1);
        INSERT INTO job_schedule VALUES ('k', 'cleanup', 'files', '{"expr": "0 1 * * 1"}', '{}', 1);
        CREATE TABLE agent_channel (id, type, name, agent_id, config, is_active);
        INSERT INTO agent_channel VALUES ('c', 'telegram', 'mine', '2', '{"bot_token": "hunter2hunter2"}', 1);
        """,
    )
    converted = Converted(tmp_path / "CherryStudio", tmp_path)
    settings = converted.settings()
    assert settings.agents["Coder"].allowed_uris == ("/srv/a", "/srv/b")
    assert settings.agents["Own"].tools == ("read_file", "shell")
    assert (settings.cron["beat"].every, settings.cron["beat"].agent) == (1800, "Own")
    assert (settings.cron["weekly"].cron, settings.cron["weekly"].agent) == ("0 1 * * 1", "Coder")
    converted.check_lost("Coder.allowed_tools", "permission_mode", "Own.mcps", "'stopped'", "'files'", "telegram")
    assert "hunter2" not in converted.text


def test_lookback_and_shell_contexts_of_clai(tmp_path: Path) -> None:
    home = tmp_path / ".clai"
    for folder in ("conversations", "profiles", "shellContexts"):
        (home / folder).mkdir(parents=True)
    (home / "conversations" / "1.json").write_bytes(CLAI)
    (home / "shellContexts" / "repo.json").write_text(json.dumps({"vars": {"branch": "git branch"}, "template": "On {{.branch}}"}))
    profile = {"name": "ops", "use_tools": True, "tools": ["rg"], "use_lookback": True, "shell_context": "repo", "use_skills": ["a"]}
    (home / "profiles" / "ops.json").write_text(json.dumps({**profile, "save-reply-as-conv": False}))
    converted = Converted(home, tmp_path)
    agent = converted.settings().agents["ops"]
    assert agent.tools == ("search_files", "search_history")
    assert agent.hooks.before_run[0].arguments == {"command": "echo branch:\ngit branch"}
    converted.check_lost("agents.ops.use_skills", "agents.ops.save-reply-as-conv")


def test_permissions_and_agents_of_claude(tmp_path: Path) -> None:
    folder = tmp_path / ".claude"
    for name in ("projects/-a", "agents", "commands"):
        (folder / name).mkdir(parents=True)
    line = {"type": "user", "sessionId": "s", "uuid": "u", "parentUuid": None, "isSidechain": False}
    line |= {"message": {"role": "user", "content": "hi"}}
    (folder / "projects" / "-a" / "0b0b1ab4-8a05-4a0b-a3a9-0123456789ab.jsonl").write_text(json.dumps(line) + "\n")
    (folder / "agents" / "scout.md").write_text(
        "---\nname: scout\ndescription: Looks.\ntools: Read, Grep\nskills: [x]\n---\nLook around.\n"
    )
    (folder / "commands" / "git").mkdir()
    (folder / "commands" / "git" / "fix.md").write_text("---\nargument-hint: [file] [how]\nallowed-tools: Bash\n---\nFix $1 in ${HOME}.")
    (folder / "commands" / "bad.md").write_text("---\nmodel: [\n---\nx")
    permissions = {
        "allow": ["Bash(git log:*)", "WebFetch(domain:example.org)", "mcp__docs__find", "mcp__docs"],
        "deny": ["Read(~/.ssh/**)", "Task(x)"],
        "defaultMode": "acceptEdits",
        "additionalDirectories": ["/srv/more"],
    }
    (folder / "settings.json").write_text(json.dumps({"permissions": permissions, "model": "opus"}))
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"docs": {"command": "npx", "env": {"API_KEY": "topsecret1"}}}}))
    converted = Converted(folder / "projects", tmp_path)
    settings = converted.settings("DOCS_API_KEY")
    assert [(rule.tool, rule.action, rule.match) for rule in settings.permissions.rules] == [
        ("read_file", "deny", "~/.ssh/**"),
        ("shell", "allow", "git log *"),
        ("fetch_url", "allow", "https://example.org/*"),
        ("mcp__docs__find", "allow", "*"),
    ]
    assert settings.permissions.mode == "edits"
    assert settings.agents["default"].allowed_uris == ("/srv/more",)
    assert settings.agents["scout"].tools == ("read_file", "search_files")
    assert settings.agents["scout"].instructions == "Look around."
    assert settings.mcp["docs"].enabled is False and "topsecret" not in converted.text
    fix = settings.commands["git:fix"]
    assert (fix.prompt, fix.facts.argument) == ("Fix $1 in ${HOME}.", "[file] [how]")
    converted.check_lost("Task(x)", "command 'bad'", "settings model", "allow mcp__docs:")


def test_models_profiles_and_sandbox_of_codex(tmp_path: Path) -> None:
    home = tmp_path / ".codex"
    folder = home / "sessions" / "2026" / "01" / "02"
    folder.mkdir(parents=True)
    format: Any = FORMATS.make("codex")
    data = next(one for one in samples_of(format).values() if isinstance(one, bytes))
    (folder / "rollout-2026-01-02T00-00-00-0b0b1ab4-8a05-4a0b-a3a9-0123456789ab.jsonl").write_bytes(data)
    (home / "prompts").mkdir()
    (home / "prompts" / "draft.md").write_text("Draft $ARGUMENTS")
    (home / "config.toml").write_text(
        'model = "gpt-5.2-codex"\napproval_policy = "never"\nsandbox_mode = "workspace-write"\n'
        '[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = ["/srv/x"]\n'
        '[profiles.deep]\nmodel = "gpt-5.2"\nmodel_reasoning_effort = "high"\napproval_policy = "never"\n'
        '[mcp_servers.docs]\ncommand = "npx"\nargs = ["docs"]\nenv = {API_KEY = "topsecret1"}\n'
    )
    converted = Converted(home / "sessions", tmp_path)
    settings = converted.settings("DOCS_API_KEY")
    assert (settings.agents["codex"].agent_type, settings.agents["codex"].model) == ("codex", "gpt-5.2-codex")
    assert settings.agents["codex-deep"].effort == "high" and settings.commands["draft"].prompt == "Draft $ARGUMENTS"
    assert settings.sandbox.network and settings.sandbox.writable == ("/srv/x",)
    assert settings.mcp["docs"].enabled is False and "topsecret" not in converted.text
    converted.check_lost("settings approval_policy", "profiles.deep.approval_policy")


def test_servers_of_projects_and_editors_take_effect_unless_a_secret_is_missing(tmp_path: Path) -> None:
    servers = {
        "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "${env:WORK}"]},
        "docs": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer topsecret123456789"}},
        "off": {"command": "x", "disabled": True},
        "old": {"type": "sse", "url": "https://example.org/sse", "headers": {"X-Key": "${DOCS_KEY:-none}"}},
        "bad": {"args": ["x"]},
    }
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"git": {"command": "other"}}}))
    asking = {"command": "npx", "env": {"KEY": "${input:key}"}}
    (tmp_path / ".vscode/mcp.json").write_text(json.dumps({"servers": {"time": {"type": "stdio", "command": "time"}, "asks": asking}}))
    converted = Converted(tmp_path, tmp_path, servers=files_at(tmp_path))
    found = converted.settings("WORK", "DOCS_AUTHORIZATION").mcp
    assert {name for name, server in found.items() if server.enabled} == {"git", "git-2", "old", "time"}
    assert {name for name, server in found.items() if not server.enabled} == {"docs", "off"}
    assert found["git"].args == ("mcp-server-git", "--repository", "secret-value") and found["git-2"].command == "other"
    assert (found["old"].protocol, found["old"].headers) == ("sse", {"X-Key": "none"})
    assert "topsecret" not in converted.text
    converted.check_lost("mcp server 'bad'", "mcp server 'asks'")
    assert files_at(tmp_path / ".mcp.json") == [tmp_path / ".mcp.json"] and files_at(tmp_path / ".vscode") == [
        tmp_path / ".vscode/mcp.json"
    ]
