"""The commands `moot chat context` and `moot chat compact`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.context.engine import opened_at
from moot.cli.context.output import Out
from moot.cli.options import Which
from moot.errors import NotFound
from moot.features.context import compact_conversation, context_report
from moot.types.tree import Compaction


async def context(
    conversation: Which,
    /,
    *,
    request: Annotated[bool, Parameter(help="Print the exact body of the next request as JSON.")] = False,
    prompt: Annotated[str, Parameter(help="Prompt to include as if you had sent it, along with the files that it mentions with @.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Show what the context of a conversation's next request consists of, without sending anything."""
    async with opened_at(conversation, output) as (engine, found):
        report = await context_report(engine, found, prompt=prompt, references=True)
    if request and not json:
        output.json(report.request)
    elif json:
        output.json({"conversation": found.id, **report.to_json(request=request)})
    else:
        for line in report.lines():
            output.line(line)


async def compact(
    conversation: Which,
    /,
    *,
    focus: Annotated[str, Parameter(help="Topic that the summary should focus on.")] = "",
    undo: Annotated[
        bool, Parameter(help="Remove the last summary of the current branch, so that the summarized messages are sent again.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Summarize the older messages of a conversation. Models receive the summary instead; you can still read the messages."""
    async with opened_at(conversation, output) as (engine, found):
        if undo:
            known = {one.through for one in await engine.store.tree.compactions(found.id)}
            through = next((one.id for one in reversed(await engine.store.conversations.branch(found.id)) if one.id in known), None)
            if through is None:
                raise NotFound("The current branch has no summary.")
            done = await engine.store.tree.compact(found.id, Compaction(through, ""))
        else:
            done = await compact_conversation(engine, found, focus=focus)
    if json:
        output.json({"ok": True, "conversation": found.id, "through": done.through, "summary": done.summary})
    elif undo:
        output.say("moot: the summary was removed")
    else:
        output.data(f"{done.summary}\n")
