"""A call that waits for a yes or no: its keys, what they lead to, and what is to be seen. Pure."""

from __future__ import annotations

from moot.cli.approving.looking import rows_of
from moot.cli.approving.offered import by_key, label
from moot.cli.approving.prompting import Line, Prompt, Wish
from moot.cli.approving.rows import Row, spelled
from moot.runtime.looking import Looked
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, dumps, loads_exact

__all__ = ["CallPrompt"]


class CallPrompt(Prompt):
    """One approval. `edited` is what the person put in the place of its arguments, until they say yes to it."""

    def __init__(self, approval: Approval, looked: Looked, directory: str, asked_by: str) -> None:
        super().__init__()
        self._approval = approval
        self._directory = directory
        self._asked_by = asked_by
        self.looked = looked
        self.edited: bytes | None = None
        self.explanation = ""
        self._offered = by_key(approval.options)
        self._patterns: list[str] = []
        self._entered: list[str] = []

    @property
    def title(self) -> Row:
        words = "as you edited it" if self.edited is not None else ""
        name = " ".join(spelled(self._approval.tool))
        return Row(f"{name} wants to run {words}".rstrip(), "bold", f"asked by: {self._asked_by}", "dim", 1)

    def body(self) -> list[Row]:
        call = self._approval.outside
        words = call.title if call is not None and (not call.subject or call.subject not in call.title) else ""
        rows = [Row(line, "dim", prose=True) for line in spelled(words) if line]
        rows += [*rows_of(self.looked), Row(f"in {' '.join(spelled(self._directory))}", "dim")]
        if self.explanation:
            rows.append(Row("A model says of it:", "dim"))
            rows += [Row(line, indent=4, prose=True) for line in spelled(self.explanation)]
        return rows

    def keys(self) -> dict[str, str]:
        if self.edited is not None:
            return {"y": "run it as edited", "e": "edit again", "n": "no", "b": "no, because…"}
        if self._offered:
            return self._outside_keys()
        keys = {"y": "once"}
        if self._approval.lasting:
            keys["s"] = "this conversation"
        if self._approval.always:
            keys["a"] = f"always: {self._approval.tool} {self._shown_patterns()} (edit)"
        keys |= {"n": "no", "b": "no, because…", "?": "explain"}
        return keys | {"e": "edit the arguments"} if self._editable else keys

    def _outside_keys(self) -> dict[str, str]:
        keys = {key: label(option) for key, option in self._offered.items()}
        keys |= {"n": keys.get("n", "no"), "b": "no, because…", "?": "explain"}
        return keys | {"e": "edit the arguments"} if self._editable else keys

    @property
    def _editable(self) -> bool:
        return self._approval.outside is None or self._approval.outside.editable

    def choose(self, key: str) -> None:
        if self.edited is None and (option := self._offered.get(key)) is not None:
            self.propose(Answer(option.allows, option.id, "" if option.allows else "the person said no"))
            return
        match key:
            case "y":
                self.propose(Answer(True, arguments=self.edited))
            case "s":
                self.propose(Answer(True, "conversation"))
            case "a":
                self._patterns, self._entered = list(self._approval.lasting), []
                self._ask_pattern()
            case "n":
                self.propose(Answer(False, reason="the person said no"))
            case "b":
                self.line = Line("No, because: ", "", self._because)
            case "?":
                self.message = "asking a model…"
                self.wish = Wish.EXPLAIN
            case _:
                self._edit()

    def take_edited(self, text: str) -> bytes | None:
        """The arguments in their one form; None, and a message, when they are no JSON object."""
        try:
            value = loads_exact(text.encode("utf-8", "replace"))
        except ValueError as error:
            self.message = f"that is no JSON: {error}; nothing was changed"
            return None
        if not isinstance(value, dict):
            self.message = "the arguments must be a JSON object; nothing was changed"
            return None
        return dumps(value)

    @property
    def arguments(self) -> bytes:
        return self.edited if self.edited is not None else self._approval.arguments

    def show(self, looked: Looked) -> None:
        """Puts edited arguments in the place of the model's."""
        same = looked.arguments == self._approval.arguments
        self.edited, self.looked, self.explanation = (None if same else looked.arguments), looked, ""
        self.message = "nothing was changed" if same else ""

    def _shown_patterns(self) -> str:
        return ", ".join(f'"{" ".join(spelled(pattern))}"' for pattern in self._approval.lasting)

    def _ask_pattern(self) -> None:
        which = f" ({len(self._entered) + 1} of {len(self._approval.lasting)})" if len(self._approval.lasting) > 1 else ""
        pattern = self._patterns[len(self._entered)]
        wider = [part.patterns for part in self._approval.parts if part.action == "ask"][len(self._entered)]
        self.line = Line(f"Always allow {self._approval.tool}{which}: ", pattern, self._take_pattern, wider)

    def _take_pattern(self, text: str) -> None:
        if not text.strip():
            self.message = "no rule was written"
            return
        self._entered.append(text.strip())
        if len(self._entered) < len(self._patterns):
            self._ask_pattern()
        else:
            self.propose(Answer(True, "always", patterns=tuple(self._entered)))

    def _because(self, text: str) -> None:
        if text.strip():
            self.propose(Answer(False, reason=text.strip()))

    def _edit(self) -> None:
        value = loads_exact(self.arguments)
        command = value.get("command") if isinstance(value, dict) else None
        if isinstance(value, dict) and isinstance(command, str) and command.isprintable():

            def entered(text: str) -> None:
                changed: dict[str, Json] = {**value, "command": text}
                self.edit_to(dumps(changed).decode())

            self.line = Line("Run instead: ", command, entered)
        else:
            self.wish = Wish.EDITOR
