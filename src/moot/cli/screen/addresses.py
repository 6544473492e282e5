"""Where a link leads, in plain sight: the shown text of a link is a stranger's words, its host is not.

No link is ever made of untrusted text in the terminal's own way (OSC 8), which would hide where it leads.
"""

from __future__ import annotations

import unicodedata
from urllib.parse import urlsplit

__all__ = ["beside"]


def beside(label: str, address: str) -> str:
    """What to show behind a link's text: the whole address unless that is the text, and its host where it does not show plainly."""
    shown = "" if label == address else f" ({address})"
    host = _hidden_host(address)
    return f"{shown} [host: {host}]" if host else shown


def _hidden_host(address: str) -> str:
    """The host, when somebody who reads the address could take another one for it; empty when it is plain."""
    try:
        parts = urlsplit(unicodedata.normalize("NFKC", address))
        host = parts.hostname or ""
    except ValueError:
        return "unreadable"
    if not parts.netloc:
        return ""
    if "@" in parts.netloc or "\\" in address or "%" in parts.netloc:
        return _ascii(host)
    return "" if address.partition("://")[2].partition("/")[0].isascii() else _ascii(host)


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host.encode("ascii", "backslashreplace").decode()
