"""The body of the AI SDK's transport, and what we let it say besides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, JsonValue, field_validator

from moot.types.agent import Mode
from moot.types.run import OnBusy

_LOOSE = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)
"""Applications put more into these bodies than we know; the AI SDK's own fields come and go with its versions."""


ID_BYTES = 128


def _opaque(id: str) -> str:
    if not id or not id.isprintable() or len(id.encode("utf-8", "replace")) > ID_BYTES:
        raise ValueError(f"an id has 1 to {ID_BYTES} bytes, all of them printable")
    return id


ClientId = Annotated[str, AfterValidator(_opaque)]
"""An id that a client made up; opaque to us."""


class MessageIn(BaseModel):
    """A UIMessage."""

    model_config = _LOOSE

    id: ClientId | None = None
    role: Literal["system", "user", "assistant"]
    parts: list[dict[str, JsonValue]] = []


class ClientTool(BaseModel):
    """A tool that the client runs itself."""

    model_config = _LOOSE

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = Field(default="", max_length=8_000)
    input_schema: dict[str, JsonValue] = Field(
        default={"type": "object"},
        validation_alias=AliasChoices("inputSchema", "parameters", "input_schema"),
        serialization_alias="inputSchema",
    )


class _NamelessTool(ClientTool):
    name: str = ""


class ChatIn(BaseModel):
    """What `useChat` and other clients of the AI SDK send."""

    model_config = _LOOSE

    id: ClientId
    """The client's own id of the conversation, or ours; an unknown one makes a conversation."""
    messages: list[dict[str, JsonValue]] | None = None
    """All that the client shows; only the last one counts, the rest is ours."""
    message: MessageIn | None = None
    """The last one alone."""
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: ClientId | None = Field(default=None, alias="messageId")
    agent: str | None = None
    model: str | None = None
    mode: Mode | None = None
    directory: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Where a conversation that is made works; needs the scope `tools`. None = the project's root, else where the server was started."""
    project: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Id or name of the project that a conversation is made in; None = the one whose root holds the folder."""
    on_busy: OnBusy = "reject"
    effort: Literal["none", "low", "medium", "high", "max"] | None = None
    max_steps: int | None = Field(default=None, ge=1, le=1000)
    tools: bool | list[str | ClientTool] | dict[str, _NamelessTool] | None = None
    """false = none; names of ours; definitions `{name, description, inputSchema}` of what the client runs, also as an object by name."""

    @field_validator("messages")
    @classmethod
    def _ends_with_a_message(cls, messages: list[dict[str, JsonValue]] | None) -> list[dict[str, JsonValue]] | None:
        if messages:
            MessageIn.model_validate(messages[-1])
        return messages

    @property
    def last(self) -> MessageIn | None:
        """The message that counts."""
        if self.message is not None:
            return self.message
        return MessageIn.model_validate(self.messages[-1]) if self.messages else None

    @property
    def own_tools(self) -> bool | list[str] | None:
        """Whether, or which, tools of ours are offered; None = those of the agent."""
        if isinstance(self.tools, bool):
            return self.tools
        names = [tool for tool in self.tools if isinstance(tool, str)] if isinstance(self.tools, list) else []
        return names or None

    @property
    def client_tools(self) -> list[ClientTool]:
        if isinstance(self.tools, dict):
            return [ClientTool.model_validate({**tool.model_dump(by_alias=True), "name": name}) for name, tool in self.tools.items()]
        return [tool for tool in self.tools if isinstance(tool, ClientTool)] if isinstance(self.tools, list) else []


class Stopped(BaseModel):
    """The runs that were stopped."""

    stopped: list[str]
