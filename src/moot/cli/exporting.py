"""`moot export`: conversations as files of some format."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import anyio
import anyio.to_thread

from moot.cli.arguments.parameters import Parameter
from moot.cli.asking import may_replace
from moot.cli.installing import install
from moot.cli.left_out import left_out_json, say_left_out, together
from moot.cli.opening import opened, opened_at
from moot.cli.options import Out
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.things import many, of_things
from moot.cli.times import beginning
from moot.engine import Engine
from moot.errors import UsageError
from moot.guard.terminal import clean
from moot.plugins import FORMATS
from moot.runtime.exporting import exported, gathered
from moot.runtime.filing import Filed, Filter, Folder, Sheet, filed, put, wanted
from moot.runtime.sharing import LeftOut, finder_here, kinds_of, refuse_whole, shareable
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.forgetting import KeptCopy
from moot.types.format import Fidelity, Format, Legible, Written

__all__ = ["Sharing", "export"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What may be in a form for others."""

    share: Annotated[bool, Parameter(name="--share", help="For others: secrets, homes, names and e-mails are left out, and listed.")] = (
        False
    )
    keep: Annotated[str, Parameter(name="--keep", help="With --share: kinds that stay in, as emails,paths; see docs/sharing.md.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """With --all: which conversations."""

    project: Annotated[str, Parameter(help="With --all: only those of a project.")] = ""
    agent: Annotated[str, Parameter(kind="agent", help="With --all: only those with that agent.")] = ""
    since: Annotated[str, Parameter(help="With --all: only those active since then, as 12h, 30d, 2w or 2026-01-31.")] = ""


@dataclass(frozen=True, slots=True)
class Made:
    """A conversation as a file, and what was left out of it."""

    written: Written
    title: str
    left_out: tuple[LeftOut, ...] = ()


Make: TypeAlias = Callable[[Engine, Conversation], Awaitable[Made]]

_OPENLY, _ANY = Sharing(), Chosen()


async def export(
    conversation: Annotated[
        str, Parameter(kind="conversation", help="Its id or the beginning of it, its title, or its number in `moot chat list`.")
    ] = "",
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", help="Every conversation, a file for each, into the folder of -o.")] = False,
    format: Annotated[
        str, Parameter(name=("--format", "-f"), kind="format", help="What to write; docs/export.md says what each keeps.")
    ] = "recording",
    to: Annotated[
        Path | None, Parameter(name=("--output", "-o"), kind="file", help="The file or, with --all, the folder; else it goes to stdout.")
    ] = None,
    branch: Annotated[
        Literal["all", "shown"], Parameter(name="--branch", help="Every branch where the format can, or the shown one.")
    ] = "all",
    sharing: Sharing = _OPENLY,
    chosen: Chosen = _ANY,
    install_: Annotated[
        bool,
        Parameter(name="--install", help="Into the folder of the agent whose format it is (claude, codex); what goes on with it is said."),
    ] = False,
    force: Annotated[bool, Parameter(help="With -o: replace the file without being asked.")] = False,
    json: Annotated[bool, Parameter(name="--json", help="With -o: what went along, as one JSON document on stdout.")] = False,
    output: Out,
) -> int:
    """Writes conversations as files of a format; what can't go along is said."""
    writer = _writer(format, sharing)
    make = partial(_made, writer=writer, branches=branch == "all", sharing=sharing, output=output)
    if all_:
        if conversation or to is None or install_:
            raise UsageError("--all writes every conversation into a folder", fix=f"moot export --all -f {format} -o FOLDER")
        options = f"{format} {writer.version} {branch} {sharing.share} {sharing.keep}"
        return await _all(Folder(to, writer.suffix), writer, make, chosen, options, output, json=json)
    if not conversation:
        raise UsageError("which conversation?", fix=f"moot export 1 -f {format}, or --all with -o FOLDER")
    if chosen != _ANY:
        raise UsageError("--project, --agent and --since choose among all", fix=f"moot export --all -f {format} -o FOLDER")
    if install_:
        if to is not None or sharing.share:
            raise UsageError(
                "--install names the file itself, and writes it for you alone", fix=f"moot export {conversation} -f {format} --install"
            )
        return await install(conversation, writer, output, json=json)
    if to is not None and not await may_replace(to, output, force=force):
        output.say("moot: nothing was written", "dim")
        return 1
    return await _one(conversation, to, writer, make, output, json=json)


def _writer(name: str, sharing: Sharing) -> Format:
    if name not in FORMATS:
        raise UsageError(f"{FORMATS.unknown(name)}; known: {', '.join(FORMATS.names())}")
    writer: Format = FORMATS.make(name)
    if sharing.share:
        refuse_whole(writer)
    elif sharing.keep:
        raise UsageError("--keep says what stays in with --share", fix="give --share too")
    return writer


async def _made(engine: Engine, conversation: Conversation, *, writer: Format, branches: bool, sharing: Sharing, output: Output) -> Made:
    if not sharing.share:
        return Made(await exported(engine.store, conversation, writer, branches=branches), conversation.title)
    finder = finder_here(output.secrets, kinds_of(sharing.keep))
    whole = await gathered(engine.store, conversation, writer, branches=branches)
    shared = await anyio.to_thread.run_sync(shareable, whole, finder)
    written = await anyio.to_thread.run_sync(writer.write, shared.exported)
    return Made(written, shared.exported.conversation.title, shared.left_out)


async def _one(which: str, to: Path | None, writer: Format, make: Make, output: Output, *, json: bool) -> int:
    if to is None and json:
        raise UsageError("--json tells of a file: name it with -o", fix=f"moot export {which} -f {writer.name} -o FILE --json")
    if to is None and output.stdout_terminal and not isinstance(writer, Legible):
        raise UsageError(
            f"a file of the format {writer.name!r} is no text for a screen",
            fix=f"moot export {which} -f {writer.name} -o FILE{writer.suffix}",
        )
    async with opened_at(which, output) as (engine, found):
        made = await make(engine, found)
        if to is not None:
            await anyio.to_thread.run_sync(put, to, made.written.data)
            await engine.store.forgetting.wrote([_copy(to, len(made.written.data), found)])
    if to is not None:
        _tell(made, to, output, json=json)
    elif output.stdout_terminal:
        output.data(clean(made.written.data.decode("utf-8", "replace")))
    else:
        sys.stdout.buffer.write(made.written.data)
        sys.stdout.buffer.flush()
    if not json:
        say_left_out(made.left_out, output)
    return 0


def _copy(path: Path, size: int, conversation: Conversation) -> KeptCopy:
    return KeptCopy(str(path.absolute()), "export", int(time.time() * 1000), size, conversation.id)


def _tell(made: Made, to: Path, output: Output, *, json: bool) -> None:
    fidelity = made.written.fidelity
    if json:
        document: JsonObject = {"ok": True, "file": str(to), "bytes": len(made.written.data), "fidelity": _counts(fidelity)}
        output.json({**document, "left_out": left_out_json(made.left_out)})
        return
    output.say(f"moot: wrote {to} ({len(made.written.data):,} bytes)")
    _say_counts(fidelity, output)


async def _all(folder: Folder, writer: Format, make: Make, chosen: Chosen, options: str, output: Output, *, json: bool) -> int:
    done: list[Filed] = []
    fidelity, left_out = Fidelity(), list[LeftOut]()
    progress, ended = Progress(output), False
    async with opened(output) as engine:
        project = (await engine.store.projects.get(chosen.project)).id if chosen.project else ""
        conversations = await wanted(engine.store, Filter(project, chosen.agent, beginning(chosen.since)), writer)

        async def sheet(conversation: Conversation) -> Sheet:
            made = await make(engine, conversation)
            left_out.extend(made.left_out)
            return Sheet(made.written, made.title)

        try:
            async with aclosing(filed(engine.store, conversations, folder, sheet, options)) as each:
                async for one in each:
                    done.append(one)
                    fidelity += one.fidelity
                    progress.show(f"moot: {len(done):,} of {len(conversations):,} conversations")
            ended = True
        finally:
            progress.close()
            folder.end()
            if done and not ended:
                output.say(
                    f"moot: {len(done):,} of {len(conversations):,} are in {folder.path}; the same command goes on from there", "yellow"
                )
            with anyio.CancelScope(shield=True):
                await engine.store.forgetting.wrote(
                    [_copy(folder.path / one.file, one.size, one.conversation) for one in done if one.outcome == "written"]
                )
    return _tell_all(done, folder.path, fidelity, left_out, output, json=json)


def _tell_all(done: list[Filed], folder: Path, fidelity: Fidelity, left_out: list[LeftOut], output: Output, *, json: bool) -> int:
    counts = Counter(one.outcome for one in done)
    failed = [one for one in done if one.outcome == "failed"]
    if json:
        document: JsonObject = {"ok": not failed, "folder": str(folder), "written": counts["written"], "unchanged": counts["unchanged"]}
        document["failed"] = [{"id": one.conversation.id, "problem": one.problem} for one in failed]
        document["data"] = [{"id": one.conversation.id, "outcome": one.outcome, "file": one.file} for one in done]
        output.json({**document, "fidelity": _counts(fidelity), "left_out": left_out_json(together(left_out))})
        return 1 if failed else 0
    unchanged = f"; {counts['unchanged']:,} are as they were" if counts["unchanged"] else ""
    output.say(f"moot: wrote {many(counts['written'], 'conversation')} to {folder}{unchanged}")
    _say_counts(fidelity, output)
    for one in failed:
        output.say(f"  {one.conversation.title or one.conversation.id}: {one.problem}", "yellow")
    say_left_out(together(left_out), output)
    return 1 if failed else 0


def _counts(fidelity: Fidelity) -> JsonObject:
    return {"kept": dict(fidelity.kept), "approximated": dict(fidelity.approximated), "lost": dict(fidelity.lost)}


def _say_counts(fidelity: Fidelity, output: Output) -> None:
    for word, things in (("kept", fidelity.kept), ("approximated", fidelity.approximated), ("lost", fidelity.lost)):
        if things:
            output.say(f"  {word}: {', '.join(of_things(things))}", "dim")
