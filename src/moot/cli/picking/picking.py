"""`pick`: one of many, by a person at a terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from moot.cli.output import Output
from moot.cli.picking import numbered
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
    if not output.attended:
        raise UsageError("nothing can be picked from a list without a terminal", fix="Name it on the command line.")
    choice = Choice((Scope(title, items), *scopes), tuple(columns), keys, enter, empty, filter, at, scope)
    if os.environ.get("TERM", "") in ("dumb", ""):
        return await numbered.run(choice, output)
    return await _SCREENS.load("application")(choice, output, unicode=speaks_unicode())


def speaks_unicode() -> bool:
    """Whether the locale can show more than ASCII; one that says nothing is taken for a modern one."""
    named = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "UTF-8")
    return "utf-8" in named.lower() or "utf8" in named.lower()
