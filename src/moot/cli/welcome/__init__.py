"""The first screen: where no model was ever chosen, what can be had here, and one question.

The whole of it comes before the engine is opened. `asked.settled` decides whether it is shown; a choice is tried with one small call
before it is written as `models.main` into the person's file.

| file | what it does |
|---|---|
| `asked.py` | `settled`: whether anybody is to be asked at all; light, so that every command may call it |
| `finding.py` | what can be had: keys, servers of this machine, the embedded model, the demo; agents by name |
| `drawing.py` | that as lines of a screen |
| `keys.py` | whose an API key is, by its form |
| `typing.py` | a line typed unseen |
| `choosing.py` | the question, the trial, and what is written |
"""

__all__: list[str] = []
