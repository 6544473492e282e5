"""The commands `moot export` and `moot share`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import format_counts, moment, parse_time, plural, print_table
from moot.cli.console.lines import Progress, write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import opened, opened_at
from moot.cli.context.output import Out
from moot.cli.options import Which, seconds
from moot.cli.terminal.prompts.plain import confirm, may_replace
from moot.engine import Engine
from moot.engine.locks import find_server
from moot.errors import NeedsApproval, StoreError, UsageError
from moot.features.exports import (
    Document,
    FileResult,
    Filter,
    Folder,
    export_all,
    export_conversation,
    gather,
    select_conversations,
    write_private_file,
)
from moot.features.installs import install_session
from moot.features.shares import (
    Draft,
    Removal,
    finder_here,
    kinds_of,
    preview_page,
    redact_conversation,
    refuse_whole,
    removal_json,
    share_page,
)
from moot.guard.private_data import Kind
from moot.guard.terminal import clean
from moot.plugins import FORMATS
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.format import ExportFile, Fidelity, Format, TerminalReadable
from moot.types.ids import SystemClock
from moot.types.maintenance import StoredCopy
from moot.types.share import Share

_PLACES = 12


def _print_removals(left_out: Sequence[Removal], output: Output) -> None:
    """Print one line per kind of removed data, with the first places where it was found."""
    for kind in dict.fromkeys(one.kind for one in left_out):
        of_kind = [one for one in left_out if one.kind == kind]
        places = [f"{one.where}{f' ({one.count})' if one.count > 1 else ''}" for one in of_kind if one.where != "all"]
        more = f", and {len(places) - _PLACES} more places" if len(places) > _PLACES else ""
        word = "re-encoded" if kind == "pictures" else "removed"
        where = f": {'; '.join(places[:_PLACES])}{more}" if places else ""
        output.say(f"  {word}: {', '.join(format_counts({kind: sum(one.count for one in of_kind)}))}{where}", "yellow")
    if any(one.kind == "pictures" for one in left_out):
        output.say("  pictures were re-encoded without metadata; check what they show", "dim")


_WORDS = {"written": "wrote", "replaced": "updated", "unchanged": "unchanged:"}


async def _install(which: str, writer: Format, output: Output, *, json: bool) -> int:
    """Write the session file and print the command that continues it to stdout. Return the exit code."""
    async with opened_at(which, output) as (engine, found):
        done = await install_session(engine.store, found, writer, home=Path.home(), environ=os.environ, directory=here())
        session = done.session
        await _register(engine, [StoredCopy(str(session.path), "export", 0, len(session.data), found.id)], output)
    if json:
        about: JsonObject = {"ok": True, "file": str(session.path), "bytes": len(session.data), "fidelity": _counts(session.fidelity)}
        about |= {"outcome": done.outcome, "beside": None if done.beside is None else str(done.beside)}
        output.json({**about, "directory": str(session.directory), "command": list(session.command), "setup": list(session.setup)})
        return 0
    if done.beside is not None:
        output.say(
            f"moot: kept {done.beside}: it contains messages that are missing from this conversation; 'moot import' adds them", "yellow"
        )
    output.say(f"moot: {_WORDS[done.outcome]} {session.path} ({len(session.data):,} bytes); continue it with:")
    commands = [("cd", str(session.directory)), *([session.setup] if session.setup else []), session.command]
    output.line(" && ".join(map(shlex.join, commands)))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Options for exports that are shared with other people."""

    share: Annotated[bool, Parameter(help="Remove secrets, home directories, names and e-mail addresses, and list what was removed.")] = (
        False
    )
    keep: Annotated[
        str, Parameter(metavar="KINDS", help="With --share: kinds of private data to keep, separated by commas, such as emails,paths.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Options that select conversations, for use with --all."""

    project: Annotated[str, Parameter(help="With --all: only conversations in this project.")] = ""
    agent: Annotated[str, Parameter(kind="agent", help="With --all: only conversations with this agent, or imported from it.")] = ""
    since: Annotated[
        str,
        Parameter(
            metavar="TIME",
            help="With --all: only conversations active since a date (2026-01-31) or within a period (12h, 30d, 2w, 6m or 1y).",
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class Export:
    """An exported conversation, and what was removed from it."""

    written: ExportFile
    title: str
    left_out: tuple[Removal, ...] = ()


Exporter: TypeAlias = Callable[[Engine, Conversation], Awaitable[Export]]

_NOT_SHARED, _NO_FILTERS = Sharing(), Filters()


async def export(
    conversation: Which = "",
    /,
    *,
    all_: Annotated[bool, Parameter(help="Export every conversation to its own file in the directory given by -o.")] = False,
    format: Annotated[
        str, Parameter(name=("--format", "-f"), kind="format", help="Output format. See docs/export.md for a comparison of the formats.")
    ] = "recording",
    to: Annotated[
        Path | None, Parameter(name=("--output", "-o"), kind="file", help="Output file, or directory with --all. Defaults to stdout.")
    ] = None,
    branch: Annotated[
        Literal["all", "shown"],
        Parameter(metavar="BRANCHES", help="Branches to export: all that the format supports, or only the current branch."),
    ] = "all",
    sharing: Sharing = _NOT_SHARED,
    chosen: Filters = _NO_FILTERS,
    install_: Annotated[
        bool,
        Parameter(
            help="With an agent's format, such as claude: add the conversation to the agent's sessions,"
            " and print the command that continues it.",
        ),
    ] = False,
    force: Annotated[bool, Parameter(help="With -o: replace an existing file without prompting.")] = False,
    json: Annotated[bool, Parameter(help="With -o: print a report as one JSON document to stdout.")] = False,
    output: Out,
) -> int:
    """Export conversations, and report what the format cannot represent."""
    writer = _writer(format, sharing)
    exporter = partial(_made, writer=writer, branches=branch == "all", sharing=sharing, output=output)
    if all_:
        if conversation or to is None or install_:
            raise UsageError(
                "--all requires an output directory, and cannot be used with a conversation or --install.",
                fix=f"moot export --all -f {format} -o DIRECTORY",
            )
        options = f"{format} {writer.version} {branch} {sharing.share} {sharing.keep}"
        return await _all(Folder(to, writer.suffix), writer, exporter, chosen, options, output, json=json)
    if not conversation:
        raise UsageError("No conversation given.", fix=f"Run 'moot export 1 -f {format}', or use --all with -o DIRECTORY.")
    if chosen != _NO_FILTERS:
        raise UsageError("--project, --agent and --since require --all.", fix=f"moot export --all -f {format} -o DIRECTORY")
    if install_:
        if to is not None or sharing.share:
            raise UsageError(
                "--install cannot be used together with --output or --share.", fix=f"moot export {conversation} -f {format} --install"
            )
        return await _install(conversation, writer, output, json=json)
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
        raise UsageError("--keep requires --share.")
    return writer


async def _made(engine: Engine, conversation: Conversation, *, writer: Format, branches: bool, sharing: Sharing, output: Output) -> Export:
    if not sharing.share:
        return Export(await export_conversation(engine.store, conversation, writer, branches=branches), conversation.title)
    finder = finder_here(output.secrets, kinds_of(sharing.keep))
    whole = await gather(engine.store, conversation, writer, branches=branches)
    shared = await anyio.to_thread.run_sync(redact_conversation, whole, finder)
    written = await anyio.to_thread.run_sync(writer.write, shared.exported)
    return Export(written, shared.exported.conversation.title, shared.left_out)


async def _one(which: str, to: Path | None, writer: Format, exporter: Exporter, output: Output, *, json: bool) -> int:
    if to is None and json:
        raise UsageError("--json requires an output file.", fix=f"moot export {which} -f {writer.name} -o FILE --json")
    if to is None and output.stdout_terminal and not isinstance(writer, TerminalReadable):
        raise UsageError(
            f"Format {writer.name!r} is not readable text and cannot be printed to a terminal.",
            fix=f"moot export {which} -f {writer.name} -o FILE{writer.suffix}",
        )
    async with opened_at(which, output) as (engine, found):
        made = await exporter(engine, found)
        if to is not None:
            await anyio.to_thread.run_sync(write_private_file, to, made.written.data)
            await _register(engine, [_copy(to, len(made.written.data), found)], output)
    if to is not None:
        about: JsonObject = {"ok": True, "file": str(to), "bytes": len(made.written.data), "fidelity": _counts(made.written.fidelity)}
        words = f"wrote {to} ({len(made.written.data):,} bytes)"
        write_done(output, json, {**about, "left_out": [removal_json(one) for one in made.left_out]}, words)
        if not json:
            _say_counts(made.written.fidelity, output)
    elif output.stdout_terminal:
        output.data(clean(made.written.data.decode("utf-8", "replace")))
    else:
        sys.stdout.buffer.write(made.written.data)
        sys.stdout.buffer.flush()
    if not json:
        _print_removals(made.left_out, output)
    return 0


def _copy(path: Path, size: int, conversation: Conversation) -> StoredCopy:
    return StoredCopy(str(path.absolute()), "export", int(time.time() * 1000), size, conversation.id)


async def _register(engine: Engine, files: Sequence[StoredCopy], output: Output) -> None:
    """Record exported files, so that the receipt of a later purge can list them. Do nothing if moot's home is not writable."""
    try:
        await engine.store.erasure.register_files(files)
    except StoreError as error:
        output.say(f"moot: the exported files could not be recorded, so a later purge can't list them: {error.message}", "yellow")


async def _all(folder: Folder, writer: Format, exporter: Exporter, chosen: Filters, options: str, output: Output, *, json: bool) -> int:
    done: list[FileResult] = []
    fidelity, left_out = Fidelity(), list[Removal]()
    progress, ended = Progress(output), False
    async with opened(output) as engine:
        project = (await engine.store.projects.get(chosen.project)).id if chosen.project else ""
        conversations = await select_conversations(
            engine.store, Filter(project, chosen.agent, parse_time(chosen.since) if chosen.since else 0), writer
        )

        async def sheet(conversation: Conversation) -> Document:
            made = await exporter(engine, conversation)
            left_out.extend(made.left_out)
            return Document(made.written, made.title)

        try:
            async with aclosing(export_all(engine.store, conversations, folder, sheet, options)) as each:
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
                written = [_copy(folder.path / one.file, one.size, one.conversation) for one in done if one.outcome == "written"]
                await _register(engine, written, output)
    return _print_summary(done, folder.path, fidelity, left_out, output, json=json)


def _print_summary(done: list[FileResult], folder: Path, fidelity: Fidelity, left_out: list[Removal], output: Output, *, json: bool) -> int:
    counts = Counter(one.outcome for one in done)
    kinds = Counter[Kind]()
    for one in left_out:
        kinds[one.kind] += one.count
    removed = [Removal(kind, "all", count) for kind, count in kinds.items()]
    failed = [one for one in done if one.outcome == "failed"]
    if json:
        document: JsonObject = {"ok": not failed, "folder": str(folder), "written": counts["written"], "unchanged": counts["unchanged"]}
        document["failed"] = [{"id": one.conversation.id, "problem": one.problem} for one in failed]
        document["data"] = [{"id": one.conversation.id, "outcome": one.outcome, "file": one.file} for one in done]
        output.json({**document, "fidelity": _counts(fidelity), "left_out": [removal_json(one) for one in removed]})
        return 1 if failed else 0
    unchanged = f"; {counts['unchanged']:,} unchanged" if counts["unchanged"] else ""
    output.say(f"moot: wrote {plural(counts['written'], 'conversation')} to {folder}{unchanged}")
    _say_counts(fidelity, output)
    for one in failed:
        output.say(f"  {one.conversation.title or one.conversation.id}: {one.problem}", "yellow")
    _print_removals(removed, output)
    return 1 if failed else 0


def _counts(fidelity: Fidelity) -> JsonObject:
    return {"kept": dict(fidelity.kept), "approximated": dict(fidelity.approximated), "lost": dict(fidelity.lost)}


def _say_counts(fidelity: Fidelity, output: Output) -> None:
    for word, counts in (("kept", fidelity.kept), ("approximated", fidelity.approximated), ("lost", fidelity.lost)):
        if counts:
            output.say(f"  {word}: {', '.join(format_counts(counts))}", "dim")


async def share(
    conversation: Which = "",
    /,
    *,
    expires: Annotated[str, Parameter(metavar="DURATION", help="Lifetime of the link, such as 12h, 7d or 30d.")] = "7d",
    keep: Annotated[
        str,
        Parameter(metavar="KINDS", help="Kinds of private data to keep, separated by commas, such as emails,paths. See docs/sharing.md."),
    ] = "",
    preview: Annotated[Path | None, Parameter(kind="file", help="Write the page to this file for review without sharing it.")] = None,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")] = False,
    list_: Annotated[bool, Parameter(help="List shared pages.")] = False,
    revoke: Annotated[str, Parameter(metavar="SHARE", help="Id of a shared page to revoke.")] = "",
    json: AsJson = False,
    output: Out,
) -> int:
    """Share a conversation as a read-only page without secrets, home directories, names and e-mail addresses."""
    if sum((bool(conversation), list_, bool(revoke))) != 1:
        raise UsageError("Specify a conversation, --list or --revoke SHARE.", fix="moot share 1")
    if list_:
        return await _list(output, json=json)
    if revoke:
        return await _revoke(revoke, output, json=json)
    lifetime = seconds(expires, "--expires")
    async with opened_at(conversation, output) as (engine, found):
        draft = await preview_page(engine.store, found, finder_here(output.secrets, kinds_of(keep)))
        if preview is not None:
            await anyio.to_thread.run_sync(write_private_file, preview, draft.page)
        if not json:
            _say_draft(draft, preview, output)
        if preview is not None:
            if json:
                output.json({"ok": True, "file": str(preview), "left_out": [removal_json(one) for one in draft.left_out]})
            return 0
        if not yes and not await _confirmed(output):
            output.say("moot: the page was not shared", "dim")
            return 1
        shared, secret = await share_page(engine.store, draft, now=SystemClock().now() // 1000, seconds=lifetime)
        running = find_server(engine.settings.home)
        server = engine.settings.server
    base = running.url if running is not None else f"http://{server.host}:{server.port}"
    link = f"{base}/share/{secret}"
    if json:
        output.json({**share_json(shared), "url": link, "serving": running is not None})
        return 0
    output.line(link)
    _say_reach(base, running is not None, shared, output)
    return 0


def share_json(share: Share) -> JsonObject:
    """Return a shared page as JSON."""
    return {
        "id": share.id,
        "conversation": share.conversation,
        "title": share.title,
        "size": share.size,
        "left_out": list[Json](share.left_out),
        "created_at": share.created_at,
        "expires_at": share.expires_at,
        "revoked_at": share.revoked_at,
    }


def _say_draft(draft: Draft, preview: Path | None, output: Output) -> None:
    output.say(f"moot: {draft.title or 'untitled'} ({len(draft.page):,} bytes)", "bold")
    if draft.left_out:
        _print_removals(draft.left_out, output)
    else:
        output.say("  nothing had to be removed", "dim")
    if preview is not None:
        output.say(f"moot: wrote {preview}; the page is not shared")


async def _confirmed(output: Output) -> bool:
    """Ask the user to confirm. Raise NeedsApproval if they cannot be asked."""
    if not (sys.stdin.isatty() and output.stderr_terminal):
        message = "Anyone with the link can read the page, so sharing needs confirmation."
        raise NeedsApproval(message, fix="Review it with --preview FILE, then use --yes.")
    return await confirm("Share this page with anyone who has the link?", output)


def _say_reach(base: str, serves: bool, shared: Share, output: Output) -> None:
    output.say(f"moot: expires {moment(shared.expires_at)}; revoke it with: moot share --revoke {shared.id[:13]}", "dim")
    if not serves:
        output.say("moot: the link works once 'moot serve' is running", "yellow")
    host = urlsplit(base).hostname or ""
    with suppress(ValueError):
        if host == "localhost" or ip_address(host).is_loopback:
            output.say("moot: the address is only reachable from this machine; see docs/sharing.md", "yellow")


async def _list(output: Output, *, json: bool) -> int:
    async with opened(output) as engine:
        found = await engine.store.shares.list()
    if json:
        output.json({"data": list[Json]([share_json(one) for one in found]), "next_cursor": None})
    elif found:
        rows = [[one.id[:13], one.title or one.conversation[:13], moment(one.created_at), moment(one.expires_at)] for one in found]
        print_table(output, ["ID", "TITLE", "SHARED", "EXPIRES"], rows)
    else:
        output.say("moot: no shared pages; create one with: moot share ID", "dim")
    return 0


async def _revoke(reference: str, output: Output, *, json: bool) -> int:
    async with opened(output) as engine:
        revoked = await engine.store.shares.revoke(reference)
    write_done(output, json, share_json(revoked), f"revoked the link to {revoked.title or revoked.id}")
    return 0
