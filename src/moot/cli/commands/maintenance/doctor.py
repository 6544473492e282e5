"""The command `moot doctor`, which checks everything and changes nothing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import moot
from moot import __version__
from moot.agents.budgets import unknown_names
from moot.cli.arguments.signatures import AsJson
from moot.cli.console.format import plural
from moot.cli.console.lines import innermost
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.output import Out
from moot.config.home import KEY_VARIABLES, home_of
from moot.config.loader import FILE, load
from moot.config.plugins.installed import plugin_notes, used_plugins
from moot.config.settings import ProviderSettings, Settings
from moot.engine.locks import live_owners
from moot.errors import ConfigError, MootError
from moot.guard.sandbox.mechanisms import find as find_mechanism
from moot.plugins import PROVIDERS, extensible
from moot.providers.machine import check_machine
from moot.providers.pool import Listens, Providers
from moot.providers.weights import DEFAULT, find, installed_weights
from moot.store import open_store
from moot.store.database.connection import NAME, VERSION, has_wal_reset_bug
from moot.types.canonical import Json, JsonObject
from moot.types.sandbox import MECHANISMS

State: TypeAlias = Literal["ok", "note", "broken"]

_DAY = 86_400
_NARROW = 40
_SHOWN = 4
"""Number of characters to show from the end of a key."""
_LONG = 20
"""Minimum length of a key for its end to be shown, in characters."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    name: str
    state: State
    detail: str
    fix: str = ""

    def to_json(self) -> JsonObject:
        return {"name": self.name, "state": self.state, "detail": self.detail, "fix": self.fix}


def processes(settings: Settings) -> Finding:
    """List other live processes that have run agents in this home, and count the locks left by processes that have ended."""
    places, dead = live_owners(settings.owners)
    words = ", ".join(f"process {place.pid} on {place.host}" for place in places) or "none"
    stale = f"; {plural(dead, 'stale lock')}, removed by the next run" if dead else ""
    return Finding("processes", "ok", f"{words}{stale}")


def credentials(settings: Settings, origin: Mapping[str, str], environ: Mapping[str, str]) -> Finding:
    """List where each provider's key comes from, and the environment variables that it overrides."""
    used: list[str] = []
    unused: list[str] = []
    for name, entry in sorted(settings.providers.items()):
        variables = [variable for variable in KEY_VARIABLES.get(name, ()) if environ.get(variable)]
        place = origin.get(f"providers.{name}.api_key", "")
        if entry.api_key:
            losers = [variable for variable in variables if not place.endswith(f" {variable}") and environ[variable] != entry.api_key]
            shown = f"…{entry.api_key[-_SHOWN:]}" if len(entry.api_key) >= _LONG else "a short key"
            used.append(f"{name}: {shown} from {place}" + (f", not {' and '.join(losers)}" if losers else ""))
        elif entry.base_url:
            unused += [f"{variable} is not sent to providers.{name}.base_url" for variable in variables]
    if unused:
        fix = "To send the key to this URL, run: moot config set providers.NAME.api_key '${VARIABLE}'"
        return Finding("keys", "note", "; ".join([*used, *unused]), fix)
    return Finding("keys", "ok", "; ".join(used) or "none")


def terminal(output: Output) -> Finding:
    """Check what the terminal can display."""
    if not output.stdout_terminal:
        return Finding("terminal", "ok", "stdout is not a terminal; output is plain text")
    size = shutil.get_terminal_size()
    encoding = (sys.stdout.encoding or "").lower()
    words = [f"{os.environ.get('TERM') or 'TERM is not set'}", f"{size.columns} x {size.lines}"]
    words += ["color" if output.stdout_colour else "no color", encoding]
    fixes: list[str] = []
    if encoding.replace("-", "") != "utf8":
        fixes.append("Set LANG to a UTF-8 locale, for example LANG=C.UTF-8.")
    if size.columns < _NARROW:
        fixes.append(f"Widen the window to at least {_NARROW} columns.")
    if os.environ.get("TERM", "") in ("", "dumb"):
        fixes.append("Set TERM to your terminal's type, for example TERM=xterm-256color.")
    return Finding("terminal", "note" if fixes else "ok", ", ".join(words), " ".join(fixes))


