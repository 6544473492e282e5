"""`pick`: let the user choose one item of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.cli.output import Output
from moot.cli.picking import numbered
from moot.cli.picking.drawing import moves_cursor, speaks_unicode
from moot.cli.picking.frame import Frame
from moot.cli.picking.items import Action, Choice, Column, Items, Picked, Scope
from moot.errors import UsageError
from moot.plugins.registry import attribute

_ONE_COLUMN = (Column(grows=True),)
_NO_KEYS: Mapping[str, Action] = {}
_APPLICATION = "moot.cli.picking.application:run"
"""Loaded by path: commands that only might need the picker don't import prompt-toolkit."""


async def pick(
    items: Items,
    *,
    title: str,
    output: Output,
    columns: Sequence[Column] = _ONE_COLUMN,
    keys: Mapping[str, Action] = _NO_KEYS,
    enter: str = "choose",
    scopes: Sequence[Scope] = (),
    filter: str = "",
    at: str = "",
    scope: int = 0,
    empty: str = "Nothing to choose from",
) -> Picked | None:
    """Return what the user picked and how, or None if they left.

    `keys` are further actions on the selected item, by letter. `scopes` are more lists, which Tab switches to. `filter`, `at` (an item's
    key) and `scope` set the initial state: pass the values of the last `Picked` to return to the same place.
    Raise UsageError if there is no terminal to ask at.
    """
    return await choose(Choice((Scope(title, items), *scopes), tuple(columns), keys, enter, empty, filter, at, scope), output)


async def choose(choice: Choice, output: Output, frame: Frame | None = None) -> Picked | None:
    """Do the same as `pick` for a ready-made `Choice`. `frame` is the picture already on the screen."""
    if not output.attended:
        raise UsageError("Cannot show a list to choose from without a terminal.", fix="Name the item on the command line.")
    if not moves_cursor():
        return await numbered.run(choice, output)
    return await attribute(_APPLICATION)(choice, output, unicode=speaks_unicode(), frame=frame)
