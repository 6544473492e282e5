"""`moot backup` and `moot restore`: a home as one file, and back."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread

from moot.cli.arguments.parameters import Parameter
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.config.home import home_of
from moot.errors import UsageError
from moot.store.backing import read
from moot.store.backing import restore as restored
from moot.types.backup import Backup

Source = Annotated[Path, Parameter(kind="file", help="A file that `moot backup` wrote.")]


async def backup(
    to: Annotated[Path | None, Parameter(kind="file", help="A new file, or a folder for it; else the folder backups of the home.")] = None,
    /,
    *,
    check: Annotated[Path | None, Parameter(name="--check", kind="file", help="Only read that backup to its end and compare it.")] = None,
    with_secrets: Annotated[
        bool, Parameter(name="--with-secrets", help="With the keys that stand in your configuration; else they are masked.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Writes the whole home into one file, also while it is in use, and reads it again before it counts."""
    if check is not None:
        if to is not None:
            raise UsageError("a file to write and --check exclude each other")
        _tell("whole", await to_thread.run_sync(read, check.expanduser()), json, output)
        return
    progress = Progress(output)
    async with opened(output) as engine:
        folder = engine.settings.home / "backups"
        if to is None:
            await to_thread.run_sync(partial(folder.mkdir, mode=0o700, exist_ok=True))
        await engine.store.forgetting.finish()  # what is to be forgotten is not kept in a backup
        made = await engine.store.forgetting.backups.back_up(to or folder, secrets=with_secrets, tell=progress.show)
    progress.close()
    _tell("wrote", made, json, output)


async def restore(
    file: Source,
    /,
    *,
    into: Annotated[Path | None, Parameter(name="--into", kind="file", help="The home that it becomes; else that of MOOT_HOME.")] = None,
    replace: Annotated[bool, Parameter(name="--replace", help="Put what is in that home aside, beside it.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Makes a home of a backup: all of it, or nothing. A home that is not empty is left as it is, unless told otherwise."""
    home = into or home_of(os.environ)
    found, aside = await to_thread.run_sync(partial(restored, file.expanduser(), home, replace=replace))
    if json:
        output.json({**found.to_json(), "home": str(home), "aside": None if aside is None else str(aside)})
        return
    _print(found, output)
    output.line(f"home      {home}")
    if aside is not None:
        output.line(f"aside     {aside}")
    if not found.has_secrets and (home / "config.yaml").exists():
        output.say("moot: keys in the configuration were masked in that backup; put them back in config.yaml, or name variables", "yellow")


def _tell(what: str, found: Backup, as_json: bool, output: Output) -> None:
    if as_json:
        output.json({"ok": True, **found.to_json()})
        return
    output.line(f"{what:<9} {found.path}")
    _print(found, output)


def _print(found: Backup, output: Output) -> None:
    made = datetime.fromtimestamp(found.made_at / 1000).strftime("%Y-%m-%d %H:%M:%S")
    output.line(f"made      {made} by moot {found.program}, schema {found.schema}")
    output.line(f"holds     {found.files:,} {'file' if found.files == 1 else 'files'}, {found.size:,} bytes, packed {found.packed:,}")
