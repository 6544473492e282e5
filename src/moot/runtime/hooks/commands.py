"""Running a hook's command and reading its answer. Processes that the command started are killed when it ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from moot.config.home import read_text
from moot.config.loader import project_file
from moot.config.plugins.installed import check_unchanged
from moot.config.trust import is_trusted
from moot.convert.vendor import as_object
from moot.errors import ConfigError, Refused
from moot.guard.processes import Child, child_environment, kill_group, spawn
from moot.types.canonical import JsonObject, loads_exact
from moot.types.hooks import CommandHook, HookAnswer, HookEvent
from moot.types.sandbox import Confinement

KEPT = 64 * 1024
"""Maximum number of bytes kept of each stream. The rest is read and dropped."""

INSIDE = "CHILD_OF_MOOT_HOOK"
"""An environment variable set for hooks. A moot process started by a hook runs no hooks, because that could repeat endlessly."""

_DRAINING = 1.0
"""Seconds to wait for the end of the output after the command has ended."""

_BLOCKED = 2
"""The exit code that blocks."""

_BLOCKABLE: frozenset[HookEvent] = frozenset({"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact"})

ADDED: frozenset[HookEvent] = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events for which the output of hooks is added to the prompt."""


NOTHING = HookAnswer()


class Finished(NamedTuple):
    """The result of a command."""

    code: int | None
    """Exit code. None if the command did not end in time, or could not be started."""
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True, slots=True)
class HookResult:
    """The answer of one hook, and its messages for people."""

    answer: HookAnswer = NOTHING
    failure: str = ""
    """Reason why the hook failed; empty if it did not."""
    message: str = ""
    """A message from the hook to the user."""
    quiet: bool = False
    """True if its output must not be recorded."""


_TIED = '{{ [ -r /dev/fd/{0} ] && {{ read -r _ </dev/fd/{0}; kill -KILL 0; }}; }} </dev/null >/dev/null 2>&1 & exec /bin/sh -c "$1"'
"""Shell line that runs the command together with a process that kills their process group when moot ends.

It reads from a pipe whose other end the system closes when moot ends, even if moot was killed."""


