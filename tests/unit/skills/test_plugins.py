"""Plugins: what is read from them, and that exactly the agreed content is installed, used, updated and removed."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from moot.config.commands import file_commands
from moot.config.loader import Loader, load
from moot.config.plugins.installed import FILE, FOLDER, check_unchanged, decide, installed_plugin, installed_plugins, used_plugins
from moot.errors import ConfigError, MootError, NotFound, Refused, UsageError
from moot.mcp.servers import McpServers
from moot.skills.content import FILE_BYTES
from moot.skills.decisions import decisions as skill_decisions
from moot.skills.decisions import set_use
from moot.skills.library import find_skill, find_skills
from moot.skills.plugins import (
    accept,
    install,
    installed_candidate,
    remove,
    set_enabled,
    texts_of,
)
from unit.skills.plugin_files import candidate, write

pytestmark = pytest.mark.anyio

SERVER = "plugin_house-style_words"


def refused_names(home: Path) -> list[str]:
    return [path.name for path in (home / FOLDER).iterdir() if path.is_dir()] if (home / FOLDER).is_dir() else []


# ── content ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_everything_in_a_plugin_is_read_and_nothing_is_dropped_silently(home: Path, source: Path) -> None:
    found = await candidate(source, home)
    plugin = found.plugin
    assert [command.name for command in plugin.commands] == ["house-style:check", "house-style:release:notes"]
    assert [agent.name for agent in plugin.agents] == ["house-style:editor"] and plugin.skills == ("skills/wording",)
    assert [(event, hook.matcher, hook.timeout) for event, hook in plugin.hooks] == [
        ("PreToolUse", "shell", 10.0),
        ("UserPromptSubmit", "", 60.0),
    ]
    (server,) = plugin.servers
    assert (server.name, server.command, server.args) == (SERVER, "python3", (f"{plugin.folder}/servers/words.py",))
    assert f"{plugin.folder}/skills/wording/SKILL.md" in plugin.commands[0].text
    assert plugin.lost == (
        "hook Stop 'prompt': moot has no hooks of the type 'prompt'",
        "hook WorktreeCreate in hooks/hooks.json: moot has no such event",
        "output-styles: moot has no output styles",
        "command house-style:check: moot has no such field: allowed-tools",
        "agent house-style:editor: moot has no such field: color",
    )
    assert not (home / FOLDER).exists()  # nothing was written


async def test_a_manifest_names_other_places_and_contains_hooks_and_servers(home: Path, tmp_path: Path) -> None:
    manifest = {
        "name": "p",
        "commands": ["./cmd", "./one.md"],
        "agents": "./agents/a.md",
        "skills": ["./more"],
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true", "args": ["a b"]}]}]},
        "mcpServers": {"docs": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${DOCS_KEY}"}}},
        "lspServers": {},
    }
    text = "---\nname: s\ndescription: d\n---\nDo it.\n"
    files: dict[str, object] = {".claude-plugin/plugin.json": manifest, "cmd/x.md": "X", "one.md": "One", "commands/not.md": "No"}
    files |= {
        "agents/a.md": "Be brief.",
        "agents/b.md": "No.",
        "skills/s/SKILL.md": text,
        "more/t/SKILL.md": text.replace("name: s", "name: t"),
    }
    plugin = (await candidate(write(tmp_path / "p", files), home)).plugin
    assert [command.name for command in plugin.commands] == ["p:x", "p:one"]
    assert [agent.name for agent in plugin.agents] == ["p:a"] and plugin.skills == ("skills/s", "more/t")
    assert [hook.command for _, hook in plugin.hooks] == ["true 'a b'"]
    assert [(server.name, server.url) for server in plugin.servers] == [("plugin_p_docs", "https://example.org/mcp")]
    assert plugin.lost == ("lspServers in .claude-plugin/plugin.json: moot has nothing like it",)


BAD_PARTS: list[tuple[dict[str, object], str]] = [
    ({"commands": "../x"}, "commands '../x': outside of the plugin"),
    ({"agents": "/etc"}, "agents '/etc': outside of the plugin"),
    ({"skills": "./none"}, "skills 'none': no SKILL.md there"),
    ({"commands": {"a": {"content": "x"}}}, "commands in .claude-plugin/plugin.json: only paths are supported here"),
    ({"hooks": {"Stop": [{"command": "x"}]}}, "hook Stop: a group without a list of hooks"),
    ({"hooks": {"Stop": ["x"]}}, "hook Stop: a group without a list of hooks"),
    ({"hooks": [7]}, "hooks in .claude-plugin/plugin.json: neither a path nor an object"),
    ({"mcpServers": True}, "mcpServers in .claude-plugin/plugin.json: neither a path nor an object"),
    ({"hooks": {"Stop": [{"hooks": [{"command": "x", "timeout": -1}]}]}}, "hook Stop 'x': invalid timeout"),
    ({"hooks": {"Stop": [{"hooks": [{"command": "x", "if": "Bash(git *)"}]}]}}, "hook Stop 'x': moot has no field 'if' here"),
    ({"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [{"command": "x"}]}]}}, "hook PreToolUse 'x': nothing in moot matches '('"),
    ({"hooks": {"SubagentStop": [{"matcher": "(", "hooks": [{"command": "x"}]}]}}, "hook SubagentStop 'x': nothing in moot matches '('"),
    ({"hooks": {"PreToolUse": [{"matcher": "Task", "hooks": [{"command": "x"}]}]}}, "hook PreToolUse 'x': nothing in moot matches 'Task'"),
    ({"hooks": {"Stop": [{"hooks": [{"command": "${user_config.a}"}]}]}}, "it needs values that users enter at installation"),
    ({"mcpServers": {"a__b": {"command": "x"}}}, "use at most 64 letters, digits, - and single _"),
    ({"mcpServers": {"a": {"command": "x", "cwd": "/"}}}, "MCP server 'a': moot has no field 'cwd' here"),
    ({"mcpServers": {"a": {"url": "file:///etc/passwd"}}}, "MCP server 'a': its url does not start with http:// or https://"),
    ({"mcpServers": {"a": {"command": "x", "url": "https://a"}}}, "MCP server 'a': it needs either a command or a url"),
    ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "MCP server 'a': invalid args"),
    ({"mcpServers": {"a": {"command": "x", "args": ["y\0z"]}}}, "MCP server 'a': it contains a NUL character"),
    ({"mcpServers": {"a": {"command": "x\0"}}}, "MCP server 'a': it contains a NUL character"),
    ({"mcpServers": {"a": {"command": "x", "env": {"A\0": "b"}}}}, "MCP server 'a': it contains a NUL character"),
    ({"hooks": {"Stop": [{"hooks": [{"command": "x\0y"}]}]}}, "it contains a NUL character"),
    ({"mcpServers": {"a": {"type": "ws", "url": "https://a"}}}, "MCP server 'a': unknown type 'ws'"),
]


@pytest.mark.parametrize(("part", "reason"), BAD_PARTS)
async def test_a_part_that_cannot_be_used_is_left_out_with_the_reason(
    part: dict[str, object], reason: str, home: Path, tmp_path: Path
) -> None:
    files: dict[str, object] = {
        ".claude-plugin/plugin.json": {"name": "p", **part},
        "skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\nx",
    }
    plugin = (await candidate(write(tmp_path / "p", files), home)).plugin
    assert reason in "\n".join(plugin.lost)
    assert not plugin.hooks and not plugin.servers and plugin.skills == ("skills/s",)


BAD_PLUGINS: list[tuple[dict[str, object], str]] = [
    ({".claude-plugin/plugin.json": {"name": "../evil"}}, "Invalid plugin name"),
    ({".claude-plugin/plugin.json": {"name": "a__b"}}, "Invalid plugin name"),
    ({".claude-plugin/plugin.json": "{"}, "not a valid JSON object"),
    ({".claude-plugin/plugin.json": "[]"}, "not a valid JSON object"),
    ({"hooks/hooks.json": "nonsense"}, "not a valid JSON object"),
    ({"README.md": "Nothing."}, "contains nothing that moot can use"),
    ({"commands/a.md": "Do\u202e it."}, "contains hidden text"),
    ({"agents/a.md": "Do \U000e0041it."}, "contains hidden text"),
    ({".claude-plugin/plugin.json": {"name": "p", "description": "a\u200bb"}, "commands/a.md": "x"}, "contains hidden text"),
    ({"hooks/hooks.json": {"Stop": [{"hooks": [{"command": "true \u202e"}]}]}}, "hook Stop.*U\\+202E"),
    ({"hooks/hooks.json": {"Stop": [{"hooks": [{"command": "true", "args": ["\u200b"]}]}]}}, "hook Stop.*U\\+200B"),
    ({"hooks/hooks.json": {"SubagentStop": [{"matcher": "a\u200b", "hooks": [{"command": "true"}]}]}}, "hook SubagentStop.*U\\+200B"),
    ({".mcp.json": {"a": {"command": "x\u200b"}}}, "MCP server plugin_p_a.*U\\+200B"),
    ({".mcp.json": {"a": {"command": "x", "args": ["\u200b"]}}}, "MCP server plugin_p_a.*U\\+200B"),
    ({".mcp.json": {"a": {"command": "x", "env": {"A": "\u2066"}}}}, "MCP server plugin_p_a.*U\\+2066"),
    ({"hooks/hooks.json": {"Stop": [{"hooks": [{"command": "s/run"}]}]}, "s/run": "#!/bin/sh\n\0true\n"}, "contains hidden text: s/run:2"),
    ({"hooks/hooks.json": {"Stop": [{"hooks": [{"command": "sh s/run"}]}]}, "s/run": "true\n\0"}, "contains hidden text: s/run:2"),
]


@pytest.mark.parametrize(("files", "reason"), BAD_PLUGINS)
async def test_a_bad_plugin_is_refused_whole(files: dict[str, object], reason: str, home: Path, tmp_path: Path) -> None:
    with pytest.raises(MootError, match=reason):
        install(home, await candidate(write(tmp_path / "p", files), home))
    assert refused_names(home) == [] and installed_plugins(home) == []


RUNS: list[dict[str, object]] = [
    {"hooks/hooks.json": {"Stop": [{"hooks": [{"command": "cd ${CLAUDE_PLUGIN_ROOT}/s && ./run.sh"}]}]}},
    {"hooks/hooks.json": {"Stop": [{"hooks": [{"command": "sh ${CLAUDE_PLUGIN_ROOT}/s//run.sh"}]}]}},
    {".mcp.json": {"a": {"command": "node", "env": {"NODE_OPTIONS": "--require ${CLAUDE_PLUGIN_ROOT}/s/run.sh"}}}},
]


@pytest.mark.parametrize("part", RUNS)
async def test_every_file_of_a_plugin_that_runs_programs_is_shown(part: dict[str, object], home: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "p", {**part, "s/run.sh": "echo hello\n", "commands/a.md": "Do it.", "notes.txt": "More."})
    binary, large = b"\x7fELF\0\xff", b"#" * (FILE_BYTES + 1)
    (folder / "s/tool").write_bytes(binary)
    (folder / "s/large.py").write_bytes(large)
    shown = texts_of(await candidate(folder, home))
    assert shown[0] == ("command /p:a", "Do it.") and [title for title, _ in shown].count("commands/a.md") == 0
    texts = dict(shown)
    assert (texts["s/run.sh"], texts["notes.txt"]) == ("echo hello\n", "More.") and next(iter(part)) in texts
    assert texts["s/tool"] == f"(A binary file: 6 bytes, SHA-256 {sha256(binary).hexdigest()})"
    assert texts["s/large.py"].endswith(f"1,048,577 bytes, SHA-256 {sha256(large).hexdigest()})")


async def test_of_a_plugin_without_programs_only_the_texts_for_models_are_shown(home: Path, tmp_path: Path) -> None:
    files: dict[str, object] = {"commands/a.md": "Do it.", "notes.txt": "More.", ".mcp.json": {"a": {"url": "https://example.org"}}}
    assert texts_of(await candidate(write(tmp_path / "p", files), home)) == [("command /p:a", "Do it.")]


async def test_a_folder_that_starts_with_a_dot_is_read(home: Path, tmp_path: Path) -> None:
    manifest = {"name": "p", "commands": ["./.claude/commands", "."]}
    folder = write(tmp_path / "p", {".claude-plugin/plugin.json": manifest, ".claude/commands/a.md": "A", "b.md": "B"})
    plugin = (await candidate(folder, home)).plugin
    assert [command.name for command in plugin.commands][:2] == ["p:a", "p:b"]


async def test_commands_and_agents_with_invalid_names_are_left_out(home: Path, tmp_path: Path) -> None:
    files: dict[str, object] = {f"{kind}/{name}.md": "Be brief." for kind in ("commands", "agents") for name in ("good", "a b", "x:y\n")}
    plugin = (await candidate(write(tmp_path / "p", files), home)).plugin
    assert [file.name for file in (*plugin.commands, *plugin.agents)] == ["p:good", "p:good"]
    assert len(plugin.lost) == 4 and all("invalid name" in line for line in plugin.lost)


async def test_the_folder_is_quoted_in_shell_lines(tmp_path: Path) -> None:
    home = tmp_path / "it's my home"
    text = "See ${CLAUDE_PLUGIN_ROOT}/a.\n!`cat ${CLAUDE_PLUGIN_ROOT}/a.txt \"${CLAUDE_PLUGIN_ROOT}/a.txt\" '${CLAUDE_PLUGIN_ROOT}/a.txt'`"
    unsafe = "!`echo $(cat ${CLAUDE_PLUGIN_ROOT}/a.txt)`"
    files: dict[str, object] = {"commands/a.md": text, "commands/b.md": unsafe, "a.txt": "x"}
    found = await candidate(write(tmp_path / "p", files), home)
    folder = install(home, found)
    (command,) = found.plugin.commands
    first, _, line = command.text.partition("\n")
    assert first == f"See {folder}/a."
    assert subprocess.run(line[2:-1], shell=True, check=True, capture_output=True, text=True).stdout == "xxx"
    (lost,) = found.plugin.lost
    assert lost.startswith("commands/b.md: a shell line can't be used") and "p:b" not in file_commands(home, None).commands


async def test_links_and_unsafe_archives_are_refused_and_nothing_is_written(home: Path, source: Path, tmp_path: Path) -> None:
    (source / "hooks/link").symlink_to("/etc/passwd")
    with pytest.raises(Refused, match="is a link"):
        await candidate(source, home)
    for name in ("../evil.md", "/etc/evil.md", "commands/../../evil.md"):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("commands/a.md", "x")
            archive.writestr(name, "x")
        (tmp_path / "p.zip").write_bytes(data.getvalue())
        with pytest.raises(Refused, match="not a safe path"):
            await candidate(tmp_path / "p.zip", home)
    assert not home.exists() and not (tmp_path / "evil.md").exists()


async def test_an_agent_with_mistakes_is_left_out_and_the_others_are_used(home: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "p", {"agents/good.md": "Be brief.", "agents/bad.md": "---\nisolation: nowhere\n---\nx"})
    found = await candidate(folder, home)
    assert found.left_out == ("p:bad",) and any(line.startswith("agent p:bad: ") for line in found.plugin.lost)
    install(home, found)
    assert [name for name in load(home=home, environ={}, directory=tmp_path).settings.agents if ":" in name] == ["p:good"]


async def test_an_agent_is_named_after_its_file_and_another_name_is_reported(home: Path, tmp_path: Path) -> None:
    found = await candidate(write(tmp_path / "p", {"agents/a.md": "---\nname: other\n---\nBe brief."}), home)
    assert found.plugin.lost == ("agent p:a: its name 'other'; plugin agents are named after their files",)
    assert [agent.name for agent in found.plugin.agents] == ["p:a"]


async def test_an_agent_cannot_name_programs_folders_or_hooks(home: Path, tmp_path: Path) -> None:
    head = "agent_type: acp:x\noptions: {command: [sh]}\nallowed_uris: [/]\nhooks: {before_run: [{tool: shell}]}\nmcp: [a]\nrole: read"
    found = await candidate(write(tmp_path / "p", {"agents/a.md": f"---\n{head}\n---\nBe brief."}), home)
    assert found.plugin.lost == ("agent p:a: moot has no such field: agent_type, allowed_uris, hooks, mcp, options, role",)
    install(home, found)
    agent = load(home=home, environ={}, directory=tmp_path).settings.agents["p:a"]
    assert (agent.agent_type, agent.options, agent.allowed_uris, agent.mcp) == ("moot", {}, (), None)
    assert agent.hooks.before_run == () and agent.instructions == "Be brief."


# ── use ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_installed_plugin_is_part_of_the_configuration_and_leaves_with_everything(
    home: Path, source: Path, tmp_path: Path
) -> None:
    folder = install(home, await candidate(source, home))
    with pytest.raises(UsageError, match="is already installed"):
        install(home, await candidate(source, home))
    settings = load(home=home, environ={"WORDS_LANGUAGE": "de"}, directory=tmp_path).settings
    assert settings.mcp[SERVER].env["WORDS_LANGUAGE"] == "de" and settings.mcp[SERVER].plugin == "house-style"
    assert [hook.plugin for hook in settings.hooks["PreToolUse"]] == ["house-style"]
    assert settings.agents["house-style:editor"].tools == ("read_file", "edit_file", "search_files")
    assert set(file_commands(home, None).commands) == {"house-style:check", "house-style:release:notes"}
    set_use(home, find_skill(home, "house-style:wording"), "enabled")
    assert skill_decisions(home) and str(folder) in next(iter(skill_decisions(home)))
    set_enabled(home, "house-style", False)
    assert not load(home=home, environ={}, directory=tmp_path).settings.mcp and not find_skills(home)
    set_enabled(home, "house-style", True)

    remove(home, "house-style")
    settings = load(home=home, environ={}, directory=tmp_path).settings
    assert not settings.mcp and not settings.hooks and "house-style:editor" not in settings.agents
    assert not file_commands(home, None).commands and not find_skills(home) and skill_decisions(home) == {}
    assert refused_names(home) == []
    with pytest.raises(NotFound):
        remove(home, "house-style")


CHANGES = ["hooks/guard.sh", "hooks/hooks.json", ".mcp.json", "commands/check.md", "agents/editor.md", "skills/wording/SKILL.md", "new.py",
           "servers/__pycache__/words.pyc", "node_modules/x/index.js", ".git/config"]  # fmt: skip


@pytest.mark.parametrize("changed", CHANGES)
async def test_after_any_change_nothing_is_used_until_it_is_accepted(changed: str, home: Path, source: Path, tmp_path: Path) -> None:
    folder = install(home, await candidate(source, home))
    check_unchanged(home, "house-style")
    server = load(home=home, environ={}, directory=tmp_path).settings.mcp[SERVER]
    (folder / changed).parent.mkdir(parents=True, exist_ok=True)
    with (folder / changed).open("a") as file:
        file.write("\n")
    loaded = load(home=home, environ={}, directory=tmp_path)
    assert not loaded.settings.mcp and not loaded.settings.hooks and "house-style:editor" not in loaded.settings.agents
    assert any("moot plugins accept house-style" in note for note in loaded.notes)
    assert not file_commands(home, None).commands and not find_skills(home) and used_plugins(home) == []
    with pytest.raises(Refused, match="has changed since it was accepted"):
        check_unchanged(home, "house-style")
    async with anyio.create_task_group() as group:
        with pytest.raises(Refused, match="has changed since it was accepted"):
            await McpServers(home, group).fetch(server, str(tmp_path))  # the configuration was read before the change
    with pytest.raises(Refused, match="has changed since it was accepted"):
        set_enabled(home, "house-style", True)
    accept(home, installed_candidate(home, "house-style"))
    assert installed_plugin(home, "house-style").status == "enabled"
    assert SERVER in load(home=home, environ={}, directory=tmp_path).settings.mcp


async def test_a_file_of_the_system_does_not_prevent_acceptance(home: Path, source: Path) -> None:
    folder = install(home, await candidate(source, home))
    (folder / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    assert installed_plugin(home, "house-style").status == "enabled"
    (folder / "hooks/guard.sh").write_text("exit 0\n")
    accept(home, installed_candidate(home, "house-style"))
    assert installed_plugin(home, "house-style").status == "enabled"


@pytest.mark.parametrize("changed", ["hooks/more.json", "mcp/servers.json", "staff/editor.md", "deep/er/stray.py", "skills/stray"])
async def test_any_change_of_a_plugin_reloads_the_configuration(changed: str, home: Path, tmp_path: Path) -> None:
    manifest = {"name": "p", "hooks": "./hooks/more.json", "mcpServers": "./mcp/servers.json", "agents": ["./staff/editor.md"]}
    files: dict[str, object] = {".claude-plugin/plugin.json": manifest, "staff/editor.md": "Be brief."}
    files |= {"hooks/more.json": {"Stop": [{"hooks": [{"command": "true"}]}]}, "mcp/servers.json": {"a": {"command": "true"}}}
    folder = install(home, await candidate(write(tmp_path / "p", {**files, "deep/er/a.py": "", "commands/a.md": "x"}), home))
    loader = Loader(home=home, environ={}, directory=tmp_path)
    path = folder / changed
    before = path.read_bytes() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((before or b"") + b"\n")
    assert loader.stamp() != loader.seen and loader.reload() and loader.stamp() == loader.seen
    settings = loader.current.settings
    assert not settings.hooks and not settings.mcp and "p:editor" not in settings.agents
    path.unlink() if before is None else path.write_bytes(before)
    assert installed_plugin(home, "p").status == "enabled"
    assert loader.stamp() != loader.seen and loader.reload()
    settings = loader.current.settings
    assert settings.hooks and settings.mcp and "p:editor" in settings.agents
    (folder / "deep/moment").write_text("")
    (folder / "deep/moment").unlink()
    assert loader.stamp() != loader.seen  # a load between the two would have seen another content


async def test_two_plugins_cannot_have_a_server_of_the_same_name(home: Path, tmp_path: Path) -> None:
    first = write(tmp_path / "first", {".claude-plugin/plugin.json": {"name": "a", "mcpServers": {"b_c": {"command": "one"}}}})
    install(home, await candidate(first, home))
    install(home, await candidate(first, home), update=True)  # a plugin doesn't collide with itself
    second = write(tmp_path / "second", {".claude-plugin/plugin.json": {"name": "a_b", "mcpServers": {"d": {"command": "two"}}}})
    folder = install(home, await candidate(second, home))
    write(second, {".claude-plugin/plugin.json": {"name": "a_b", "mcpServers": {"c": {"command": "two"}}}})
    with pytest.raises(Refused, match="'a' already has an MCP server named 'plugin_a_b_c'"):
        install(home, await candidate(second, home), update=True)
    write(folder, {".claude-plugin/plugin.json": {"name": "a_b", "mcpServers": {"c": {"command": "two"}}}})
    changed = installed_candidate(home, "a_b")
    with pytest.raises(Refused, match="'a' already has an MCP server named 'plugin_a_b_c'"):
        accept(home, changed)
    decide(home, "a_b", lambda before: replace(before, digest=changed.digest) if before is not None else None)  # as an earlier version did
    loaded = load(home=home, environ={}, directory=tmp_path)
    assert loaded.settings.mcp["plugin_a_b_c"].command == "one"
    assert any("server 'plugin_a_b_c' of the plugin 'a_b' is not used" in note for note in loaded.notes)


async def test_accepting_is_bound_to_the_content_that_was_shown(home: Path, source: Path) -> None:
    folder = install(home, await candidate(source, home))
    (folder / "hooks/guard.sh").write_text("exit 0\n")
    shown = installed_candidate(home, "house-style")
    (folder / "hooks/guard.sh").write_text("exit 1\n")
    accept(home, shown)
    assert installed_plugin(home, "house-style").status == "changed"


async def test_an_update_replaces_the_content_and_keeps_the_files_of_the_plugin(home: Path, source: Path) -> None:
    first = install(home, await candidate(source, home))
    (first.parent / "data/cache.txt").write_text("kept")
    (source / "commands/check.md").write_text("Checked again.")
    second = install(home, await candidate(source, home), update=True)
    assert second != first and not first.exists()
    assert (first.parent / "data/cache.txt").read_text() == "kept"
    assert file_commands(home, None).commands["house-style:check"].prompt == "Checked again."


async def test_a_server_without_its_variables_is_disabled_with_the_reason(home: Path, tmp_path: Path) -> None:
    servers = {"docs": {"url": "https://example.org", "headers": {"Authorization": "Bearer ${DOCS_KEY}"}}}
    install(home, await candidate(write(tmp_path / "p", {".mcp.json": servers}), home))
    loaded = load(home=home, environ={}, directory=tmp_path)
    assert not loaded.settings.mcp["plugin_p_docs"].enabled and any("'DOCS_KEY' is not set" in note for note in loaded.notes)
    loaded = load(home=home, environ={"DOCS_KEY": "secret-value"}, directory=tmp_path)
    assert loaded.settings.mcp["plugin_p_docs"].headers["Authorization"] == "Bearer secret-value"
    assert "Bearer secret-value" in loaded.secrets


async def test_a_damaged_list_of_plugins_decides_nothing_and_is_not_overwritten(home: Path, source: Path, tmp_path: Path) -> None:
    install(home, await candidate(source, home))
    (home / FOLDER / FILE).write_text("{")
    loaded = load(home=home, environ={}, directory=tmp_path)
    assert not loaded.settings.mcp and any("not valid JSON" in note for note in loaded.notes)
    with pytest.raises(ConfigError, match="not valid JSON"):
        install(home, await candidate(write(tmp_path / "p", {"commands/a.md": "x"}), home))
    assert (home / FOLDER / FILE).read_text() == "{"


# ── interruptions ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────

KILLED = """
import os, signal, sys
from functools import partial
from pathlib import Path
import anyio
from moot.skills import plugins

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

home, source, where, update = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "update"
candidate = anyio.run(partial(plugins.read_plugin_source, source, home, Path("/")))
setattr(plugins, where, killed)
plugins.install(home, candidate, update=update)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["digest_of", "decide"])
async def test_a_killed_installation_or_update_changes_nothing(where: str, home: Path, source: Path) -> None:
    def killed(update: str) -> None:
        done = subprocess.run([sys.executable, "-c", KILLED, str(home), str(source), where, update], check=False)
        assert done.returncode == -9

    killed("install")
    assert installed_plugins(home) == [] and not find_skills(home)
    folder = install(home, await candidate(source, home))
    assert sorted(path.name for path in folder.parent.iterdir()) == sorted([folder.name, "data"])
    (source / "commands/check.md").write_text("Checked again.")
    killed("update")
    assert installed_plugin(home, "house-style").status == "enabled"
    assert "Checked again." not in file_commands(home, None).commands["house-style:check"].prompt
    install(home, await candidate(source, home), update=True)
    assert file_commands(home, None).commands["house-style:check"].prompt == "Checked again."
    assert len([*folder.parent.iterdir()]) == 2
