"""The command `moot export`."""

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
from moot.cli.left_out import left_out_json, say_left_out, total_by_kind
from moot.cli.opening import opened, opened_at
from moot.cli.options import Out, Which
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.things import format_counts, plural
from moot.cli.times import parse_since
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
    """Options for exports that are shared with other people."""

    share: Annotated[
        bool, Parameter(name="--share", help="Remove secrets, home directories, names and e-mail addresses, and list what was removed.")
    ] = False
    keep: Annotated[str, Parameter(name="--keep", metavar="KINDS", help="With --share: kinds of data to keep, such as emails,paths.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of --all."""

    project: Annotated[str, Parameter(help="With --all: only conversations of this project.")] = ""
    agent: Annotated[str, Parameter(kind="agent", help="With --all: only conversations with this agent.")] = ""
    since: Annotated[
        str, Parameter(metavar="TIME", help="With --all: only conversations active since then: 12h, 30d, 2w or 2026-01-31.")
    ] = ""


@dataclass(frozen=True, slots=True)
class Export:
    """An exported conversation, and what was removed from it."""

    written: Written
    title: str
    left_out: tuple[LeftOut, ...] = ()


Exporter: TypeAlias = Callable[[Engine, Conversation], Awaitable[Export]]

_NOT_SHARED, _NO_FILTERS = Sharing(), Filters()


async def export(
    conversation: Which = "",
    /,
    *,
    all_: Annotated[
        bool, Parameter(name="--all", help="Export every conversation to a file of its own in the directory given by -o.")
    ] = False,
    format: Annotated[
        str, Parameter(name=("--format", "-f"), kind="format", help="Output format. docs/export.md compares the formats.")
    ] = "recording",
    to: Annotated[
        Path | None, Parameter(name=("--output", "-o"), kind="file", help="Output file, or directory with --all. Defaults to stdout.")
    ] = None,
    branch: Annotated[
        Literal["all", "shown"],
        Parameter(name="--branch", metavar="BRANCHES", help="Branches to export: all that the format supports, or the shown one."),
    ] = "all",
    sharing: Sharing = _NOT_SHARED,
    chosen: Filters = _NO_FILTERS,
    install_: Annotated[
        bool,
        Parameter(
            name="--install",
            help="Write the session where the agent of the format (claude, codex) finds it, and print the command to continue it.",
        ),
    ] = False,
    force: Annotated[bool, Parameter(help="With -o: replace an existing file without prompting.")] = False,
    json: Annotated[bool, Parameter(name="--json", help="With -o: print a report as one JSON document to stdout.")] = False,
    output: Out,
) -> int:
    """Export conversations, and report what the format cannot represent."""
    writer = _writer(format, sharing)
    exporter = partial(_made, writer=writer, branches=branch == "all", sharing=sharing, output=output)
    if all_:
        if conversation or to is None or install_:
            raise UsageError("--all needs an output directory and no other target.", fix=f"moot export --all -f {format} -o DIRECTORY")
        options = f"{format} {writer.version} {branch} {sharing.share} {sharing.keep}"
        return await _all(Folder(to, writer.suffix), writer, exporter, chosen, options, output, json=json)
    if not conversation:
        raise UsageError("No conversation given.", fix=f"Run 'moot export 1 -f {format}', or use --all with -o DIRECTORY.")
    if chosen != _NO_FILTERS:
        raise UsageError("--project, --agent and --since require --all.", fix=f"moot export --all -f {format} -o DIRECTORY")
    if install_:
        if to is not None or sharing.share:
            raise UsageError(
                "--install cannot be used total_by_kind with --output or --share.", fix=f"moot export {conversation} -f {format} --install"
            )
        return await install(conversation, writer, output, json=json)
    if to is not None and not await may_replace(to, output, force=force):
        output.say("moot: the file was not written", "dim")
        return 1
    return await _one(conversation, to, writer, exporter, output, json=json)


def _writer(name: str, sharing: Sharing) -> Format:
    if name not in FORMATS:
        raise UsageError(FORMATS.unknown(name))
    writer: Format = FORMATS.make(name)
    if sharing.share:
        refuse_whole(writer)
    elif sharing.keep:
        raise UsageError("--keep requires --share.", fix="Add --share.")
    return writer


async def _made(engine: Engine, conversation: Conversation, *, writer: Format, branches: bool, sharing: Sharing, output: Output) -> Export:
    if not sharing.share:
        return Export(await exported(engine.store, conversation, writer, branches=branches), conversation.title)
    finder = finder_here(output.secrets, kinds_of(sharing.keep))
    whole = await gathered(engine.store, conversation, writer, branches=branches)
    shared = await anyio.to_thread.run_sync(shareable, whole, finder)
    written = await anyio.to_thread.run_sync(writer.write, shared.exported)
    return Export(written, shared.exported.conversation.title, shared.left_out)


async def _one(which: str, to: Path | None, writer: Format, exporter: Exporter, output: Output, *, json: bool) -> int:
    if to is None and json:
        raise UsageError("--json requires an output file.", fix=f"moot export {which} -f {writer.name} -o FILE --json")
    if to is None and output.stdout_terminal and not isinstance(writer, Legible):
        raise UsageError(
            f"Format {writer.name!r} is not readable text and cannot be printed to a terminal.",
            fix=f"moot export {which} -f {writer.name} -o FILE{writer.suffix}",
        )
    async with opened_at(which, output) as (engine, found):
        made = await exporter(engine, found)
        if to is not None:
            await anyio.to_thread.run_sync(put, to, made.written.data)
            await engine.store.forgetting.register_files([_copy(to, len(made.written.data), found)])
    if to is not None:
        _print_export(made, to, output, json=json)
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


def _print_export(made: Export, to: Path, output: Output, *, json: bool) -> None:
    fidelity = made.written.fidelity
    if json:
        document: JsonObject = {"ok": True, "file": str(to), "bytes": len(made.written.data), "fidelity": _counts(fidelity)}
        output.json({**document, "left_out": left_out_json(made.left_out)})
        return
    output.say(f"moot: wrote {to} ({len(made.written.data):,} bytes)")
    _say_counts(fidelity, output)


async def _all(folder: Folder, writer: Format, exporter: Exporter, chosen: Filters, options: str, output: Output, *, json: bool) -> int:
    done: list[Filed] = []
    fidelity, left_out = Fidelity(), list[LeftOut]()
    progress, ended = Progress(output), False
    async with opened(output) as engine:
        project = (await engine.store.projects.get(chosen.project)).id if chosen.project else ""
        conversations = await wanted(engine.store, Filter(project, chosen.agent, parse_since(chosen.since)), writer)

        async def sheet(conversation: Conversation) -> Sheet:
            made = await exporter(engine, conversation)
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
                    f"moot: exported {len(done):,} of {len(conversations):,} to {folder.path}; run the same command again to continue",
                    "yellow",
                )
            with anyio.CancelScope(shield=True):
                await engine.store.forgetting.register_files(
                    [_copy(folder.path / one.file, one.size, one.conversation) for one in done if one.outcome == "written"]
                )
    return _print_summary(done, folder.path, fidelity, left_out, output, json=json)


def _print_summary(done: list[Filed], folder: Path, fidelity: Fidelity, left_out: list[LeftOut], output: Output, *, json: bool) -> int:
    counts = Counter(one.outcome for one in done)
    failed = [one for one in done if one.outcome == "failed"]
    if json:
        document: JsonObject = {"ok": not failed, "folder": str(folder), "written": counts["written"], "unchanged": counts["unchanged"]}
        document["failed"] = [{"id": one.conversation.id, "problem": one.problem} for one in failed]
        document["data"] = [{"id": one.conversation.id, "outcome": one.outcome, "file": one.file} for one in done]
        output.json({**document, "fidelity": _counts(fidelity), "left_out": left_out_json(total_by_kind(left_out))})
        return 1 if failed else 0
    unchanged = f"; {counts['unchanged']:,} unchanged" if counts["unchanged"] else ""
    output.say(f"moot: wrote {plural(counts['written'], 'conversation')} to {folder}{unchanged}")
    _say_counts(fidelity, output)
    for one in failed:
        output.say(f"  {one.conversation.title or one.conversation.id}: {one.problem}", "yellow")
    say_left_out(total_by_kind(left_out), output)
    return 1 if failed else 0


def _counts(fidelity: Fidelity) -> JsonObject:
    return {"kept": dict(fidelity.kept), "approximated": dict(fidelity.approximated), "lost": dict(fidelity.lost)}


def _say_counts(fidelity: Fidelity, output: Output) -> None:
    for word, counts in (("kept", fidelity.kept), ("approximated", fidelity.approximated), ("lost", fidelity.lost)):
        if counts:
            output.say(f"  {word}: {', '.join(format_counts(counts))}", "dim")
