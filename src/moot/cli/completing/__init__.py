"""Shell completion of commands, options and values.

`table.json` lists every command's arguments and is written by `docs/generate.py`, because importing all commands takes too long.
"""

__all__: list[str] = []
