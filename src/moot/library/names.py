"""Public names of the package `moot`. `moot/__init__.pyi` repeats them for type checkers, and a test compares both lists."""

from __future__ import annotations

from collections.abc import Mapping

from moot import errors
from moot.config.settings import Settings
from moot.library.conversations import Conversations
from moot.library.live import LiveRun
from moot.library.moot import Moot
from moot.library.options import Asked
from moot.library.startup import open as open_moot
from moot.library.startup import run_sync
from moot.types.approval import Answer, Approval
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.message import Message
from moot.types.run import Run
from moot.types.tool import Question
from moot.types.usage import Usage

NAMES: Mapping[str, object] = {
    "open": open_moot,
    "run_sync": run_sync,
    **{
        kind.__name__: kind
        for kind in (Answer, Approval, Asked, Conversation, Conversations, Event, LiveRun, Message, Moot, Question, Run, Settings, Usage)
    },
    **{name: getattr(errors, name) for name in errors.__all__},
}


def named(name: str) -> object:
    """Return the object for `moot.NAME`. Raise AttributeError if the name is not public."""
    if name not in NAMES:
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    return NAMES[name]
