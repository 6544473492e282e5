"""Tests of the package's own behavior; its interfaces are tested by moot's conformance suites."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from moot_example.convert_units import Arguments, ConvertUnits
from moot_example.lines import Lines as Channel
from moot_example.role_jsonl import RoleJsonl

import moot

pytestmark = pytest.mark.anyio
CONFIG = """
models: {main: rules@rules}
providers: {rules: {rules: {"(?i)hello": "Good morning.", "price of (\\\\w+)": "The price of \\\\1 is unknown."}}}
agents:
  shouter: {agent_type: pipe, options: {command: [tr, a-z, A-Z]}}
  failing: {agent_type: pipe, options: {command: ["false"]}}
  idle: {agent_type: pipe}
"""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (tmp_path / "config.yaml").write_text(CONFIG + f"channels: {{lines: {{path: {tmp_path / 'lines.sock'}}}}}\n")
    return tmp_path


async def test_rules_answer(home: Path) -> None:
    async with moot.open(home=home) as m:
        assert (await m.run("Hello there")).text == "Good morning."
        priced = await m.run("the price of tea?")
        assert (priced.text, priced.cost) == ("The price of tea is unknown.", 0)
        assert (await m.run("what else?")).text == "No rule fits that."


async def test_a_command_answers_and_its_lines_are_kept(home: Path) -> None:
    async with moot.open(home=home) as m:
        run = await m.run("one\ntwo", agent="shouter")
        assert run.text == "ONE\nTWO"
        raws = [event.raw async for event in m.conversations.events(run.conversation) if event.raw]
        assert raws == [b"ONE\n", b"TWO"]
        with pytest.raises(moot.MootError, match="exit code 1"):
            await m.run("one", agent="failing")
        with pytest.raises(moot.ConfigError, match=r"agents.idle.options.command is None"):
            await m.run("one", agent="idle")


@pytest.mark.parametrize(
    ("value", "unit", "into", "said"),
    [
        (5, "mile", "km", "8.04672 km"),
        (1, "hour", "second", "3600 second"),
        (1, "kg", "m", "can't be converted"),
        (1, "ell", "m", "unknown unit 'ell'"),
    ],
)
async def test_units(value: float, unit: str, into: str, said: str) -> None:
    output = await ConvertUnits().run(Arguments(value=value, unit=unit, into=into), SimpleNamespace(settings={}))  # type: ignore[arg-type]
    assert said in output.text


async def test_the_channel_talks_to_moot(home: Path) -> None:
    async with moot.open(home=home) as m, anyio.create_task_group() as group:
        group.start_soon(m.serve, "lines")
        async with Channel().client({"path": str(home / "lines.sock")}, "ann") as ann:
            await ann.say("hello")
            assert await ann.hear() == "Good morning."
        group.cancel_scope.cancel()
    assert not (home / "lines.sock").exists()


def test_two_conversations_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    head, said = '{"format":"role-jsonl","id":"%s"}\n', '{"role":"user","content":"hi"}\n'
    path.write_text(head % "a" + said + head % "b" + said + said)
    assert [(one.source_id, len(one.whole().messages)) for one in RoleJsonl().read(path)] == [("a", 1), ("b", 2)]
