"""Start of the browser: the first frame is drawn before the modules for actions are imported."""

from __future__ import annotations

from moot.cli.arguments.signatures import Call
from moot.cli.browsing.looking import Snapshot, Start, choice_of, read_snapshot
from moot.cli.browsing.rows import items_of
from moot.cli.configured import configured, here
from moot.cli.lines import Lines
from moot.cli.picking.drawing import View, moves_cursor
from moot.cli.picking.frame import Frame
from moot.cli.picking.keyboard import Keyboard
from moot.cli.picking.listing import Listing
from moot.plugins.registry import attribute

_PERFORM = "moot.cli.performing:perform"
_LOOP = "moot.cli.browsing.looping:loop"
"""Loaded by path: the event loop, prompt-toolkit and the engine take several times as long as the first frame."""


def browse(output: Lines, filter: str, start: Start) -> int:
    """Browse the conversations of this directory, or all if it has none. Return the exit code of the continued conversation, or 0.

    Raise ConfigError or StoreError on failure.
    """
    if not moves_cursor():
        return _loop(read_snapshot(configured(output), here(), filter, start), None, None)
    with Keyboard() as keyboard:
        snapshot = read_snapshot(configured(output), here(), filter, start)
        frame = _frame(snapshot, keyboard, output)
        try:
            return _loop(snapshot, keyboard, frame)
        finally:
            if frame is not None:
                frame.hide()


def _frame(snapshot: Snapshot, keyboard: Keyboard, output: Lines) -> Frame | None:
    if snapshot.page is None:
        return None
    listing = Listing(snapshot.filter)
    listing.add(items_of(snapshot.page, snapshot.live, snapshot.at))
    choice = choice_of(snapshot.directory, ((),) * 4, filter=snapshot.filter, scope=snapshot.scope)
    ended = snapshot.page.next_cursor is None and not snapshot.filter  # the store's filter matches only exact spellings
    frame = Frame(View(choice, snapshot.scope, listing, ended), keyboard, output)
    frame.show()
    return frame


def _loop(snapshot: Snapshot, keyboard: Keyboard | None, frame: Frame | None) -> int:
    code: int = attribute(_PERFORM)(Call(attribute(_LOOP), (snapshot, keyboard, frame), {}, bare=False))
    return code
