"""Shell completion of commands, options and values.

`cli/arguments/table.json` lists the arguments of all commands, because importing the commands takes too long. It is written by
`docs/generate.py`.
"""

__all__: list[str] = []
