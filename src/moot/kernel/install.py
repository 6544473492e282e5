"""The kernel's specification, which tells Jupyter how to start the kernel."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager

from moot.errors import NotFound, UsageError
from moot.types.canonical import JsonObject

NAME = "moot"
_LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="#0d665e"/>'
    '<circle cx="16" cy="16" r="4.2" fill="none" stroke="#fff" stroke-width="2.2"/><g fill="#fff"><circle cx="16" cy="6.4" r="2"/>'
    '<circle cx="24.31" cy="11.2" r="2"/><circle cx="24.31" cy="20.8" r="2"/><circle cx="16" cy="25.6" r="2"/>'
    '<circle cx="7.69" cy="20.8" r="2"/><circle cx="7.69" cy="11.2" r="2"/></g></svg>\n'
)


@dataclass(frozen=True, slots=True)
class Installed:
    """A folder with a specification of the kernel."""

    folder: Path
    python: str
    """The Python program that runs the kernel; empty = unknown."""

    def to_json(self) -> JsonObject:
        return {"folder": str(self.folder), "python": self.python, "exists": Path(self.python).exists()}


class KernelSpecification:
    """Installs, lists and removes the specification."""

    def content(self) -> JsonObject:
        """Return the content of `kernel.json`. The kernel runs in the environment of this process."""
        return {
            "argv": [sys.executable, "-m", "moot.kernel", "-f", "{connection_file}"],
            "display_name": "moot",
            "language": "moot",
            "interrupt_mode": "message",
            "metadata": {"debugger": False},
        }

    def install(self, prefix: Path | None) -> Installed:
        """Install the kernel below a prefix, or else for the current user. Raise UsageError if that fails."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "kernel.json").write_text(json.dumps(self.content(), indent=1) + "\n")
            (folder / "logo-svg.svg").write_text(_LOGO)
            root = None if prefix is None else str(prefix)
            try:
                place = KernelSpecManager().install_kernel_spec(name, NAME, user=prefix is None, prefix=root)
            except OSError as error:
                where = f" below {root!r}" if prefix is not None else ""
                raise UsageError(f"The kernel can't be installed{where}: {error.strerror}.", fix="moot kernel install --user") from error
        return Installed(Path(place), sys.executable)

    def installed(self, prefix: Path | None = None) -> list[Installed]:
        """Return the installed kernels, first the one that Jupyter uses. With `prefix`, return only those below it."""
        places: list[str] = [str(prefix / "share/jupyter/kernels")] if prefix is not None else KernelSpecManager().kernel_dirs
        return list(_found(places))

    def uninstall(self, prefix: Path | None = None) -> list[Installed]:
        """Remove all installed kernels and return them. Raise NotFound if there is none, UsageError if one can't be removed."""
        found = self.installed(prefix)
        if not found:
            raise NotFound("The kernel is not installed." if prefix is None else f"The kernel is not installed below {str(prefix)!r}.")
        for one in found:
            try:
                shutil.rmtree(one.folder)
            except OSError as error:
                raise UsageError(f"{str(one.folder)!r} can't be removed: {error.strerror}.", fix="Remove the folder yourself.") from error
        return found


def _found(places: list[str]) -> Iterator[Installed]:
    for place in dict.fromkeys(places):
        folder = Path(place, NAME)
        if (folder / "kernel.json").is_file():
            yield Installed(folder, _python(folder / "kernel.json"))


def _python(file: Path) -> str:
    try:
        found = json.loads(file.read_text("utf-8"))["argv"][0]
    except (OSError, ValueError, KeyError, IndexError, TypeError):  # damaged, or written by another program
        return ""
    return found if isinstance(found, str) else ""
