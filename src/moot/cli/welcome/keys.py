"""Whose an API key is, as far as its form tells."""

from __future__ import annotations

import re

from moot.providers.pool import Providers

__all__ = ["is_key", "vendor_of"]

_KEY = re.compile(r"[\x21-\x7e]{16,}")


def is_key(text: str) -> bool:
    """Whether it can be a key at all: long, and without blanks."""
    return _KEY.fullmatch(text) is not None


def vendor_of(key: str, providers: Providers) -> str:
    """The provider whose keys look like that; empty where the form does not tell, for a wrong guess would hand the key to a stranger."""
    forms = {name: providers.facts(name).key_form for name in providers.names()}
    found = [name for name, form in forms.items() if form and re.fullmatch(form, key)]
    return found[0] if len(found) == 1 else ""
