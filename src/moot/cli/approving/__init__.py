"""Asking a person at a terminal: may this call run, and what do you say to these questions?

`decide` is the one entry. Where the terminal can move its cursor it is a small application below what is there already; elsewhere a
typed line. Either way nothing is chosen beforehand, what was typed before the question is no answer to it, every control character of
what is decided about is spelled out, and all of it can be seen.

| file | what it does |
|---|---|
| `application.py` | a prompt as a prompt-toolkit application that leaves nothing behind |
| `calls.py` | a call that waits for a yes or no: its keys and what they lead to |
| `deciding.py` | `decide` |
| `drawing.py` | a prompt as lines that fit a screen, the rest to be scrolled to |
| `offered.py` | the answers that an outside agent takes, under our keys |
| `looking.py` | what a call would do: a command's parts, a change's diff, its arguments |
| `prompting.py` | what a prompt is to the application that shows it |
| `questions.py` | a tool's questions: options by number, several, own words |
| `quiet.py` | which keys are an answer, and which were only being typed |
| `rows.py` | lines cut to a width without losing a character |
| `situations.py` | the values: what is known around an approval, what came of asking |
| `typed.py` | the same as typed lines |
"""

__all__: list[str] = []
