"""Recognition of API keys by their format."""

from __future__ import annotations

import re

from moot.providers.pool import Providers

__all__ = ["is_key", "vendor_of"]

_KEY = re.compile(r"[\x21-\x7e]{16,}")


def is_key(text: str) -> bool:
    """Return True if the text can be a key: long and without spaces."""
    return _KEY.fullmatch(text) is not None


def vendor_of(key: str, providers: Providers) -> str:
    """Return the provider whose keys have this format; empty if several do, because a wrong guess would leak the key."""
    forms = {name: providers.facts(name).key_form for name in providers.names()}
    found = [name for name, form in forms.items() if form and re.fullmatch(form, key)]
    return found[0] if len(found) == 1 else ""
