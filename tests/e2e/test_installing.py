"""A conversation put where another agent goes on with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.formats import read_whole
from e2e.cli_process import MootProcess, make
from moot.formats.claude._samples import SAMPLES
from moot.formats.claude.format import ClaudeFormat
from moot.formats.codex.format import CodexFormat
from moot.types.part import text_of

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    """A home with one conversation, whose files of agents lie in folders of the test's own."""
    home = tmp_path_factory.mktemp("home")
    one = make(home, tmp_path_factory.mktemp("cache"), "")
    one.more |= {"CLAUDE_CONFIG_DIR": str(home / "of-claude"), "CODEX_HOME": str(home / "of-codex")}
    source = home / "5f0c1a52-7d0e-4c53-9d2c-1f6a3f0b7c11.jsonl"
    source.write_bytes(SAMPLES["session"])
    assert one.run("import", str(source)).returncode == 0
    yield one
    one.close()


@pytest.mark.parametrize(("format", "program"), [(ClaudeFormat(), "claude --resume"), (CodexFormat(), "codex resume")])
def test_a_conversation_becomes_a_new_session_each_time_and_what_goes_on_with_it_is_said(
    moot: MootProcess, format: ClaudeFormat | CodexFormat, program: str
) -> None:
    told = [moot.run("export", "What is here", "-f", format.name, "--install") for _ in range(2)]
    assert [one.returncode for one in told] == [0, 0], told[0].stderr
    places = [place for place in format.places(Path("/nowhere"), moot.more) if place.is_dir()]
    files = [path for place in places for path in format.sources(place)]
    assert len(files) == 2 and all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    for said in (one.stdout.decode() for one in told):
        assert said.startswith(f"cd {moot.work} && {program} ") and said.endswith("\n")
        assert any(said.split()[-1] in path.name for path in files)
    first = read_whole(format, files[0])[0]
    assert text_of(first.messages[0].parts) == "What is here?" and first.facts.title == "What is here"


def test_what_became_of_it_is_told_as_json(moot: MootProcess) -> None:
    told = moot.run("export", "What is here", "-f", "claude", "--install", "--json")
    document = json.loads(told.stdout)
    assert Path(document["file"]).is_file() and document["command"][:2] == ["claude", "--resume"]
    assert document["fidelity"]["kept"]["tool calls"] == 2


@pytest.mark.parametrize("more", [["-f", "json"], ["-f", "claude", "--share"], ["-f", "claude", "-o", "x"], ["-f", "claude", "--all"]])
def test_what_can_not_be_gone_on_with_is_refused(moot: MootProcess, more: list[str]) -> None:
    ended = moot.run("export", *([] if "--all" in more else ["What is here"]), "--install", *more)
    assert ended.returncode == 2 and not ended.stdout
