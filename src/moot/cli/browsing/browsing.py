"""The list of conversations for a person: its first picture is on the screen before anything is loaded that could act on it."""

from __future__ import annotations

from moot.cli.arguments.signatures import Call
from moot.cli.browsing.looking import Look, Place, choice_of, look_at
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
"""By path: an event loop, prompt-toolkit and the engine take several times as long as the first picture."""


def browse(output: Lines, filter: str, place: Place) -> int:
    """Shows the conversations of this directory (of all if it has none), Tab the others; the exit code of what was gone on with, else 0.

    Raises ConfigError, StoreError.
    """
    if not moves_cursor():
        return _loop(look_at(configured(output), here(), filter, place), None, None)
    with Keyboard() as keyboard:
        look = look_at(configured(output), here(), filter, place)
        frame = _frame(look, keyboard, output)
        try:
            return _loop(look, keyboard, frame)
        finally:
            if frame is not None:
                frame.hide()


def _frame(look: Look, keyboard: Keyboard, output: Lines) -> Frame | None:
    if look.page is None:
        return None
    listing = Listing(look.filter)
    listing.add(items_of(look.page, look.live, look.at))
    choice = choice_of(look.directory, ((),) * 4, filter=look.filter, scope=look.scope)
    ended = look.page.next_cursor is None and not look.filter  # of a filter the store finds only what is spelled like it
    frame = Frame(View(choice, look.scope, listing, ended), keyboard, output)
    frame.show()
    return frame


def _loop(look: Look, keyboard: Keyboard | None, frame: Frame | None) -> int:
    code: int = attribute(_PERFORM)(Call(attribute(_LOOP), (look, keyboard, frame), {}, bare=False))
    return code
