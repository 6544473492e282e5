"""The terminal of this process: its size, environment and locale, and the `ui` settings."""

from __future__ import annotations

import codecs
import locale
import os
import shutil

from moot.cli.output import Output
from moot.cli.screen.look import Look

__all__ = ["look_of", "size_now"]


def look_of(output: Output) -> Look:
    """Return the look of stdout. The settings `ui.theme` (auto, dark, light, no-color) and `ui.animations` take precedence."""
    settings = output.ui
    theme = settings.get("theme", "auto")
    dumb = os.environ.get("TERM", "") in ("dumb", "")
    return Look(
        width=size_now()[0],
        colour=output.stdout_colour and theme != "no-color",
        unicode=_supports_unicode(),
        motion=not dumb and settings.get("animations", True) is not False,
        light=theme == "light" or (theme == "auto" and _has_light_background()),
    )


def size_now() -> tuple[int, int]:
    """Return the current columns and lines. COLUMNS and LINES take precedence; the default is 80 and 24."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines


def _supports_unicode() -> bool:
    try:
        return codecs.lookup(locale.getpreferredencoding(False)).name == "utf-8" and not _is_ascii_locale()
    except LookupError:
        return False


def _is_ascii_locale() -> bool:
    """Return whether the locale is C or POSIX: Python uses UTF-8 there, but the terminal may not."""
    name = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    return name in ("C", "POSIX")


def _has_light_background() -> bool:
    """Return whether COLORFGBG, which some terminals set, names a light background: `0;15` is black on white."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return background in ("7", "15")
