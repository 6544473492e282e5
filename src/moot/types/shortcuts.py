"""Keyboard shortcuts of the terminal: the actions with their default chords, and the chords that the configuration sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

ACTIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "enter": (("enter",), "Send, or run the selected command; queue while an answer is running"),
    "newline": (("alt+enter", "ctrl+j"), "New line"),
    "stop": (("esc",), "Stop the answer; queued prompts return to the input line"),
    "rewind": (("esc esc",), "Rewind to an earlier prompt if nothing is typed and no answer is running"),
    "cancel": (("ctrl+c",), "Set the draft aside, stop, or (twice) exit"),
    "end": (("ctrl+d",), "Exit if nothing is typed; asks if an answer is running"),
    "up": (("up",), "Go back to the queued prompt, draft or history"),
    "down": (("down",), "Go forward in the history"),
    "delete": (("del",), "Remove the queued prompt if nothing is typed"),
    "paste": (("ctrl+v",), "Attach the image in the clipboard"),
    "search": (("ctrl+r",), "Search the history"),
    "complete": (("tab",), "Complete /commands and @files"),
    "next_mode": (("shift+tab",), "Switch mode: ask, edits, plan"),
    "next_model": (("f2",), "Switch to the next recently used model"),
    "editor": (("ctrl+g", "ctrl+x e"), "Edit in $EDITOR"),
    "expand": (("ctrl+o",), "Print folded output in full, last one first"),
    "redraw": (("ctrl+l",), "Redraw the screen"),
    "suspend": (("ctrl+z",), "Suspend; fg resumes"),
    "steer": (("ctrl+x s",), "Steer: add the text to the running answer"),
    "new": (("ctrl+x n",), "New conversation"),
    "models": (("ctrl+x m",), "Choose a model"),
    "conversations": (("ctrl+x l",), "Choose a conversation"),
}
"""For each action its default chords and its description."""

LEADER = "ctrl+x"
"""The first key of chords of two keys, except for `esc esc`."""
ESCAPE_TWICE = "esc esc"
_NAMED = frozenset({"enter", "tab", "esc", "del", "insert", "home", "end", "pageup", "pagedown", "up", "down", "left", "right", "space"})
_KEY = re.compile(r"(?:(?P<modifiers>(?:(?:ctrl|alt|shift)\+)*))(?P<key>f(?:1[0-2]|[1-9])|[a-z0-9]|[a-z]{2,})")
_SAME = {"ctrl+m": "Enter", "ctrl+i": "Tab", "ctrl+h": "Backspace"}
_SHIFTED = frozenset({"tab", "up", "down", "left", "right", "home", "end", "del", "insert"})


def chords_of(own: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the chords of every action. Chords in `own` replace the default ones."""
    return {name: tuple(map(normalized, own[name])) if name in own else chords for name, (chords, _) in ACTIONS.items()}


def normalized(chord: str) -> str:
    """Return the chord in lower case, with single spaces and sorted modifiers."""
    return " ".join("+".join((*sorted(key.split("+")[:-1]), key.split("+")[-1])) for key in chord.lower().split())


def problems_of(own: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the action and a message for each invalid entry: unknown actions and chords, and chords of two actions."""
    taken: dict[str, str] = {chord: name for name, (chords, _) in ACTIONS.items() if name not in own for chord in chords}
    for name, chords in own.items():
        if name not in ACTIONS:
            yield name, f"Unknown action. The actions are {', '.join(ACTIONS)}."
            continue
        for chord in map(normalized, chords):
            if problem := _problem(chord):
                yield name, problem
            elif chord == ESCAPE_TWICE and name != "rewind":
                yield name, f"{label(chord)} can be used only for 'rewind'."
            elif taken.setdefault(chord, name) != name:
                yield name, f"{label(chord)} is already the key of {taken[chord]!r}. Set another key for {taken[chord]!r}, too."
    chosen = chords_of({name: chords for name, chords in own.items() if name in ACTIONS})
    if ESCAPE_TWICE in chosen["rewind"] and "esc" not in chosen["stop"]:  # the handler of Esc recognizes the second press
        also = "so 'stop' must include Esc. Add Esc to 'stop', or set another key for 'rewind'."
        yield "stop", f"{label(ESCAPE_TWICE)} is set for 'rewind', {also}"


def _problem(chord: str) -> str:
    first, _, second = chord.partition(" ")
    if chord in ("", ESCAPE_TWICE):
        return "" if chord else "The key is empty. To remove a shortcut, write an empty list: []."
    if chord == LEADER or (second and (first != LEADER or not re.fullmatch("[a-z0-9]", second))):
        return f"{chord!r} is not a chord: two keys are {label(LEADER)} and a letter or digit, as in 'ctrl+x e', or 'esc esc'."
    match = _KEY.fullmatch(first)
    modifiers = (match["modifiers"] or "").split("+")[:-1] if match else []
    key = match["key"] if match else ""
    if match is None or (len(key) > 1 and key not in _NAMED and not re.fullmatch(r"f\d+", key)) or len(modifiers) != len(set(modifiers)):
        return f"{chord!r} is not a key. Examples: ctrl+g, alt+enter, shift+tab, f2, ctrl+x e."
    if (same := first.replace("alt+", "")) in _SAME:
        other = _SAME[same] if same == first else f"Alt+{_SAME[same]}"
        return f"Terminals can't tell {label(first)} from {other}."
    if not modifiers and (len(key) == 1 or key == "space") and not second:
        return f"{chord!r} is a character that you type. Add ctrl or alt."
    lone = {"ctrl": {"enter", "tab", "esc"}, "alt": {"esc", "tab"}}
    if any(key in lone.get(one, set()) for one in modifiers) or ("shift" in modifiers and (key not in _SHIFTED or len(modifiers) > 1)):
        return f"Terminals don't send {label(chord)} as a key of its own."
    if len(modifiers) > 1 and len(key) > 1:
        return f"Terminals don't send {label(chord)} as a key of its own."
    return ""


def label(chord: str) -> str:
    """Return a chord as it is shown, such as `Ctrl+G`."""
    return " ".join("+".join(part.capitalize() for part in key.split("+")) for key in normalized(chord).split(" "))
