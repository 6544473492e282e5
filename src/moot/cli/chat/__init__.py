"""`moot chat`: conversations as people handle them. Where each command is says the table of commands, `moot.cli.tree`.

| file | what it does |
|---|---|
| `running.py` | `new`, `continue`, `resume`: a prompt and its answer, then the loop on a terminal |
| `looping.py` | from one prompt into the conversation |
| `attaching.py` | `attach`, `stop`: somebody else's run |
| `listing.py` `sweeping.py` | `list`; where only an engine can say |
| `reading.py` | `show`, `tree` |
| `around.py` | `show --at`: a message where it was said |
| `raw.py` | `show --raw`: what went over the wire |
| `drawing.py` | a tree of messages as lines |
| `changing.py` | `delete`, `restore`, `rename`, `archive`, `fork`, `switch` |
| `facts.py` | a conversation, a message as JSON |
"""

__all__: list[str] = []
