"""A run drawn for a terminal: events and stored messages in, lines out.

All of it is pure, without I/O and without a clock, but for `show.py`, `region.py`, `stored.py` and `terminal.py`, with which `moot run` and
`moot chat show` use it.

`Transcript` is what the faces of the command line use: `feed` it a run's events, print what `take` gives once and for all, and show what
`live` gives for as long as it stands. Everything drawn is untrusted and made fit first (`look.tidy`); the only control sequences are our
own SGR (`styles`).

| file | what it does |
|---|---|
| `addresses.py` | where a link leads, in plain sight |
| `blocks.py` `telling.py` | Markdown lines to paragraphs, lists, quotes, code, tables, as they stream |
| `bodies.py` | what stands below a card's title, folded when it is long |
| `calls.py` `cards.py` | tool calls: what each chunk makes of them; how they look |
| `cells.py` `wrapping.py` | columns of text, words into lines |
| `diffs.py` | diffs, with the words that changed |
| `highlight.py` `languages.py` | program text in colours |
| `leaves.py` `tables.py` | paragraphs, code; tables fitted to the width |
| `look.py` `styles.py` | what a terminal can show; styles as SGR |
| `markdown.py` | one Markdown text as it streams |
| `pieces.py` | the stretches that a run's drawing is made of |
| `region.py` | the lines at the bottom of the terminal that are redrawn |
| `show.py` | a run drawn as it goes on, without a composer |
| `spans.py` | emphasis, code and links inside a paragraph |
| `stored.py` | stored messages and calls |
| `terminal.py` | the look of this process's terminal |
| `transcript.py` | the whole |
| `views.py` | a call in its tool's own words |
"""

from moot.cli.screen.cards import Folded
from moot.cli.screen.look import Look
from moot.cli.screen.terminal import look_of
from moot.cli.screen.transcript import Transcript

__all__ = ["Folded", "Look", "Transcript", "look_of"]