def clock(settings: Settings, now: float | None = None) -> Finding:
    """Check that the clock is not behind the time of the installation or of the last write to the database.
    `now` is in seconds since the epoch.
    """
    now = time.time() if now is None else now
    shown = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    fix = "Set the clock. moot sorts conversations by it, and TLS certificates are checked against it."
    for path, what in ((Path(moot.__file__), "moot was installed"), (settings.database, "the database was written")):
        if path.exists() and path.stat().st_mtime > now + _DAY:
            return Finding("clock", "broken", f"the clock shows {shown}, but {what} later than that", fix)
    return Finding("clock", "ok", shown)


MINIMUM_FREE = 200_000_000
"""Minimum free disk space in bytes. With less, the check fails."""


Check: TypeAlias = Callable[[Settings], Finding | Awaitable[Finding]]


async def doctor(*, json: AsJson = False, output: Out) -> int:
    """Run all checks. Return 1 if something is broken."""
    settings, origin, configuration = _configuration(output)
    findings = [Finding("moot", "ok", f"{__version__}, Python {platform.python_version()}, {platform.platform()}"), configuration]
    checks: tuple[tuple[str, Check], ...] = (
        ("home", _home),
        ("disk", _disk),
        ("sqlite", _library),
        ("database", _database),
        ("budgets", lambda settings: _budgets(settings, origin)),
        ("processes", processes),
        ("clock", clock),
        ("terminal", lambda _: terminal(output)),
        ("sandbox", _sandbox),
        ("plugins", _plugins),
        ("keys", lambda settings: credentials(settings, origin, os.environ)),
        ("providers", _providers),
        ("weights", _weights),
        ("embedded model", _machine),
    )
    for name, check in checks:
        try:
            found = check(settings)
            findings.append(found if isinstance(found, Finding) else await found)
        except MootError as error:
            findings.append(Finding(name, "broken", error.message, error.fix))
        except Exception as error:  # noqa: BLE001  a check that fails is a finding
            cause = innermost(error)
            findings.append(Finding(name, "broken", f"{type(cause).__name__}: {cause}"))
    broken = any(finding.state == "broken" for finding in findings)
    if json:
        output.json({"ok": not broken, "data": list[Json]([finding.to_json() for finding in findings])})
    else:
        _print(findings, output)
    return 1 if broken else 0


def _configuration(output: Output) -> tuple[Settings, Mapping[str, str], Finding]:
    home = home_of(os.environ)
    try:
        loaded = load(environ=os.environ, directory=here())
    except MootError as error:
        return Settings(home), {}, Finding("configuration", "broken", error.message, error.fix)
    output.hide(loaded.secrets)
    path = home / FILE
    words = str(path) if path.exists() else f"no file at {path}; using defaults"
    return loaded.settings, loaded.origin, Finding("configuration", "note" if loaded.notes else "ok", "; ".join([words, *loaded.notes]))


def _home(settings: Settings) -> Finding:
    home = settings.home
    existing = _existing(home)
    if not existing.is_dir():
        return Finding("home", "broken", f"{existing} is not a directory", "Set MOOT_HOME to a directory that you can write to.")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding(
            "home", "broken", f"{existing} is not writable: {error.strerror}", "Set MOOT_HOME to a directory that you can write to."
        )
    return Finding("home", "ok", str(home) if home == existing else f"{home}, created on first use")


def _disk(settings: Settings) -> Finding:
    free = shutil.disk_usage(_existing(settings.home)).free
    words = f"{free / 1e9:.1f} GB free"
    copies = 0
    for folder, _, names in os.walk(settings.database.parent / "hosts"):
        for name in names:
            with suppress(OSError):  # a running sync replaces files
                copies += (Path(folder) / name).lstat().st_size
    words += f"; {copies / 1e9:.1f} GB of copies from other machines" if copies else ""
    return Finding("disk", "ok", words) if free >= MINIMUM_FREE else Finding("disk", "broken", words, "Free some disk space.")


def _library(settings: Settings) -> Finding:
    words = f"{NAME} with SQLite {'.'.join(str(part) for part in VERSION)}"
    if not has_wal_reset_bug(VERSION):
        return Finding("sqlite", "ok", f"{words}: safe")
    return Finding(
        "sqlite",
        "note",
        f"{words} has the WAL-reset bug; moot works around it by serializing commits and checkpoints",
        "pip install pysqlite3",
    )


