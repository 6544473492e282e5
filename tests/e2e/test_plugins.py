"""An installed plugin takes effect in a running engine, and stops doing so when its files change or it is removed."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import MootProcess
from e2e.conftest import Stage
from lanes import sandbox
from moot.config.loader import FILE, Loader
from moot.engine import open_engine
from moot.mcp import servers as mcp_servers
from moot.skills.plugins import install, read_plugin_source, remove
from moot.testing._server import Recorded
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.canonical import dumps

pytestmark = pytest.mark.anyio

SERVER = "plugin_house-style_words"


@pytest.fixture
def source(tmp_path: Path, repository: Path) -> Path:
    return shutil.copytree(repository / "examples/marketplace/plugins/house-style", tmp_path / "house-style")


def obey(recorded: Recorded) -> Reply:
    """A model that makes the call in the prompt, if there is one, and then ends."""
    if recorded.json["messages"][-1]["role"] != "user" or "{" not in recorded.user_text:
        return Reply(text="Done.")
    wanted = json.loads(recorded.user_text[recorded.user_text.index("{") :])
    return Reply(tool_calls=[ToolCall(wanted["tool"], wanted["arguments"])])


def use(tool: str, **arguments: Any) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess() as server:
        yield server


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.02)


@asynccontextmanager
async def opened(home: Path, directory: Path) -> AsyncGenerator[Stage]:
    """Open an engine that follows the configuration in its home."""
    async with ScriptedServer(obey) as server:
        mine = server.provider("mine")
        facts = {"dialect": mine.dialect, "base_url": mine.base_url, "api_key": mine.api_key, "models": {"scripted": {}}}
        box = {"enabled": sandbox().enabled}
        home.mkdir()
        (home / FILE).write_bytes(
            dumps({"models": {"main": "scripted@mine"}, "providers": {"mine": facts}, "permissions": {"mode": "auto"}, "sandbox": box})  # type: ignore[dict-item]
        )
        loader = Loader(home=home, environ={}, directory=directory)
        async with open_engine(loader.current.settings, seed=1, loader=loader) as engine:
            yield Stage(engine, server, directory)


def outputs(on: Stage) -> list[str]:
    return [str(message["content"]) for message in on.server.requests[-1].json["messages"] if message["role"] == "tool"]


@pytest.mark.slow
async def test_hooks_servers_agents_and_skills_take_effect_without_a_restart_and_end_with_the_plugin(
    tmp_path: Path, directory: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_servers, "FIRST_WAIT", 90.0)
    home = tmp_path / "home"
    async with opened(home, directory) as on:
        await on.ask("Hello")
        assert "House style" not in str(on.server.requests[-1].json)

        folder = install(home, await read_plugin_source(str(source), home, Path("/")))
        await until(lambda: SERVER in on.engine.runtime.settings.mcp)
        await on.ask(use("shell", command="mkdir -p generated/ && touch generated/x"))
        assert "House style: one idea per sentence." in str(on.server.requests[-1].json)
        assert "generated/ is written by the build" in outputs(on)[0] and not (directory / "generated").exists()
        await on.ask(use(f"{SERVER}__plain_word", word="utilize"))
        assert outputs(on) == ["use"]
        await on.ask(use("activate_skill", name="house-style:wording"))
        assert "One idea per sentence." in outputs(on)[0]
        run, _ = await on.ask("Edit.", agent="house-style:editor")
        assert (run.status, run.agent) == ("finished", "house-style:editor")
        assert "Keep the author's meaning." in str(on.server.requests[-1].json)
        assert not [*folder.rglob("__pycache__")]

        (folder / "servers/stray.py").write_text("")
        await until(lambda: SERVER not in on.engine.runtime.settings.mcp and not on.engine.runtime.settings.hooks)
        (folder / "servers/stray.py").unlink()
        await until(lambda: SERVER in on.engine.runtime.settings.mcp and on.engine.runtime.settings.hooks)

        (folder / "hooks/guard.sh").write_text("touch stolen\n")  # not run, whether or not the change was noticed before
        _, message = await on.ask(use("shell", command="touch generated"))
        assert not (directory / "stolen").exists()
        await until(lambda: SERVER not in on.engine.runtime.settings.mcp or "has changed since" in str(message.parts))

        remove(home, "house-style")
        await until(lambda: not on.engine.runtime.settings.mcp and not on.engine.runtime.settings.hooks)
        await on.ask(use("activate_skill", name="house-style:wording"))
        assert "One idea per sentence." not in str(on.server.requests[-1].json)


@pytest.mark.slow
def test_all_files_of_programs_are_shown_before_the_question(moot: MootProcess, tmp_path: Path) -> None:
    plugin = tmp_path / "p"
    (plugin / "lib").mkdir(parents=True)
    server = {"command": "node", "env": {"NODE_OPTIONS": "--require ${CLAUDE_PLUGIN_ROOT}/lib/first.js"}}
    (plugin / ".mcp.json").write_bytes(dumps({"a": server}))  # type: ignore[dict-item]
    (plugin / "lib/first.js").write_text("".join(f"// line {number}\n" for number in range(1, 301)))
    (plugin / "lib/tool").write_bytes(b"\x7fELF\0\xff")
    done = moot.run("plugins", "install", str(plugin))
    shown = done.stderr.decode()
    assert done.returncode == 3 and "── lib/first.js\n// line 1\n" in shown, shown
    assert "// line 200\n(100 more lines)\n" in shown and "// line 201" not in shown
    assert "── lib/tool\n(A binary file: 6 bytes, SHA-256 " in shown
    (plugin / "lib/first.js").write_bytes(b"run()\0\n")
    done = moot.run("plugins", "install", str(plugin), "--yes")
    assert done.returncode != 0 and "contains hidden text: lib/first.js:1" in done.stderr.decode() and not (moot.home / "plugins").exists()


@pytest.mark.slow
def test_the_commands_show_install_run_and_remove_a_plugin(moot: MootProcess, repository: Path) -> None:
    home = moot.home

    def plugins(*words: str) -> tuple[int, str, str]:
        done = moot.run("plugins", *words)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    market = str(repository / "examples/marketplace")
    code, _, shown = plugins("install", market, "--plugin", "house-style")
    assert code == 3 and "sh ${CLAUDE_PLUGIN_ROOT}/hooks/guard.sh" in shown and "not installed: output-styles" in shown
    assert "2 hooks and 1 MCP server run? This needs confirmation." in shown and not (home / "plugins").exists()
    code, out, _ = plugins("install", market, "--plugin", "house-style", "--yes", "--json")
    assert code == 0 and json.loads(out)["commands"] == ["house-style:check", "house-style:release:notes"]
    assert "house-style  enabled  1.0.0" in plugins()[1]
    called = moot.run("mcp", "call", SERVER, "plain_word", '{"word": "commence"}')
    assert called.stdout == b"start\n", called
    assert moot.run("mcp", "disable", SERVER).returncode == 2
    assert plugins("update", "house-style")[2].endswith("is up to date\n")
    assert plugins("install", market, "--plugin", "house-style", "--yes")[0] == 2

    (script,) = home.glob("plugins/house-style/*/servers/words.py")
    script.write_text(script.read_text() + "\n")
    assert moot.run("mcp", "call", SERVER, "plain_word", '{"word": "commence"}').returncode == 2
    assert json.loads(plugins("list", "--json")[1])["data"][0]["status"] == "changed"
    assert plugins("accept", "house-style")[0] == 3 and plugins("accept", "house-style", "--yes")[0] == 0
    assert plugins("disable", "house-style")[0] == 0 and "disabled" in plugins("list")[1]

    code, out, _ = plugins("remove", "house-style", "--yes", "--json")
    assert code == 0 and json.loads(out)["content"]["agents"] == ["house-style:editor"]
    assert not (home / f"mcp/{SERVER}.json").exists() and [path.name for path in (home / "plugins").iterdir() if path.is_dir()] == []
    for words in (("show", "gone"), ("remove", "gone", "--yes"), ("install", "/no/such/folder"), ("install", market, "--plugin", "x")):
        code, _, error = plugins(*words)
        assert code == 2 and "Traceback" not in error, words
