"""Workflows: slash commands that run several prompts in order, each in its own conversation, and check the results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from moot.types.canonical import Json, JsonObject
from moot.types.templates import check_line, fields_in, fill_fields, fill_line

WORKFLOW = "workflow"
"""The key of a workflow in `Run.settings`. Its run starts the steps and calls no model itself."""

STEP_NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
"""Pattern of the names of steps."""

STEPS = "steps"
"""First word of the variables that contain outputs of steps: `{{steps.NAME.output}}`."""

_ARGUMENT = re.compile(r"\$(\w+)")
_UNCLOSED = re.compile(r"\{\{(?!(?:(?!\{\{).)*?\}\})[^\n]{0,40}", re.DOTALL)
"""The start of an unclosed variable, and the text that follows."""

CheckKind: TypeAlias = Literal["command", "contains", "matches"]
"""command: a shell line that must end with exit code 0 · contains: a text that the output must contain · matches: a regular expression that
it must match."""


@dataclass(frozen=True, slots=True)
class StepCheck:
    """The test of a step's result."""

    kind: CheckKind
    text: str


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """One step of a workflow: a prompt for an agent."""

    name: str
    prompt: str
    agent: str = ""
    """Agent that answers the prompt; empty = the agent of the run."""
    check: StepCheck | None = None
    retries: int = 0
    """Number of further attempts if an attempt or its check fails."""
    line: int = 0
    """Line of the step in its file; 0 = unknown."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow as executed by a run: its steps as they were when the command was used, and the command's arguments."""

    name: str
    steps: tuple[WorkflowStep, ...]
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """Arguments by name: `ARGUMENTS`, `FILE`, `1` to `9`, and the parameters."""
    attended: bool = False
    """True if a person ran the command, which counts as approval under an `ask` rule for files that the prompts attach."""

    def to_settings(self) -> JsonObject:
        """Serialize for `Run.settings`."""
        steps: list[Json] = [{**asdict(step), "check": asdict(step.check) if step.check is not None else None} for step in self.steps]
        return {WORKFLOW: {"name": self.name, "steps": steps, "values": dict[str, Json](self.values), "attended": self.attended}}

    @staticmethod
    def of(settings: JsonObject) -> Workflow | None:
        """Parse the output of `to_settings`; None if the run doesn't execute a workflow."""
        facts = settings.get(WORKFLOW)
        if not isinstance(facts, dict):
            return None
        steps, values = facts.get("steps"), facts.get("values")
        return Workflow(
            str(facts.get("name", "")),
            tuple(_step(one) for one in steps if isinstance(one, dict)) if isinstance(steps, list) else (),
            {name: str(value) for name, value in values.items()} if isinstance(values, dict) else {},
            facts.get("attended") is True,
        )


def _step(facts: JsonObject) -> WorkflowStep:
    check, retries, line = facts.get("check"), facts.get("retries"), facts.get("line")
    return WorkflowStep(
        str(facts.get("name", "")),
        str(facts.get("prompt", "")),
        str(facts.get("agent", "")),
        _check(check) if isinstance(check, dict) else None,
        retries if isinstance(retries, int) else 0,
        line if isinstance(line, int) else 0,
    )


def _check(facts: JsonObject) -> StepCheck:
    kind = facts.get("kind")
    return StepCheck("contains" if kind == "contains" else "matches" if kind == "matches" else "command", str(facts.get("text", "")))


