"""Picking one of many: a list below the prompt that filters as you type and is gone when something was picked.

`pick` is the one entry. It draws below what is already in the terminal, never on another screen; a terminal that cannot move its
cursor gets a numbered list and a question. Everything up to the drawing is pure and knows no terminal; only `application` imports
prompt-toolkit, and it is loaded by path when a person is really there.

| file | what it does |
|---|---|
| `application.py` | the list as a prompt-toolkit application that stays in the scrollback |
| `drawing.py` | what is on the screen, as styled pieces that fit a width |
| `feeding.py` | items page by page, from wherever they come |
| `frame.py` | the first picture, drawn before prompt-toolkit is imported; the application takes it over as it is |
| `items.py` | the values: items, columns, actions, what was picked |
| `keyboard.py` | keeps what is typed until the application reads it; gives the terminal back whatever happens |
| `listing.py` | which items are shown, in what order, and where the selection is |
| `matching.py` | how well an item fits what was typed |
| `numbered.py` | the same for a terminal that can only print |
| `picking.py` | `pick` |
"""

__all__: list[str] = []
