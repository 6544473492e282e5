"""Hooks: commands that run at events of a conversation, and tool calls before and after a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias, cast

from moot.types.canonical import JsonObject, empty
from moot.types.chunk import OURS

HookEvent: TypeAlias = Literal[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "SessionStart",
    "SessionEnd",
    "PreCompact",
    "Notification",
]

SUBJECTS: dict[HookEvent, tuple[str, ...]] = {
    "UserPromptSubmit": (),
    "Stop": (),
    "SessionStart": ("startup", "resume"),
    "SessionEnd": ("other",),
    "PreCompact": ("manual", "auto"),
    "Notification": ("permission_prompt", "elicitation_dialog"),
}
"""Texts that matchers of an event can match; other events are about tools and agents. Empty = there is nothing to match."""

HookSide: TypeAlias = Literal["before_run", "after_run"]

HOOKS = "hooks"
"""The key in `Run.settings` for hooks of a job: `{"before_run": […], "after_run": […]}`, as in an agent. They run after the agent's."""

VARIABLES = "hook_variables"
"""The key in `Run.settings` for values of template variables, which replace moot's own: `{"next_task": "…"}`."""

SKIPPED, BLOCKED, STOPPED = "skipped", "blocked", "stopped"
"""Finish reasons of runs that hooks ended: without work to do, because of the prompt, and after a call."""

NEVER_SENT = frozenset({SKIPPED, BLOCKED})
"""Finish reasons of runs whose prompt no model gets, in later runs either."""

UNCHECKED = "unchecked"
"""Key in the metadata of an answer: true until the hooks for its prompt have passed it, then false. No model gets an unchecked prompt."""

PROMPT = "prompt"
"""Key in the journal of the decision about the prompt."""

WITHHELD = "withheld"
"""Key in the metadata of a copied prompt that no model may get: true. Its blocked answer was not copied."""

CONTEXT = "data-hook"
"""The type of a part with text that a hook added to the prompt: `{"event": …, "text": …}`."""

_MADE_BY = "hook"


@dataclass(frozen=True, slots=True)
class CommandHook:
    """One command of the section `hooks`."""

    command: str
    matcher: str = ""
    """A regular expression for the event's subject, such as a tool's name. Empty or `*` = everything."""
    timeout: float = 60.0
    """Seconds after which the command is stopped."""
    required: bool = False
    """True if a failure or a timeout counts as a block."""
    folder: str = ""
    """The folder of the project that configures it: it runs only for conversations there. Empty = for all conversations."""


SkipTest: TypeAlias = Literal["empty", "equals", "contains", "matches"]


@dataclass(frozen=True, slots=True)
class SkipIf:
    """A test of a hook's output. The texts are templates."""

    kind: SkipTest
    text: str = ""


@dataclass(frozen=True, slots=True)
class RunHook:
    """A call of one of moot's tools before or after a run."""

    tool: str
    arguments: JsonObject = field(default_factory=empty)
    """Texts in it are templates: `{{last_response}}`."""
    skip_if: SkipIf | None = None
    """If its output passes this test, the run ends without a model call."""


@dataclass(frozen=True, slots=True)
class RunHooks:
    """The hooks of an agent or of a job."""

    before_run: tuple[RunHook, ...] = ()
    after_run: tuple[RunHook, ...] = ()

    def then(self, other: RunHooks) -> RunHooks:
        """Return these hooks, followed by the others."""
        return RunHooks((*self.before_run, *other.before_run), (*self.after_run, *other.after_run))


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The decision of one hook, or of all hooks of an event. Empty values decide nothing."""

    permission: Literal["", "allow", "ask", "deny"] = ""
    """For a tool call. For other events, `deny` blocks what the event is about."""
    reason: str = ""
    input: JsonObject | None = None
    """Arguments that replace those of the call."""
    context: str = ""
    """Text for the model."""
    stop: str = ""
    """Why the run must end."""

    @property
    def blocks(self) -> bool:
        return self.permission == "deny"

    def to_json(self) -> JsonObject:
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}

    @classmethod
    def from_json(cls, value: JsonObject) -> HookAnswer:
        return cls(**cast("dict[str, str]", value))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  written by to_json


def is_withheld(metadata: JsonObject) -> bool:
    """Return whether an answer with this metadata ended before its prompt was sent, or a copied prompt must not be sent."""
    return metadata.get("finish_reason") in NEVER_SENT or metadata.get(UNCHECKED) is True or metadata.get(WITHHELD) is True


def was_sent(metadata: JsonObject) -> bool:
    """Return whether the prompt of an answer with this metadata was passed on to a model."""
    return not is_withheld(metadata) and (metadata.get("finish_reason") is not None or metadata.get(UNCHECKED) is False)


def by_hook(side: HookSide) -> JsonObject:
    """Return the `toolMetadata` of a call that a hook makes."""
    return {OURS: {_MADE_BY: side}}


def hook_of(part: JsonObject) -> str:
    """Return the hook that made a call (`before_run`, `after_run`), from its part or chunk; empty for calls of models."""
    metadata = part.get("toolMetadata")
    ours = metadata.get(OURS) if isinstance(metadata, dict) else None
    return str(ours.get(_MADE_BY, "")) if isinstance(ours, dict) else ""
