"""What the terminal of this process can show, by its size, its environment, its locale and the configuration's `ui`."""

from __future__ import annotations

import codecs
import locale
import os
import shutil

from moot.cli.output import Output
from moot.cli.screen.look import Look

__all__ = ["look_of", "size_now"]


def look_of(output: Output) -> Look:
    """The look of stdout. `ui.theme` (auto, dark, light, no-color) and `ui.animations` of the configuration have the last word."""
    wanted = output.ui
    theme = wanted.get("theme", "auto")
    dumb = os.environ.get("TERM", "") in ("dumb", "")
    return Look(
        width=size_now()[0],
        colour=output.stdout_colour and theme != "no-color",
        unicode=_says_unicode(),
        motion=not dumb and wanted.get("animations", True) is not False,
        light=theme == "light" or (theme == "auto" and _light_ground()),
    )


def size_now() -> tuple[int, int]:
    """Columns and lines of the terminal as they are now; COLUMNS and LINES go first, 80 and 24 where nobody knows."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines


def _says_unicode() -> bool:
    try:
        return codecs.lookup(locale.getpreferredencoding(False)).name == "utf-8" and not _plain_locale()
    except LookupError:
        return False


def _plain_locale() -> bool:
    """Whether the person's own locale is without letters beyond ASCII: Python takes UTF-8 there, the terminal need not."""
    named = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    return named in ("C", "POSIX")


def _light_ground() -> bool:
    """What terminals that set COLORFGBG say: `0;15` is black on white."""
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return ground in ("7", "15")
