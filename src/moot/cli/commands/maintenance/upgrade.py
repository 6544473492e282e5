"""The command `moot upgrade-check`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from moot import __version__
from moot.cli.arguments.signatures import AsJson, Plain
from moot.cli.console.lines import Lines
from moot.cli.context.configuration import here
from moot.config.home import home_of
from moot.config.loader import load
from moot.config.settings import Settings
from moot.engine.locks import find_server
from moot.errors import ConfigError, StoreError
from moot.store.database.schema import stored_version
from moot.store.migrations import newest, released


@dataclass(frozen=True, slots=True)
class Step:
    """One finding: `ok`, `change` (done automatically), `attention` (something to do before), or `blocked`."""

    name: str
    state: Literal["ok", "change", "attention", "blocked"]
    detail: str
    fix: str = ""


_EXIT_CODES = {"ok": 0, "change": 0, "attention": 1, "blocked": 2}


def upgrade_check(*, json: AsJson = False, output: Annotated[Lines, Plain]) -> int:
    """Report what this version would change in moot's home. Change nothing."""
    home = home_of(os.environ)
    database = Settings(home=home).database
    found, problem = _schema(database)
    migrations = [step.name for step in released()[found:]] if found else []
    steps = [*_of_database(database, found, problem), *_of_configuration(home), *_of_server(home)]
    code = max(_EXIT_CODES[step.state] for step in steps)
    if json:
        facts = {"version": __version__, "home": str(home), "schema": found, "newest_schema": newest(), "exit_code": code}
        output.json({**facts, "migrations": [*migrations], "steps": [asdict(step) for step in steps]})
        return code
    output.line(f"moot {__version__} and {home}")
    for step in steps:
        output.line(f"{step.state:<10} {step.name}: {step.detail}")
        if step.fix:
            output.line(f"{'':<10} {step.fix}")
    return code


def _schema(database: Path) -> tuple[int | None, StoreError | None]:
    """Return the database's schema version, or None if there is no database, and the error if it can't be read."""
    if not database.exists():
        return None, None
    try:
        return stored_version(database), None
    except StoreError as error:
        return None, error


def _of_database(database: Path, found: int | None, problem: StoreError | None) -> Iterator[Step]:
    if problem is not None:
        yield Step("database", "blocked", problem.message, problem.fix or "Restore a backup with `moot restore`.")
        return
    if found is None:
        yield Step("database", "ok", "there is no database yet")
        return
    if found > newest():
        words = f"schema {found} was written by a newer moot; this version supports {newest()}"
        yield Step("database", "blocked", words, "Use the newer version, or restore a backup made before the upgrade.")
        return
    if found == newest():
        yield Step("database", "ok", f"schema {found} is current")
        return
    names = ", ".join(step.name for step in released()[found:])
    yield Step("database", "change", f"schema {found} becomes {newest()} at the next start, with these migrations: {names}")
    size, free = database.stat().st_size, shutil.disk_usage(database.parent).free
    yield Step(
        "backup",
        "change",
        f"moot first copies the database ({size:,} bytes) to {database.parent / 'backups'}",
        "For a backup of everything, run `moot backup` with the version of moot that you use now.",
    )
    if free < 3 * size:
        yield Step("disk", "attention", f"only {free:,} bytes are free; the upgrade needs about {3 * size:,}", "Free some space first.")
    if not os.access(database.parent, os.W_OK):
        yield Step("folder", "attention", f"{database.parent} can't be written, so the upgrade would fail", "Make it writable first.")


def _of_configuration(home: Path) -> Iterator[Step]:
    try:
        loaded = load(home=home, environ=os.environ, directory=here())
        doubt = loaded.doubt
    except ConfigError as error:
        lines = [f"{key}: {why}" for key, why in error.problems] or [error.message]
        fix = error.fix or "Correct it with `moot config edit`; keys that this version doesn't know may have been renamed or removed."
        yield Step("configuration", "attention", " ".join([error.message, *lines[1:]]), fix)
        return
    for note in loaded.notes:
        yield Step("configuration", "attention", note)
    if doubt is not None:
        yield Step("configuration", "attention", doubt.message, doubt.fix)
    if doubt is None and not loaded.notes:
        yield Step("configuration", "ok", "all keys are known and have an effect")


def _of_server(home: Path) -> Iterator[Step]:
    server = find_server(home)
    if server is None:
        yield Step("server", "ok", "no server uses this home")
    else:
        words = f"the server at {server.url} (process {server.pid}) keeps running its own version until it is restarted"
        yield Step("server", "attention", words, "Stop it before the upgrade, and start it again afterwards.")
