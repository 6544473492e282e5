"""Approvals and an agent's questions, asked below the cell and answered in the notebook's input field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from moot.engine import Engine
from moot.errors import MootError, NeedsApproval
from moot.features.approvals import CallPreview, asked_in, diff_of, preview_call
from moot.formats.kit.fidelity import fence_around, pretty
from moot.formats.notebook.outputs import markdown_bundle, safe_markdown
from moot.guard.roots import allowed_folders
from moot.guard.terminal import visible
from moot.kernel.display import Frontend
from moot.library.options import asked_of
from moot.runtime.approvals.answers import check_answer
from moot.runtime.approvals.typed_answers import TypedQuestion, answer_command, choices, open_approval, parse_answer
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, loads_exact
from moot.types.ids import new_id
from moot.types.tool import Question


class Questions:
    """Questions to the person about one run."""

    def __init__(self, engine: Engine, frontend: Frontend, refresh: Callable[[], None]) -> None:
        """`refresh` shows the answer so far, which a question refers to."""
        self._engine, self._frontend, self._refresh = engine, frontend, refresh
        self.run = ""
        """Id of the run."""

    async def approve(self, approval: Approval) -> Answer:
        """Ask the person. Raise NeedsApproval if this frontend can't ask; the approval stays open and can be answered elsewhere."""
        self._refresh()
        asked = await asked_in(self._engine.store, approval, self._engine.settings)
        conversation = asked.conversation
        directory = Path(conversation.directory)
        preview = await preview_call(approval.arguments, approval.parts, allowed_folders(conversation, directory), directory, asked.command)
        title = asked_of(self._engine.settings, approval, conversation.directory).view.title
        card, tool = new_id(), _words(approval.tool)
        self._frontend.show(markdown_bundle("\n\n".join(_card(approval, preview, title, asked.agents))), card)
        answer = await self._typed(approval, answer_command(approval, conversation.id))
        # the call itself is in the answer, so the request needs no space any more
        self._frontend.show(markdown_bundle(f"*{tool} needed your approval*"), card, update=True)
        return answer

    async def _typed(self, approval: Approval, later: str) -> Answer:
        while True:
            line = await self._frontend.ask(f"Allow? {choices(approval)}: ")
            if line is None:
                raise NeedsApproval(f"The tool {approval.tool!r} needs your approval, but this frontend can't ask for it.", fix=later)
            if (answer := parse_answer(approval, line)) is None:
                continue
            if problem := await self._problem(approval, answer):
                self._frontend.show(markdown_bundle(_words(problem)))
            else:
                return answer

    async def _problem(self, approval: Approval, answer: Answer) -> str:
        try:
            await check_answer(self._engine.runtime, approval.id, answer)
        except MootError as error:
            return error.advice()
        return ""

    async def reply(self, asked: Question) -> list[str]:
        """Ask the person an agent's question. Raise NeedsApproval if this frontend can't ask; the question stays open."""
        self._refresh()
        question = TypedQuestion(
            {
                "header": asked.header,
                "text": asked.text,
                "options": [{"label": option.label, "description": option.description} for option in asked.options],
                "multiple": asked.multiple,
            }
        )
        self._frontend.show(markdown_bundle("\n".join(_question(question))))
        while True:
            line = await self._frontend.ask(f"Answer ({question.hint}): ")
            if line is None:
                raise NeedsApproval("The agent asks a question, but this frontend can't ask you.", fix=await self._later())
            reply = question.parse(line)
            if not isinstance(reply, str):
                return reply
            if reply:
                self._frontend.show(markdown_bundle(_words(reply)))

    async def _later(self) -> str:
        """Return the command with which to answer elsewhere."""
        approval = await open_approval(self._engine.store, self.run)
        if approval is None:
            return ""
        return answer_command(approval, (await self._engine.store.records.run(approval.run)).conversation)


def _card(approval: Approval, preview: CallPreview, title: str, agents: str) -> Iterator[str]:
    """Yield the paragraphs that show the whole call, with hidden characters spelled out."""
    value = _value(approval.arguments)
    command = preview.command or (value.get("command") if isinstance(value, dict) else None)
    yield f"**{_words(approval.tool)}** needs your approval" + ("" if isinstance(command, str) else f": {_words(title)}")
    if (diff := diff_of(preview)) is not None and isinstance(value, dict):
        yield _fenced(diff, "diff")
        value = {name: one for name, one in value.items() if name not in ("content", "edits")}
    if isinstance(command, str):
        yield _fenced(command, "bash")
        value = {name: one for name, one in value.items() if name != "command"} if isinstance(value, dict) else value
    if value:
        yield _fenced(pretty(value), "json")
    reasons = dict.fromkeys(f"{_words(part.text)}: {_words(part.why)}" for part in approval.parts if part.action == "ask")
    if reasons:
        yield "\n".join(f"* {reason}" for reason in reasons)
    if agents != "default":
        yield f"*Requested by the agent {_words(agents)}*"


def _value(arguments: bytes) -> Json:
    try:
        return loads_exact(arguments)
    except ValueError:
        return arguments.decode("utf-8", "replace")


def _question(question: TypedQuestion) -> Iterator[str]:
    yield f"{_words(question.title)}\n"
    for number, (name, description) in enumerate(question.options, 1):
        yield f"{number}. {_words(name)}" + (f" · {_words(description)}" if description else "")


def _words(text: str) -> str:
    """Return untrusted text as one line of Markdown without markup."""
    line = " ".join(visible(text).split())
    return safe_markdown("".join(f"\\{character}" if character in "\\`*_{}[]()#|~$" else character for character in line))


def _fenced(text: str, language: str) -> str:
    fence = fence_around(text)
    return f"{fence}{language}\n{visible(text)}\n{fence}"
