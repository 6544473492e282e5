"""`pick`: one of many, by a person at a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.cli.output import Output
from moot.cli.picking import numbered
from moot.cli.picking.drawing import moves_cursor, speaks_unicode
from moot.cli.picking.frame import Frame
from moot.cli.picking.items import Action, Choice, Column, Items, Picked, Scope
from moot.errors import UsageError
from moot.plugins.registry import Registry

_ONE_COLUMN = (Column(grows=True),)
_NO_KEYS: Mapping[str, Action] = {}
_SCREENS = Registry("moot.pickers", {"application": "moot.cli.picking.application:run"})
"""By path, so that who only might pick something does not wait for prompt-toolkit."""


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
    empty: str = "nothing here",
) -> Picked | None:
    """What the person picked, and how; None when they left.

    `keys` are further things to do with the selected one, by letter. `scopes` are more lists, which Tab goes to after this one.
    `filter`, `at` (an item's key) and `scope` are where it begins: hand in what the last `Picked` said to come back to the same place.
    Raises UsageError when nobody is there to pick.
    """
    return await choose(Choice((Scope(title, items), *scopes), tuple(columns), keys, enter, empty, filter, at, scope), output)


async def choose(choice: Choice, output: Output, frame: Frame | None = None) -> Picked | None:
    """`pick` with all that is asked in one; `frame` is what is on the screen of it already."""
    if not output.attended:
        raise UsageError("nothing can be picked from a list without a terminal", fix="Name it on the command line.")
    if not moves_cursor():
        return await numbered.run(choice, output)
    return await _SCREENS.load("application")(choice, output, unicode=speaks_unicode(), frame=frame)