async def run_command(
    hook: CommandHook, data: bytes, directory: Path, home: Path, sandbox: Callable[[], Awaitable[Confinement | None]] | None = None
) -> Finished:
    """Run the command with `data` on stdin. Its process group and all descendants are killed when it ends, fails or is cancelled.

    If moot is killed, the group is killed too. `sandbox` prepares the sandbox in which it runs.
    """
    began = time.monotonic()
    if hook.folder and not await to_thread.run_sync(_has_trust, hook.folder, home):
        return Finished(None, "", f"the project has changed since it was trusted; review it, then run 'moot trust {hook.folder}'", 0.0)
    if hook.plugin:
        try:
            await to_thread.run_sync(check_unchanged, home, hook.plugin)
        except Refused as error:
            return Finished(None, "", error.message, 0.0)
    own = {name: value or str(directory) for name, value in hook.env}
    env = {**child_environment(), **own, INSIDE: "1", "MOOT_PROJECT_DIR": str(directory)}
    stdout, stderr, code = bytearray(), bytearray(), None
    child, is_over = None, False
    theirs, ours = os.pipe()
    try:
        confinement = await sandbox() if sandbox is not None else None
        if confinement is not None:  # the sandbox itself ends with moot
            child = await spawn(("/bin/sh", "-c", hook.command), cwd=directory, env=env, stdin="pipe", sandbox=confinement)
        else:
            tied = ("/bin/sh", "-c", _TIED.format(theirs), "sh", hook.command)
            child = await spawn(tied, cwd=directory, env=env, stdin="pipe", fds=(theirs,))
        async with anyio.create_task_group() as group:
            group.start_soon(_write, child, data)
            drained = (anyio.Event(), anyio.Event())
            group.start_soon(_keep, child.stdout, stdout, drained[0])
            group.start_soon(_keep, child.stderr, stderr, drained[1])
            with anyio.move_on_after(hook.timeout):
                code = await child.wait()
                await kill_group(child.group, 0)  # processes that it left running must not keep its output open
                with anyio.move_on_after(_DRAINING):
                    for event in drained:
                        await event.wait()
            await child.kill(0)
            is_over = True
            group.cancel_scope.cancel()
    except Refused as error:
        return Finished(None, "", error.message, time.monotonic() - began)
    finally:
        os.close(theirs)
        try:
            if child is not None and not is_over:
                await child.kill(0)
        finally:
            os.close(ours)
    return Finished(code, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"), time.monotonic() - began)


def _has_trust(folder: str, home: Path) -> bool:
    file = project_file(Path(folder))
    try:
        return is_trusted(home, file, read_text(file))
    except ConfigError:
        return False


async def _write(child: Child, data: bytes) -> None:
    assert child.stdin is not None
    # the command may have ended or not read its input; uvloop reports a closed pipe as a RuntimeError
    with suppress(ConnectionError, RuntimeError):
        child.stdin.write(data)
        await child.stdin.drain()
        child.stdin.close()


async def _keep(stream: asyncio.StreamReader | None, into: bytearray, drained: anyio.Event) -> None:
    assert stream is not None
    while piece := await stream.read(1 << 16):
        into += piece[: max(KEPT - len(into), 0)]
    drained.set()


def read_answer(event: HookEvent, hook: CommandHook, finished: Finished, mask: Callable[[str], str] = str) -> HookResult:
    """Return the command's decision, from its exit code and output. `mask` removes secrets from texts that people see."""
    found = _decision(event, finished)
    failure = mask(_failure(hook, finished) or found.failure)
    answer = replace(found.answer, reason=mask(found.answer.reason), stop=mask(found.answer.stop))
    if failure and not answer.blocks:
        answer = HookAnswer("deny", failure) if hook.required and event in _BLOCKABLE else NOTHING
    return HookResult(answer, "" if answer.blocks and finished.code == _BLOCKED else failure, mask(found.message), found.quiet)


def _failure(hook: CommandHook, finished: Finished) -> str:
    """Return why the command failed, or an empty string if it did not."""
    code, stderr = finished.code, finished.stderr.strip()
    if code is None:
        return stderr if finished.seconds < hook.timeout and stderr else f"was stopped after {hook.timeout:g} s"
    return "" if code == 0 else f"failed with exit code {code}" + (f": {stderr.splitlines()[0]}" if stderr else "")


def _decision(event: HookEvent, finished: Finished) -> HookResult:
    """Return the result of a command that ended in time."""
    stdout = finished.stdout.strip()
    if finished.code == _BLOCKED and event in _BLOCKABLE:
        return HookResult(HookAnswer("deny", finished.stderr.strip() or stdout or "no reason given"))
    if finished.code != 0:
        return HookResult()
    if not stdout.startswith("{"):
        return HookResult(HookAnswer(context=stdout) if event in ADDED else NOTHING)
    try:
        value = loads_exact(stdout)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return _read_object(event, value)
    return HookResult(HookAnswer(context=stdout)) if event in ADDED else HookResult(failure="printed invalid JSON")


_PERMISSIONS = {"allow": "allow", "approve": "allow", "ask": "ask", "deny": "deny", "block": "deny"}
"""Decisions. `approve` and `block` are the older decisions on tool calls; other events use `block`."""


def _read_object(event: HookEvent, value: JsonObject) -> HookResult:
    inner = {**value, **as_object(value.get("hookSpecificOutput"))}
    decision = str(inner.get("permissionDecision") or value.get("decision") or "")
    if decision and decision not in _PERMISSIONS:
        return HookResult(failure=f"printed the unknown decision {decision[:40]!r}")
    permission = _PERMISSIONS.get(decision, "")
    if event != "PreToolUse" and (permission != "deny" or event not in _BLOCKABLE):
        permission = ""
    reason = str(inner.get("permissionDecisionReason") or value.get("reason") or "")
    stop = ""
    if value.get("continue") is False:
        stop = str(value.get("stopReason") or reason or "a hook ended the run")
    updated = inner.get("updatedInput")
    answer = HookAnswer(
        permission,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  from the table
        reason if permission else "",
        updated if isinstance(updated, dict) and event == "PreToolUse" else None,
        str(inner.get("additionalContext") or ""),
        stop,
    )
    return HookResult(answer, "", str(value.get("systemMessage") or ""), value.get("suppressOutput") is True)
