"""The commands of `moot knowledge`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import anyio

from moot.cli.arguments.signatures import AsJson, Limit, Parameter
from moot.cli.console.format import plural, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.engine import Engine
from moot.errors import NotFound, UsageError
from moot.guard.hidden import spelled_out
from moot.knowledge.library import Library, Refreshed
from moot.types.canonical import JsonObject
from moot.types.knowledge import KnowledgeScope, Source, knowledge_folders
from moot.types.token import LOCAL_USER

OfProject = Annotated[
    str | None,
    Parameter(metavar="PROJECT", help="Project whose conversations can use the documents. By default, all conversations can use them."),
]
EMBED_SECONDS = 3600.0


async def _project(engine: Engine, name: str | None) -> str:
    return (await engine.store.of(LOCAL_USER).projects.get(name)).id if name else ""


async def add_sources(
    *paths: Annotated[Path, Parameter(metavar="PATH", help="Files and folders to add.")],
    project: OfProject = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Add files or folders and index them."""
    if not paths:
        raise UsageError("No file or folder was given.", fix="moot knowledge add PATH")
    async with opened(output) as engine:
        library, id = engine.runtime.library(LOCAL_USER), await _project(engine, project)
        sources = [await library.add(path, project=id) for path in paths]
        await _refresh(engine, library, sources, output, json=json)


async def refresh_sources(*, json: AsJson = False, output: Out) -> None:
    """Index new and changed documents from all sources."""
    async with opened(output) as engine:
        library = engine.runtime.library(LOCAL_USER)
        await _refresh(engine, library, await engine.store.of(LOCAL_USER).knowledge.sources(), output, json=json)


async def _refresh(engine: Engine, library: Library, sources: list[Source], output: Output, *, json: bool) -> None:
    index, total = engine.store.of(LOCAL_USER).knowledge, Refreshed()
    problems: list[JsonObject] = []
    for source in sources:
        total += await library.refresh(source, again=True)
        with suppress(NotFound):  # a project folder that no longer exists
            documents = await index.documents(source.id)
            problems.extend({"path": document.path, "problem": document.problem} for document in documents if document.problem)
    embedded, chunks = await library.embed(EMBED_SECONDS)
    if json:
        counts: JsonObject = {"indexed": total.indexed, "unchanged": total.unchanged, "removed": total.removed, "failed": total.failed}
        output.json({**counts, "problems": [*problems], "embedded": embedded, "chunks": chunks})
        return
    words = (
        f"indexed {plural(total.indexed, 'document')}, {total.unchanged:,} unchanged, {total.removed:,} removed, {total.failed:,} failed"
    )
    output.say(f"moot: {words}", "green")
    for problem in problems:
        output.say(f"moot: {problem['path']}: {problem['problem']}", "yellow")


async def list_sources(
    *,
    documents: Annotated[bool, Parameter(help="Also list the documents in each folder.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the files and folders that were added, and the reasons why documents could not be read."""
    async with opened(output) as engine:
        index = engine.store.of(LOCAL_USER).knowledge
        sources = await index.sources()
        listed = {source.id: await index.documents(source.id) for source in sources}
    if json:
        rows: list[JsonObject] = [
            {
                **_facts(source),
                "documents": [
                    {"path": document.path, "size": document.size, "problem": document.problem} for document in listed[source.id]
                ],
            }
            for source in sources
        ]
        output.json({"data": [*rows]})
        return
    table: list[list[str]] = []
    for source in sources:
        state = f"{source.documents:,}" + (f" ({source.failed:,} failed)" if source.failed else "")
        table.append([source.id[:13], source.kind, state, f"{source.chunks:,}", source.path])
        shown = (document for document in listed[source.id] if documents or document.problem)
        table += [["", "", "", "", f"  {document.path}{f': {document.problem}' if document.problem else ''}"] for document in shown]
    if table:
        print_table(output, ["ID", "KIND", "DOCUMENTS", "CHUNKS", "PATH"], table)
    else:
        output.say("moot: no documents yet; add some with 'moot knowledge add PATH'", "dim")


def _facts(source: Source) -> JsonObject:
    return {
        "id": source.id,
        "path": source.path,
        "project": source.project or None,
        "kind": source.kind,
        "failed": source.failed,
        "chunks": source.chunks,
    }


async def search_documents(
    *words: Annotated[str, Parameter(metavar="WORD", help="Words or a question to search for.")],
    project: Annotated[
        str | None,
        Parameter(
            metavar="PROJECT",
            help="Project whose documents to search, in addition to those for all conversations. Defaults to this directory's project.",
        ),
    ] = None,
    limit: Limit = 8,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the passages that match best, each with its file and its page or line."""
    if not " ".join(words).strip():
        raise UsageError("No search words were given.", fix="moot knowledge search WORD")
    async with opened(output) as engine:
        projects = engine.store.of(LOCAL_USER).projects
        found = await (projects.get(project) if project else projects.around(str(here())))
        scope = KnowledgeScope(found.id, knowledge_folders(found.root_path or ("" if project else str(here()))))
        hits = await engine.runtime.library(LOCAL_USER).search(" ".join(words), scope, limit=limit)
    if json:
        rows: list[JsonObject] = [
            {"path": hit.path, "place": hit.place, "heading": hit.heading, "text": hit.text, "by": [*hit.by]} for hit in hits
        ]
        output.json({"data": [*rows]})
        return
    for hit in hits:
        where = ", ".join(filter(None, [hit.path, hit.place, hit.heading]))
        output.line(output.styled(spelled_out(where), "cyan"))
        output.line("\n".join(f"  {line}" for line in spelled_out(hit.text).splitlines()[:6]))
    if not hits:
        output.say("moot: no matches", "dim")


async def remove_source(
    source: Annotated[str, Parameter(metavar="SOURCE", help="File or folder to remove: its path, its id, or the beginning of its id.")],
    /,
    *,
    output: Out,
) -> None:
    """Remove a source and its documents from the index."""
    async with opened(output) as engine:
        index = engine.store.of(LOCAL_USER).knowledge
        try:
            await index.remove(source)
        except NotFound as error:
            try:
                await index.remove(str(await (await anyio.Path(source).expanduser()).resolve()))
            except NotFound:
                raise error from None
    output.say(f"moot: removed {source}; its files are kept")
