"""What a shell offers behind `moot`: commands, flags, and values from the configuration and the store; quick, and silent when in doubt.

| file | what it does |
|---|---|
| `commands.py` | `moot completion install` and `show` |
| `lines.py` | half a command line as words |
| `offering.py` | what fits at the end of it |
| `scripts.py` | the few lines that each shell needs |
| `table.json` | every command's arguments, written by `docs/generate.py`: importing the commands to ask them takes too long |
| `table.py` | making and reading that table |
| `values.py` | conversations, models, agents, tools, providers |
| `words.py` | `moot completion words`, which the shells' scripts call |
"""

__all__: list[str] = []
