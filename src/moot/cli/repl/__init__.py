"""The REPL: bare `moot`.

| file | what it does |
|---|---|
| `answering.py` | the run that is being shown |
| `clipboard.py` | the clipboard: the terminal's, and programs |
| `completing.py` | commands and their arguments, completed |
| `composer.py` | the text that is being written |
| `conversing.py` | `bare` and `converse`: the engine, signals, the way in and out |
| `deciding.py` | what a run asks, put to the person |
| `desk.py` | keys and lines become deeds, what happens becomes a screen |
| `doing.py` | what a typed line comes to |
| `drafts.py` | what is being written, on the disk |
| `face.py` | who shows the conversation, as `talk` knows them |
| `hands.py` | what the keys do |
| `history.py` | what was typed before |
| `keys.py` | the table of keys |
| `logged.py` | what the rooms log, among the other lines |
| `mentions.py` | `@file` |
| `notices.py` | bell, notifications, a status line that a program draws |
| `paper.py` | finished text on its way into the scrollback |
| `pen.py` | what writes to the terminal |
| `plain.py` | the same for a terminal that can only print |
| `reloading.py` | the configuration, read again |
| `shelling.py` | `!cmd` |
| `shown.py` | what happens, put on the screen |
| `status.py` | the status line |
| `talk.py` | one conversation: prompts out, events in |
| `terminal.py` | the screen: scrollback, live lines, composer |
"""

__all__: list[str] = []
