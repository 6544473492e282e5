"""Hooks: commands that run on events of a conversation, and tool calls before and after a run."""

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
"""Subjects that an event's matchers can match; empty = the event has no subject. For events not listed here, subjects are tools and
agents."""

HookSide: TypeAlias = Literal["before_run", "after_run"]

HOOKS = "hooks"
"""The key in `Run.settings` for a job's hooks: `{"before_run": […], "after_run": […]}`, as in an agent. They run after the agent's
hooks."""

VARIABLES = "hook_variables"
"""The key in `Run.settings` for values of template variables, which replace moot's own: `{"next_task": "…"}`."""

SKIPPED, BLOCKED, STOPPED = "skipped", "blocked", "stopped"
"""Finish reasons of runs that a hook ended: because there was no work, because the hook blocked the prompt, or after a tool call."""

NEVER_SENT = frozenset({SKIPPED, BLOCKED})
"""Finish reasons of runs whose prompt is never sent to a model, not even in later runs."""

UNCHECKED = "unchecked"
"""Key in the metadata of an answer: true until the hooks have allowed its prompt, then false. No model gets an unchecked prompt."""

PROMPT = "prompt"
"""Journal key of the hooks' decision about the prompt."""

WITHHELD = "withheld"
"""Key in the metadata of a copied prompt that no model may get: true. The blocked answer to this prompt was not copied."""

CONTEXT = "data-hook"
"""The type of a part with text that a hook added to the prompt: `{"event": …, "text": …}`."""

_MADE_BY, _COMMAND = "hook", "command"


@dataclass(frozen=True, slots=True)
class CommandHook:
    """One command in the section `hooks`."""

    command: str
    matcher: str = ""
    """A regular expression for the event's subject, such as a tool's name. Empty or `*` = everything."""
    timeout: float = 60.0
    """Seconds after which the command is stopped."""
    required: bool = False
    """True if a failure or a timeout counts as a block."""
    folder: str = ""
    """Folder of the project that configures the hook, which runs only for conversations there. Empty = it runs for all conversations."""
    plugin: str = ""
    """Name of the plugin that contains the hook, which runs only while the plugin is unchanged."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of the command. An empty value is replaced with the working directory."""


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
    """Arguments of the tool. Texts in them are templates, with variables such as `{{last_response}}`."""
    skip_if: SkipIf | None = None
    """If the tool's output passes this test, the run ends without a model call."""
    command: str = ""
    """Name of the slash command whose text contains the call as a shell line; empty = a hook makes the call."""


@dataclass(frozen=True, slots=True)
class ReferencedCall(RunHook):
    """A call that a prompt refers to. Only tools of the agent are called, and the arguments contain no variables.

    In `Run.settings`, its entry has `referenced: true`.
    """


@dataclass(frozen=True, slots=True)
class RunHooks:
    """The hooks of an agent or a job."""

    before_run: tuple[RunHook, ...] = ()
    after_run: tuple[RunHook, ...] = ()

    def then(self, other: RunHooks) -> RunHooks:
        """Return these hooks followed by those of `other`."""
        return RunHooks((*self.before_run, *other.before_run), (*self.after_run, *other.after_run))


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The decision of one hook, or the combined decision of all hooks for an event. Empty values decide nothing."""

    permission: Literal["", "allow", "ask", "deny"] = ""
    """Decision about a tool call. For other events, `deny` blocks the subject of the event, such as a prompt."""
    reason: str = ""
    input: JsonObject | None = None
    """Arguments that replace those of the call; None = they are not replaced."""
    context: str = ""
    """Text for the model."""
    stop: str = ""
    """Reason why the run must end; empty = it may continue."""

    @property
    def blocks(self) -> bool:
        return self.permission == "deny"

    def to_json(self) -> JsonObject:
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}

    @classmethod
    def from_json(cls, value: JsonObject) -> HookAnswer:
        return cls(**cast("dict[str, str]", value))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  written by to_json


def is_withheld(metadata: JsonObject) -> bool:
    """Return True for metadata of an answer that ended before its prompt was sent, or of a copied prompt that must not be sent."""
    return metadata.get("finish_reason") in NEVER_SENT or metadata.get(UNCHECKED) is True or metadata.get(WITHHELD) is True


def was_sent(metadata: JsonObject) -> bool:
    """Return True if the prompt of an answer with this metadata was sent to a model."""
    return not is_withheld(metadata) and (metadata.get("finish_reason") is not None or metadata.get(UNCHECKED) is False)


def by_hook(side: HookSide, command: str = "") -> JsonObject:
    """Return the `toolMetadata` of a call made by a hook or by the slash command `command`."""
    return {OURS: {_MADE_BY: side, **({_COMMAND: command} if command else {})}}


def hook_of(part: JsonObject) -> str:
    """Return the hook that made a call (`before_run`, `after_run`), from its part or chunk; empty for calls by models."""
    return str(_ours(part).get(_MADE_BY, ""))


def hook_label(part: JsonObject) -> str:
    """Return the origin of a call, for display: `before_run hook`, `from /explain`; empty for calls by models."""
    command, hook = _ours(part).get(_COMMAND), hook_of(part)
    return f"from /{command}" if command else f"{hook} hook" if hook else ""


def _ours(part: JsonObject) -> JsonObject:
    metadata = part.get("toolMetadata")
    ours = metadata.get(OURS) if isinstance(metadata, dict) else None
    return ours if isinstance(ours, dict) else {}
