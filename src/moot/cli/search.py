"""`moot search`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.configured import here
from moot.cli.opening import opened
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.output import Output
from moot.cli.parameters import Parameter
from moot.cli.references import find_conversation
from moot.cli.times import moment
from moot.convert.given import hit_json
from moot.errors import UsageError
from moot.types.canonical import Json
from moot.types.search import SearchPage


async def search(
    query: Annotated[str, Parameter(help="Words; all of them must occur.")],
    /,
    *,
    conversation: Annotated[str | None, Parameter(name=("--conversation", "-c"), kind="conversation", help="Only in this one.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Find words in all conversations, newest first."""
    if not query.strip():
        raise UsageError("there is nothing to search for: the query is empty", fix="Give a word or several.")
    async with opened(output) as engine:
        within = (await find_conversation(engine, conversation, str(here()))).id if conversation else None
        page = await engine.store.search.search(query, limit=limit, cursor=cursor, conversation=within)
    if json:
        hits: list[Json] = [hit_json(hit) for hit in page.hits]
        output.json({"data": hits, "next_cursor": page.next_cursor, "index": {"done": page.done, "total": page.total}})
    else:
        _print(page, output)


def _print(page: SearchPage, output: Output) -> None:
    for hit in page.hits:
        output.data(output.styled(output.fit(f"{hit.conversation[:13]}  {moment(hit.at)}  {hit.role}  {hit.title}"), "dim") + "\n")
        bold = [output.fit(piece) for piece in hit.snippet.replace("\x03", "\x02").split("\x02")]
        marked = "".join(output.styled(piece, "bold") if at % 2 and piece else piece for at, piece in enumerate(bold))
        output.data("  " + " ".join(marked.split("\n")) + "\n")
    if page.done < page.total:
        output.say(f"moot: indexed {page.done * 100 // page.total} % so far; search again for the rest", "yellow")
    if not page.hits:
        output.say("moot: nothing found")
    if page.next_cursor:
        output.say(f"moot: more with --cursor {page.next_cursor}", "dim")
