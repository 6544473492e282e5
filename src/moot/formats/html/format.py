"""The format `html`, for whoever only asks what it is; the page itself is made by what is loaded when it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats._writing import fidelity_of
from moot.plugins import Registry
from moot.types.format import ExportedConversation, ImportedConversation, Keeping, Written

__all__ = ["Html"]

_PAGES = Registry("moot.pages", {"page": "moot.formats.html.page:page"})


class Html:
    """`Format` that is only written."""

    name = "html"
    version = 1
    suffix = ".html"
    words = "a page to read, print and pass on, which needs nothing else"
    holds: Mapping[str, Keeping] = {
        **dict.fromkeys(("messages", "reasoning", "tool calls", "pictures", "times", "models", "costs", "titles", "branches"), "kept"),
        **dict.fromkeys(("files", "other parts", "usage"), "approximated"),
        "sub-agents": "kept",
    }
    outward: Literal[True] = True

    def sniff(self, path: Path, head: bytes) -> bool:
        return False

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        raise UsageError("a page can't be read back", fix="export with -f json to take a conversation elsewhere")

    def write(self, exported: ExportedConversation) -> Written:
        page: Callable[[ExportedConversation], str] = _PAGES.load("page")
        return Written(page(exported).encode("utf-8", "replace"), fidelity_of(exported, self.holds))
