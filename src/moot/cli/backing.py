"""The commands `moot backup` and `moot restore`."""

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

Source = Annotated[Path, Parameter(kind="file", help="Backup file.")]


async def backup(
    to: Annotated[
        Path | None, Parameter(kind="file", help="New file, or directory for it. Defaults to the directory backups in moot's home.")
    ] = None,
    /,
    *,
    check: Annotated[Path | None, Parameter(name="--check", kind="file", help="Backup to verify instead of writing one.")] = None,
    with_secrets: Annotated[
        bool, Parameter(name="--with-secrets", help="Include the API keys of your configuration, which are masked by default.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Write the whole home to one file, even while it is in use, and verify the file."""
    if check is not None:
        if to is not None:
            raise UsageError("A destination and --check cannot be used together.")
        _print_result("verified", await to_thread.run_sync(read, check.expanduser()), json, output)
        return
    progress = Progress(output)
    async with opened(output) as engine:
        folder = engine.settings.home / "backups"
        if to is None:
            await to_thread.run_sync(partial(folder.mkdir, mode=0o700, exist_ok=True))
        await engine.store.forgetting.finish()  # pending purges must not end up in the backup
        made = await engine.store.forgetting.backups.back_up(to or folder, secrets=with_secrets, tell=progress.show)
    progress.close()
    _print_result("wrote", made, json, output)


async def restore(
    file: Source,
    /,
    *,
    into: Annotated[Path | None, Parameter(name="--into", kind="file", help="Home directory to restore to. Defaults to MOOT_HOME.")] = None,
    replace: Annotated[
        bool, Parameter(name="--replace", help="Replace existing data. The old data is kept in a directory next to it.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Restore a home from a backup, completely or not at all. A home with data is only replaced with `--replace`."""
    home = into or home_of(os.environ)
    found, aside = await to_thread.run_sync(partial(restored, file.expanduser(), home, replace=replace))
    if json:
        output.json({**found.to_json(), "home": str(home), "aside": None if aside is None else str(aside)})
        return
    _print(found, output)
    output.line(f"home      {home}")
    if aside is not None:
        output.line(f"old data  {aside}")
    if not found.has_secrets and (home / "config.yaml").exists():
        output.say("moot: this backup has no API keys; add them to config.yaml again, or use environment variables", "yellow")


def _print_result(what: str, found: Backup, as_json: bool, output: Output) -> None:
    if as_json:
        output.json({"ok": True, **found.to_json()})
        return
    output.line(f"{what:<9} {found.path}")
    _print(found, output)


def _print(found: Backup, output: Output) -> None:
    made = datetime.fromtimestamp(found.made_at / 1000).strftime("%Y-%m-%d %H:%M:%S")
    output.line(f"created   {made} by moot {found.program}, schema {found.schema}")
    output.line(f"contains  {found.files:,} {'file' if found.files == 1 else 'files'}, {found.size:,} bytes, {found.packed:,} compressed")