# ── templates ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def problems_of(steps: Sequence[WorkflowStep], names: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Yield each mistake in the steps: the step's number, counted from 0, the path of the field, and an error message.

    `names` are the names of the arguments.
    """
    before: list[str] = []
    for at, step in enumerate(steps):
        if step.name in before:
            yield at, ("name",), f"The step {step.name!r} is defined twice. Rename one of them."
        later = [one.name for one in steps[at:]]
        for problem in _problems_in(step.prompt, names, before, later):
            yield at, ("prompt",), problem
        if (check := step.check) is not None:
            for problem in _problems_in(check.text, names, [*before, step.name], later[1:]):
                yield at, ("check", check.kind), problem
            if check.kind == "command" and (problem := _unsafe(check.text, names)):
                yield at, ("check", check.kind), problem
        before.append(step.name)


def _problems_in(text: str, names: Sequence[str], before: Sequence[str], later: Sequence[str]) -> Iterator[str]:
    for path in fields_in(text):
        if problem := _problem(path, names, before, later):
            yield problem
    for rest in _UNCLOSED.findall(text):
        yield f"'}}}}' is missing after {rest.strip()!r}. Write variables as {{{{name}}}}."


def _problem(path: str, names: Sequence[str], before: Sequence[str], later: Sequence[str]) -> str:
    """Return why a variable can't be used; empty if it can."""
    if path in names:
        return ""
    first, _, rest = path.partition(".")
    name, _, last = rest.partition(".")
    if first != STEPS or last != "output":
        return f"Unknown variable {{{{{path}}}}}. Use a parameter, or {{{{steps.NAME.output}}}} with the name of an earlier step."
    if name in before:
        return ""
    return f"The step {name!r} has no output yet, because it runs later." if name in later else f"Unknown step {name!r} in {{{{{path}}}}}."


def _unsafe(line: str, names: Sequence[str]) -> str:
    try:
        check_line(_numbered(line, names)[0])
    except ValueError as error:
        return str(error)
    return ""


def uses_arguments(steps: Sequence[WorkflowStep], names: Sequence[str]) -> bool:
    """Return True if a step contains one of these arguments."""
    checks = [step.check for step in steps if step.check is not None]
    texts = [*(step.prompt for step in steps), *(check.text for check in checks if check.kind == "command")]
    used = [*(name for text in texts for name in _ARGUMENT.findall(text)), *(name for check in checks for name in fields_in(check.text))]
    return any(name in names for name in (*used, *(name for text in texts for name in fields_in(text))))


def filled(template: str, values: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """Return a step's text with arguments and outputs of earlier steps filled in. Variables inside these values are not replaced."""
    return fill_fields(_marked(template, values), _payload(values, outputs))


def filled_test(check: StepCheck, values: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """Return the text of an output check with its variables `{{NAME}}` filled in.

    `$NAME` is not replaced, because it may be part of the text.

    A regular expression matches the values literally.
    """
    if check.kind == "matches":
        values, outputs = ({name: re.escape(value) for name, value in found.items()} for found in (values, outputs))
    return fill_fields(check.text, _payload(values, outputs))


def _payload(values: Mapping[str, str], outputs: Mapping[str, str]) -> JsonObject:
    return {**values, STEPS: {name: {"output": output} for name, output in outputs.items()}}


def filled_line(template: str, values: Mapping[str, str], outputs: Mapping[str, str]) -> str:
    """Return a shell line with its values filled in, quoted as their context requires. Raise ValueError if no quoting is safe."""
    line, paths = _numbered(template, values)
    found = {f"v{at}": filled(f"{{{{{path}}}}}", values, outputs) for at, path in enumerate(paths)}
    return fill_line(line, found) if paths else template


def _marked(template: str, names: Mapping[str, str] | Sequence[str]) -> str:
    """Replace `$NAME` with `{{NAME}}` for each argument. Other words with a dollar sign are unchanged."""
    return _ARGUMENT.sub(lambda found: f"{{{{{found[1]}}}}}" if found[1] in names else found[0], template)


def _numbered(line: str, names: Mapping[str, str] | Sequence[str]) -> tuple[str, list[str]]:
    """Return a shell line with its variables replaced by numbered ones, such as `{{v0}}`, and the original names in the same order."""
    marked = _marked(line, names)
    paths = fields_in(marked)
    numbers = iter(range(len(paths)))
    return re.sub(r"\{\{\s*[\w.-]+\s*\}\}", lambda _: f"{{{{v{next(numbers)}}}}}", marked), paths
