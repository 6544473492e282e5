"""The format `html`. The modules that build the page are imported only when a page is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats.kit.fidelity import fidelity_of
from moot.plugins import Registry
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation

_PAGES = Registry("moot.pages", {"page": "moot.formats.html.page:page"})


class Html:
    """A `Format` that can only be written."""

    name = "html"
    version = 1
    suffix = ".html"
    words = "a self-contained page to read, print and share"
    holds: Mapping[str, FidelityLevel] = {
        **dict.fromkeys(("messages", "reasoning", "tool calls", "pictures", "times", "models", "costs", "titles", "branches"), "kept"),
        **dict.fromkeys(("files", "other parts", "usage"), "approximated"),
        "sub-agents": "kept",
    }
    outward: Literal[True] = True

    def sniff(self, path: Path, head: bytes) -> bool:
        return False

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        raise UsageError("HTML pages can't be imported.", fix="Export with `-f json` to move a conversation to another installation.")

    def write(self, exported: ExportedConversation) -> ExportFile:
        page: Callable[[ExportedConversation], str] = _PAGES.load("page")
        return ExportFile(page(exported).encode("utf-8", "replace"), fidelity_of(exported, self.holds))
