"""One reload for all faces: changed files apply as a whole, or the last good configuration stays in force."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

import moot
from e2e.test_agent_questions import leg_of
from moot.config.loader import FILE, Loaded, Loader, load
from moot.engine import Engine, open_engine
from moot.errors import ConfigError, UsageError
from moot.runtime.configuration import Configuration

pytestmark = pytest.mark.anyio

DENY = "permissions: {rules: [{tool: shell, match: 'rm *', action: deny}]}\n"


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.02)


@asynccontextmanager
async def opened(home: Path, text: str) -> AsyncGenerator[tuple[Engine, Configuration, list[Loaded | ConfigError]], None]:
    home.mkdir()
    (home / FILE).write_text(text)
    loader = Loader(home=home, environ={}, directory=home.parent)
    async with open_engine(loader.current.settings, loader=loader) as engine:
        assert engine.configuration is not None
        changes: list[Loaded | ConfigError] = []
        engine.configuration.on_change = changes.append
        yield engine, engine.configuration, changes


def rules(engine: Engine) -> list[str]:
    return [rule.match for rule in engine.runtime.settings.permissions.rules]


async def test_deny_rules_stay_in_force_while_the_file_is_missing_or_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.runtime.configuration.DEBOUNCE", 0.1)
    async with opened(tmp_path / "home", DENY) as (engine, configuration, changes):
        file = tmp_path / "home" / FILE
        file.unlink()
        await until(lambda: configuration.error)
        assert rules(engine) == ["rm *"]
        file.write_text("")
        await until(lambda: len(changes) == 2)
        assert configuration.error is not None and "is empty" in configuration.error.message
        assert (rules(engine), engine.runtime.settings.generation) == (["rm *"], 1)
        file.write_text(DENY + "limits: {steps: 3}\n")
        await until(lambda: configuration.error is None)
        assert (rules(engine), engine.runtime.settings.limits.steps, engine.runtime.settings.generation) == (["rm *"], 3, 2)


async def test_a_file_that_is_still_being_written_is_not_loaded(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", DENY) as (engine, configuration, changes):
        with (tmp_path / "home" / FILE).open("w") as file:
            for line in ("limits:\n", "  steps: 3\n", "  repeats: 4\n", DENY):  # valid after every line, but without the rule until the end
                file.write(line)
                file.flush()
                await anyio.sleep(0.1)
        await configuration.refresh()
        assert [change.settings.limits.repeats for change in changes if isinstance(change, Loaded)] == [4]
        assert rules(engine) == ["rm *"]
        await configuration.refresh()  # nothing has changed
        assert len(changes) == 1


async def test_the_library_follows_changes_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / FILE).write_text("limits: {steps: 3}\n")
    async with moot.open(home=tmp_path / "home") as opened:
        (tmp_path / "home" / FILE).write_text("limits: {steps: 4}\n")
        await until(lambda: opened.settings.limits.steps == 4)


async def test_a_running_step_uses_the_limits_of_the_current_configuration(stage: Any) -> None:
    async with stage([], mode="ask") as on:
        leg = await leg_of(on)
        assert (await leg.setup()).limits.tokens == 0
        runtime = on.engine.runtime
        with leg.deadline.limit(0) as scope:
            runtime.settings = replace(runtime.settings, limits=replace(runtime.settings.limits, tokens=7, seconds=0.05))
            assert (await leg.setup()).limits.tokens == 7
            await anyio.sleep(20)
        assert scope.cancelled_caught


async def test_a_file_that_comes_back_unchanged_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.runtime.configuration.DEBOUNCE", 0.01)
    async with opened(tmp_path / "home", DENY) as (_, configuration, _):
        path = tmp_path / "home" / FILE
        good = path.rename(path.with_name("kept.yaml"))
        assert await configuration.reload() is False
        good.rename(path)
        await configuration.refresh()
        assert configuration.error is None


async def test_the_library_changes_settings_and_names_the_error_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "home" / FILE
    file.parent.mkdir()
    file.write_text("models: {main: demo@demo}\n")
    async with moot.open(home=tmp_path / "home", directory=tmp_path) as opened:
        run = await opened.run("hi", directory=tmp_path)
        changed = await opened.conversations.change_settings(run.conversation, {"mode": "plan", "effort": "low"})
        assert (changed.own_settings.mode, changed.own_settings.effort) == ("plan", "low")
        with pytest.raises(UsageError, match="Invalid value"):
            await opened.conversations.change_settings(run.conversation, {"mode": "nonsense"})
        assert opened.engine.configuration is not None and opened.engine.configuration.error is None
        file.unlink()
        await until(lambda: opened.engine.configuration and opened.engine.configuration.error)
        assert opened.settings.models.main == "demo@demo"


async def test_a_change_that_two_faces_notice_at_once_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.runtime.configuration.DEBOUNCE", 0.05)
    async with opened(tmp_path / "home", DENY) as (engine, configuration, changes):
        (tmp_path / "home" / FILE).write_text(DENY.replace("rm *", "mv *"))
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(configuration.refresh)
        assert rules(engine) == ["mv *"]
        assert len(changes) == 1


async def test_a_reload_takes_small_time_slices_and_does_not_collect_garbage(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    async with opened(tmp_path / "home", DENY) as (_, configuration, _):
        agents = "".join(f"  agent{number}: {{description: Agent {number}}}\n" for number in range(200))
        (tmp_path / "home" / FILE).write_text(f"{DENY}agents:\n{agents}")
        seen: set[tuple[bool, float]] = set()
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while True:
                    seen.add((gc.isenabled(), sys.getswitchinterval()))
                    await anyio.sleep(0)

            group.start_soon(watch)
            assert await configuration.reload()
            group.cancel_scope.cancel()
        assert any(not collects and interval < before for collects, interval in seen)
        assert (gc.isenabled(), sys.getswitchinterval()) == (True, before)


def test_a_process_that_starts_while_the_file_is_missing_or_empty_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rules_at_start() -> list[str]:
        return [rule.match for rule in load(home=tmp_path, environ={}, directory=tmp_path).settings.permissions.rules]

    file = tmp_path / FILE
    (tmp_path / "state").mkdir()
    file.write_text(DENY)
    assert rules_at_start() == ["rm *"]
    monkeypatch.setattr("moot.config.loader.PATIENCE", 20)
    for content in (None, ""):
        file.unlink() if content is None else file.write_text(content)
        writer = threading.Timer(0.05, file.write_text, (DENY,))
        writer.start()
        assert rules_at_start() == ["rm *"]
        writer.join()
    file.unlink()
    monkeypatch.setattr("moot.config.loader.PATIENCE", 0)
    assert rules_at_start() == []
    monkeypatch.setattr("moot.config.loader.PATIENCE", 20)
    assert rules_at_start() == []  # it was removed on purpose, so the next process does not wait
