"""Bad input to the real process: a clear message, the right exit code, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.cli_process import make
from moot.testing.process import ScriptedProcess

MINE = "models: {main: big@mine}\nproviders: {mine: {base_url: 'http://127.0.0.1:9/v1', models: {big: {}}}}\n"
TORTURE = "[bold red]evil[/] [link=http://e]l[/] {0.x!r} %s%n {{7*7}} <b>&lt; $HOME`id`"

BAD = [
    (["run", "-m", "big@mien", "hi"], MINE, "Did you mean 'mine'?"),
    (["run", "-m", "claude-sonet-4-5@anthropic", "hi"], "providers: {anthropic: {api_key: x}}", "Did you mean"),
    (["run", "--tools=reed_file", "hi"], MINE, "Did you mean 'read_file'?"),
    (["run", "-c=nowhere", "hi"], MINE, "'nowhere'"),
    (["run", "--modell", "x", "hi"], MINE, "Did you mean '--model'?"),
    (["run", "-m", "claude-sonnet-4-5@anthropic", "hi"], "", "ANTHROPIC_API_KEY, or providers.anthropic.api_key in"),
    (["run", "hi"], "models: {main: x}\nmdels: {}\n", "config.yaml:2:1: Unknown key 'mdels'. Did you mean 'models'?"),
    (["run", "hi"], "models:\n  main: [x\nproviders: {}\n", "config.yaml:3:10: "),
    (["run", "hi"], "models:\n  main: ${NOT_SET_X}\n", "config.yaml:2:9: models.main: The environment variable 'NOT_SET_X' is not set."),
    (["run", "hi"], "\udcff\udcfe", "config.yaml:1:1: The file is not valid UTF-8."),
]


@pytest.mark.parametrize(("arguments", "config", "words"), BAD, ids=[" ".join(row[0]) + str(number) for number, row in enumerate(BAD)])
def test_invalid_input_exits_with_2_and_a_hint_and_stores_nothing(tmp_path: Path, arguments: list[str], config: str, words: str) -> None:
    moot = make(tmp_path)
    (moot.home / "config.yaml").write_bytes(config.encode(errors="surrogateescape"))
    ended = moot.run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert words in ended.stderr.decode()
    assert b"Traceback" not in ended.stderr
    database = moot.home / "data" / "moot.db"
    assert not database.exists() or json.loads(moot.run("chat", "list", "--json").stdout)["data"] == []


def test_invalid_utf_8_is_reported_and_replaced(tmp_path: Path, obedient: ScriptedProcess) -> None:
    moot = make(tmp_path, obedient.config())
    ended = moot.run("run", "--no-tools", "--", b"argument \xff\xfe".decode(errors="surrogateescape"), stdin=b"say caf\xe9 \xff\0.")
    assert (ended.returncode, ended.stdout.decode()) == (0, "caf\ufffd \ufffd\0.\n")
    assert b"stdin is not valid UTF-8 from byte 7 on" in ended.stderr
    (user, _) = json.loads(moot.run("chat", "show", "1", "--json").stdout)["data"]
    assert user["parts"][0]["text"] == "argument \ufffd\ufffd\n\nsay caf\ufffd \ufffd\0."


@pytest.mark.parametrize("screen", [False, True])
def test_markup_and_formats_in_untrusted_text_are_only_text(tmp_path: Path, obedient: ScriptedProcess, screen: bool) -> None:
    moot = make(tmp_path, obedient.config())
    text = TORTURE
    wanted = text.encode()
    arguments = (
        ["run", "--no-tools", f"{text}\nsay {text}"],
        ["chat", "list", "--plain"],
        ["chat", "show", text],
        ["search", "evil"],
        ["run", "-m", text, "x"],
    )
    for words in arguments:
        if screen:
            terminal = moot.terminal(*words)
            terminal.setwinsize(50, 400)
            shown = terminal.read()
        else:
            ended = moot.run(*words)
            shown = ended.stdout + ended.stderr
        assert b"Traceback" not in shown
        if not screen or words[1] == "show":
            assert wanted in shown, words
