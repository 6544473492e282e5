"""Rules for scripts that every command obeys: data on stdout, messages on stderr, valid JSON, exit code 2 for usage errors, no prompts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from e2e.cli_process import COMMAND, MootProcess, make
from moot.cli.arguments.completion import leaves
from moot.cli.arguments.signatures import arguments_of
from moot.cli.tree import TREE
from moot.cli.tree.nodes import Command
from moot.plugins.registry import attribute

COMMANDS = list(leaves(TREE))
NAMES = [" ".join(path) for path, _ in COMMANDS]
DOCUMENTS = [
    ("version",),
    ("chat", "list"),
    ("chat", "show", "1"),
    ("chat", "tree", "1"),
    ("search", "first"),
    ("config", "show"),
    ("config", "check"),
    ("config", "get", "limits.steps"),
    ("tools", "list"),
    ("tools", "show", "read_file"),
    ("agents", "list"),
    ("agents", "show", "default"),
    ("providers", "list"),
    ("ps",),
    ("doctor",),
]


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    process = make(tmp_path_factory.mktemp("contract"), "limits: {steps: 20}\n")
    assert process.run("run", "-m", "demo", "--no-tools", "first").returncode == 0
    yield process
    process.close()


@pytest.mark.parametrize("words", DOCUMENTS, ids=" ".join)
def test_json_is_one_document(moot: MootProcess, words: tuple[str, ...]) -> None:
    ended = moot.run(*words, "--json")
    assert isinstance(json.loads(ended.stdout), dict)
    assert ended.stdout.count(b"\n") == 1
    assert ended.returncode == 0 or words == ("doctor",)


def test_every_list_command_supports_json() -> None:
    named = [(name, command) for name, (path, command) in zip(NAMES, COMMANDS, strict=True) if path[-1] in ("list", "show")]
    without = [name for name, command in named if not takes_json(command)]
    assert without == ["completion show"]


def takes_json(command: Command) -> bool:
    return any("--json" in slot.flags for slot in arguments_of(attribute(command.path)))


@pytest.mark.parametrize(
    "words", [("nope",), ("chat", "nope"), ("chat", "list", "--nope"), ("chat", "list", "--limit", "x"), ("config", "get", "x")]
)
def test_a_usage_error_exits_with_2_and_prints_to_stderr(moot: MootProcess, words: tuple[str, ...]) -> None:
    ended = moot.run(*words)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.startswith(b"moot: ")


@pytest.mark.parametrize("words", [("config", "edit"), ("run",), ("chat", "new")], ids=" ".join)
def test_no_question_is_asked_without_a_terminal(moot: MootProcess, words: tuple[str, ...]) -> None:
    assert moot.run(*words, stdin=b"", timeout=20).returncode == 2


@pytest.mark.parametrize("words", [("chat", "list"), ("tools", "list"), ("config", "show"), ("version",)], ids=" ".join)
def test_a_closed_pipe_prints_no_error(moot: MootProcess, words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        ended = subprocess.run([*COMMAND, *words], cwd=moot.work, env=moot.environ, stdout=pipe, stderr=subprocess.PIPE, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_arguments_with_invalid_utf_8_do_not_crash(moot: MootProcess) -> None:
    for words in ([b"chat", b"show", b"\xff\xfe"], [b"\xff"], [b"run", b"-m", b"demo", b"--no-tools", b"caf\xe9"]):
        ended = subprocess.run(
            [*map(os.fsencode, COMMAND), *words], cwd=moot.work, env=moot.environ, capture_output=True, timeout=30, stdin=subprocess.DEVNULL
        )
        assert ended.returncode in (0, 2), ended.stderr
        assert b"Traceback" not in ended.stderr
        assert b"Unexpected" not in ended.stderr
