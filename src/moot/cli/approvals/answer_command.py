"""Runs that are waiting for the user: what they are waiting for, and the command with which to answer."""

from __future__ import annotations

from shlex import quote

from moot.cli.remote.choice import AnyEngine
from moot.convert.vendor import as_list, as_object
from moot.types.approval import Approval


async def open_approval(engine: AnyEngine, run: str) -> Approval | None:
    """Return the oldest open approval of a run and its sub-agents that a person can answer, or None if there is none."""
    return next((one for one in await engine.store.records.approvals(run=run, tree=True) if not one.by_client), None)


def answer_command(approval: Approval, conversation: str) -> str:
    """Return a command with which the user can answer later. For questions, it contains the first option of each."""
    if not isinstance(approval.questions, list):
        return f"moot chat resume {conversation[:13]}"
    options = [as_list(as_object(question).get("options")) for question in approval.questions]
    replies = (str(as_object(listed[0]).get("label")) if listed else "TEXT" for listed in options)
    return " ".join(("moot approvals allow", quote(approval.id), *(f"--answer {quote(reply)}" for reply in replies)))
