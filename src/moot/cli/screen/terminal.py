"""What the terminal of this process can show, by its size, its environment, its locale and the configuration's `ui`."""

from __future__ import annotations

import codecs
import locale
import os
import shutil
from collections.abc import Mapping

from moot.cli.output import Output
from moot.cli.screen.look import Look

__all__ = ["look_of", "width_now"]


def look_of(output: Output, ui: Mapping[str, object] | None = None) -> Look:
    """The look of stdout. `ui.theme` (auto, dark, light, no-color) and `ui.animations` of the configuration have the last word."""
    wanted = ui or {}
    theme = wanted.get("theme", "auto")
    dumb = os.environ.get("TERM", "") in ("dumb", "")
    return Look(
        width=width_now(),
        colour=output.stdout_colour and theme != "no-color",
        unicode=_says_unicode(),
        motion=not dumb and wanted.get("animations", True) is not False,
        light=theme == "light" or (theme == "auto" and _light_ground()),
    )


def width_now() -> int:
    """The columns of the terminal as they are now; COLUMNS goes first, 80 where nobody knows."""
    return shutil.get_terminal_size().columns


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
