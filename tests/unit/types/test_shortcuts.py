"""Keyboard shortcuts: chords, their configuration, and conflicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.history import InMemoryHistory

from moot.cli.repl.composer import Composer
from moot.cli.repl.keys import KeyHandler, bindings, leader_hint, table
from moot.config.loader import FILE, load
from moot.errors import ConfigError
from moot.types.run import OnBusy
from moot.types.shortcuts import ACTIONS, chords_of, label, problems_of


class Recorder:
    """Actions that are only recorded."""

    queued = 0
    busy = False

    def __init__(self) -> None:
        self.done: list[str] = []

    def send(self, text: str, on_busy: OnBusy) -> None:
        self.done.append(f"{on_busy}: {text}")

    def do(self, name: str) -> None:
        self.done.append(name)


def test_the_default_keys_have_no_conflicts_and_are_keys_of_the_terminal() -> None:
    own = {name: chords for name, (chords, _) in ACTIONS.items()}
    assert list(problems_of(own)) == []
    composer = Composer(history=InMemoryHistory(), completer=DummyCompleter())
    chords = chords_of({})
    made = bindings(KeyHandler(composer, Recorder(), chords), composer, chords)
    assert len(made.bindings) > len(ACTIONS)


@pytest.mark.parametrize(
    ("action", "chord", "problem"),
    [
        ("serch", "ctrl+f", "Unknown action. The actions are enter, newline,"),
        ("search", "ctrl+g", "Ctrl+G is already the key of 'editor'. Set another key for 'editor', too."),
        ("search", "CTRL+X  n", "Ctrl+X N is already the key of 'new'."),
        ("search", "ctrl+x", "'ctrl+x' is not a chord: two keys are Ctrl+X and a letter or digit"),
        ("search", "ctrl+f g", "'ctrl+f g' is not a chord"),
        ("search", "ctrl+m", "Terminals can't tell Ctrl+M from Enter."),
        ("search", "shift+a", "Terminals don't send Shift+A as a key of its own."),
        ("search", "ctrl+enter", "Terminals don't send Ctrl+Enter as a key of its own."),
        ("search", "g", "'g' is a character that you type. Add ctrl or alt."),
        ("search", "hyper+g", "'hyper+g' is not a key."),
        ("search", "", "The key is empty."),
        ("search", "space", "'space' is a character that you type."),
        ("search", "alt+ctrl+m", "Terminals can't tell Alt+Ctrl+M from Alt+Enter."),
        ("search", "esc esc", "Esc Esc can be used only for 'rewind'."),
        ("stop", "f3", "Esc Esc is set for 'rewind', so 'stop' must include Esc."),
    ],
)
def test_unusable_keys_are_errors(tmp_path: Path, action: str, chord: str, problem: str) -> None:
    assert [text.startswith(problem) for _, text in problems_of({action: [chord]})] == [True]
    (tmp_path / FILE).write_text(f"keys:\n  {action}: '{chord}'\n")
    with pytest.raises(ConfigError) as raised:
        load(environ={"MOOT_HOME": str(tmp_path)}, directory=tmp_path)
    assert problem in raised.value.message and raised.value.line == 2


def test_configured_keys_replace_the_default_ones(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("keys:\n  search: ctrl+g\n  editor: [Alt+E, ctrl+x e]\n  rewind: f3\n  models: []\n")
    settings = load(environ={"MOOT_HOME": str(tmp_path)}, directory=tmp_path).settings
    chords = chords_of(settings.keys)
    shown = {words: keys for keys, words in table(chords)}
    assert (shown["Search the history"], shown["Edit in $EDITOR"]) == ("Ctrl+G", "Alt+E, Ctrl+X E")
    assert shown["New line"] == "Alt+Enter, Ctrl+J, \\ at the end" and "Choose a model" not in shown
    assert leader_hint(chords) == "Ctrl+X: e editor · s steer · n new · l conversations"
    assert label("shift+tab") == "Shift+Tab"


def test_the_order_of_modifiers_does_not_matter() -> None:
    assert chords_of({"search": ["Ctrl+Alt+F"]})["search"] == ("alt+ctrl+f",)
    assert [name for name, _ in problems_of({"search": ["ctrl+alt+f"], "editor": ["alt+ctrl+f"]})] == ["editor"]


def test_esc_can_be_replaced_for_both_actions() -> None:
    assert list(problems_of({"stop": ["f3"], "rewind": ["f4"]})) == []
    assert list(problems_of({"stop": ["f3", "esc"]})) == []


def test_esc_twice_rewinds_only_while_that_is_its_key() -> None:
    for own, expected in (({}, ["interrupt", "rewind"]), ({"rewind": ("f3",)}, ["interrupt", "interrupt"])):
        actions = Recorder()
        handler = KeyHandler(Composer(history=InMemoryHistory(), completer=DummyCompleter()), actions, chords_of(own))
        handler.act("stop")
        handler.act("stop")
        assert actions.done == expected
