"""The commands of `moot kernel`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Protocol

import anyio.to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.output import Output
from moot.cli.context.output import Out
from moot.errors import ConfigError, UsageError
from moot.plugins import FACES
from moot.types.canonical import Json, JsonObject


class _Installed(Protocol):
    """An installed kernel."""

    @property
    def folder(self) -> Path: ...
    @property
    def python(self) -> str: ...
    def to_json(self) -> JsonObject: ...


class _Specification(Protocol):
    """Installs, lists and removes the kernel. The command line can't import the kernel's room."""

    def install(self, prefix: Path | None) -> _Installed: ...
    def installed(self) -> list[_Installed]: ...
    def uninstall(self, prefix: Path | None) -> list[_Installed]: ...


User = Annotated[bool, Parameter(help="Install for the current user. This is the default.")]
Prefix = Annotated[Path | None, Parameter(metavar="PATH", help="Environment to use, such as a virtual environment.")]
SysPrefix = Annotated[bool, Parameter(name="--sys-prefix", help="Use the environment in which moot is installed.")]


async def install(*, user: User = False, prefix: Prefix = None, sys_prefix: SysPrefix = False, json: AsJson = False, output: Out) -> None:
    """Install the kernel, so that Jupyter offers it for notebooks."""
    kernel, chosen = _kernel(), _prefix(prefix, sys_prefix, user)
    found = await anyio.to_thread.run_sync(lambda: kernel.install(chosen))
    if json:
        output.json(found.to_json())
        return
    output.say(f"moot: installed the kernel in {found.folder}", exact=True)
    output.say("moot: choose the kernel 'moot' in Jupyter, or run: jupyter lab", "dim")


async def uninstall(*, prefix: Prefix = None, sys_prefix: SysPrefix = False, json: AsJson = False, output: Out) -> None:
    """Remove the kernel from Jupyter. Conversations are kept."""
    kernel, chosen = _kernel(), _prefix(prefix, sys_prefix, False)
    removed = await anyio.to_thread.run_sync(lambda: kernel.uninstall(chosen))
    if json:
        output.json({"data": list[Json](one.to_json() for one in removed)})
        return
    for one in removed:
        output.say(f"moot: removed {one.folder}", exact=True)


async def list_kernels(*, json: AsJson = False, output: Out) -> None:
    """Show where the kernel is installed, and which Python runs it."""
    found = _kernel().installed()
    if json:
        output.json({"data": list[Json](one.to_json() for one in found), "next_cursor": None})
    elif not found:
        output.say("moot: the kernel is not installed; install it with: moot kernel install", "dim")
    for one in () if json else found:
        _print(one.folder, one.python, output)


def _print(folder: Path, python: str, output: Output) -> None:
    missing = "" if Path(python).exists() else "  (missing; run: moot kernel install)"
    output.data(f"{folder}  {python}{missing}\n")


def _kernel() -> _Specification:
    """Return the object that installs the kernel. Raise ConfigError if Jupyter's packages are missing."""
    try:
        kind: type[_Specification] = FACES.load("kernel")
    except ModuleNotFoundError as error:
        message = f"The kernel needs the package {error.name!r}, which is not installed."
        raise ConfigError(message, fix="pip install 'moot[kernel]'") from error
    return kind()


def _prefix(prefix: Path | None, sys_prefix: bool, user: bool) -> Path | None:
    if (prefix is not None) + sys_prefix + user > 1:
        raise UsageError("Use only one of --user, --prefix and --sys-prefix.")
    return Path(sys.prefix) if sys_prefix else prefix.expanduser().absolute() if prefix is not None else None