async def _database(settings: Settings) -> Finding:
    if not settings.database.exists():
        return Finding("database", "ok", f"none yet at {settings.database}")
    async with await open_store(settings) as store:
        health = await store.health()
    words = ", ".join(f"{key} {health[key]}" for key in ("schema", "integrity", "bytes", "conversations", "messages", "runs"))
    words = f"{settings.database}: {words}; protection: {health['protection']}"
    if health["integrity"] == "ok":
        return Finding("database", "ok", words)
    return Finding("database", "broken", words, f"Make a copy of {settings.database.parent} before anything else.")


async def _budgets(settings: Settings, origin: Mapping[str, str]) -> Finding:
    """Check that the users and projects named in budgets exist."""
    if not settings.budgets or not settings.database.exists():
        return Finding("budgets", "ok", "none" if not settings.budgets else f"{len(settings.budgets)}, not checked without a database")
    async with await open_store(settings) as store:
        unknown = await unknown_names(store, settings.budgets)
    if not unknown:
        return Finding("budgets", "ok", ", ".join(budget.name for budget in settings.budgets))
    faults = [f"budgets.{one.budget} has no effect: {one.problem} ({origin[f'budgets.{one.budget}.{one.key}']})" for one in unknown]
    return Finding("budgets", "note", " ".join(faults), "Correct the name, or create the user or project.")


async def _sandbox(settings: Settings) -> Finding:
    """Check which sandbox is available for commands."""
    if not settings.sandbox.enabled:
        return Finding("sandbox", "note", "turned off by sandbox.enabled")
    found = await find_mechanism(MECHANISMS)
    words = "; ".join(found.missing)
    if found.is_complete:
        return Finding("sandbox", "ok", str(found.mechanism))
    fix = "Install bubblewrap, and allow user namespaces. Until then, permission mode 'auto' asks before running commands."
    if found.mechanism is None:
        return Finding("sandbox", "broken" if settings.sandbox.required else "note", f"none ({words})", fix)
    return Finding("sandbox", "note", f"{found.mechanism}, which restricts commands less ({words})", fix)


def _plugins(settings: Settings) -> Finding:
    """Check that everything provided by other packages can be loaded, and that installed plugins have not changed."""
    found = [f"{plugin.name} ({plugin.folder})" for plugin in used_plugins(settings.home)]
    faults: list[str] = []
    for registry in extensible():
        faults += registry.clashes()
        for name in registry.names():
            if not (package := registry.package(name)):
                continue
            found.append(f"{registry.group}: {name} ({package})")
            entry = settings.providers.get(name) or ProviderSettings(name)
            try:
                registry.make(name, *([replace(entry, home=settings.home)] if registry is PROVIDERS else []))
            except ConfigError:
                pass  # a problem with its settings, not with the plugin
            except MootError as error:
                faults.append(error.message)
    words = "; ".join(found) or "none"
    if faults:
        return Finding("plugins", "broken", f"{words}. {'; '.join(faults)}", "Uninstall the package, or report it to its author.")
    if notes := plugin_notes(settings.home):
        return Finding("plugins", "note", f"{words}. {' '.join(notes)}", "moot plugins list")
    return Finding("plugins", "ok", words)


async def _providers(settings: Settings) -> Finding:
    providers = Providers(settings)
    try:
        available = providers.available()
        silent = await providers.silent()
        listening = [name for name in available if isinstance(providers.provider(name), Listens) and name not in silent]
    finally:
        await providers.close()
    with_key = [name for name in available if providers.facts(name).needs_key]
    words = f"with an API key: {', '.join(with_key) or 'none'}; running on this machine: {', '.join(listening) or 'none'}"
    return Finding("providers", "ok", f"{words}; always available: demo")


def _weights(settings: Settings) -> Finding:
    here = installed_weights(settings.home)
    if here:
        return Finding("weights", "ok", ", ".join(weights.title for weights in here))
    return Finding("weights", "note", "no embedded model is installed", "moot models pull")


def _machine(settings: Settings) -> Finding:
    try:
        check_machine(find(DEFAULT).memory)
    except MootError as error:  # not a problem with the installation: there are other models
        return Finding("embedded model", "note", error.message, error.fix)
    return Finding("embedded model", "ok", "can run on this machine")


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _print(findings: list[Finding], output: Output) -> None:
    marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("BROKEN", "red")}
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = marks[finding.state]
        output.data(f"{output.styled(f'{mark:<6}', style)}  {finding.name:<{width}}  {output.fit(finding.detail)}\n")
        if finding.fix:
            output.data(f"{'':{width + 10}}{output.fit(finding.fix)}\n")
