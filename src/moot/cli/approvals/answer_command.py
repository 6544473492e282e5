"""Runs that wait for the user: what they wait for, and the command that answers."""

from __future__ import annotations

from shlex import quote

from moot.convert.vendor import as_list, as_object
from moot.engine import Engine
from moot.types.approval import Approval


async def open_approval(engine: Engine, run: str) -> Approval | None:
    """Return the oldest open approval of a run and its sub-agents that a person can answer; None if there is none."""
    return next((one for one in await engine.store.records.approvals(run=run, tree=True) if not one.by_client), None)


def answer_command(approval: Approval, conversation: str) -> str:
    """Return a command that answers later. For questions, it contains their first options."""
    if not isinstance(approval.questions, list):
        return f"moot chat resume {conversation[:13]}"
    options = [as_list(as_object(question).get("options")) for question in approval.questions]
    replies = (str(as_object(listed[0]).get("label")) if listed else "TEXT" for listed in options)
    return " ".join(("moot approvals allow", quote(approval.id), *(f"--answer {quote(reply)}" for reply in replies)))
