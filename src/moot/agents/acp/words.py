"""What went wrong between us and an agent, in words for a person, with the next move."""

from __future__ import annotations

from moot.agents.known.acp import AcpAgent
from moot.agents.outside.rpc import RpcRefused
from moot.errors import ProviderError
from moot.guard.terminal import clean
from moot.types.canonical import Json, JsonObject

__all__ = ["AUTH_REQUIRED", "VERSION", "refused", "speaks"]

AUTH_REQUIRED = -32000
VERSION = 1
"""Of the protocol."""
_SHOWN = 500


def speaks(initialized: JsonObject, agent: AcpAgent) -> None:
    """Raises ProviderError when the agent speaks another version of the protocol than we."""
    version = initialized.get("protocolVersion")
    if version == VERSION:
        return
    message = f"{_name(agent)} speaks version {version!r} of the Agent Client Protocol, and moot speaks version {VERSION}"
    raise ProviderError(message, kind="protocol", fix=f"update moot, or take a version of {_name(agent)} that speaks version {VERSION}")


def refused(error: RpcRefused, what: str, agent: AcpAgent, methods: Json) -> ProviderError:
    """Why the agent did not do what was asked of it. An agent that wants somebody to log in is told by its own command."""
    words = _shown(error)
    if error.rpc_code != AUTH_REQUIRED and "authenticat" not in words.lower():
        return ProviderError(f"{_name(agent)} could not {what}: {words}", kind="failed")
    fix = f"log in with `{agent.login}`" if agent.login else _ways(methods) or f"log in with {_name(agent)}'s own program"
    return ProviderError(f"{_name(agent)} wants somebody to log in first: {words}", kind="auth", fix=fix)


def _name(agent: AcpAgent) -> str:
    return repr(agent.name or "the agent")


def _shown(error: RpcRefused) -> str:
    """The message with the detail that most agents put beside it: many messages say no more than "Internal error"."""
    message = error.message.partition("was refused: ")[2] or error.message
    data = error.data
    detail = data.get("details") or data.get("message") or data.get("error") if isinstance(data, dict) else data
    text = f"{message}: {detail}" if isinstance(detail, str) and detail and detail not in message else message
    return clean(text)[:_SHOWN]


def _ways(methods: Json) -> str:
    """What the agent itself says of ways to log in."""
    told: list[str] = []
    for method in methods if isinstance(methods, list) else []:
        if isinstance(method, dict):
            told.append(str(method.get("description") or method.get("name") or method.get("id")))
    return clean("; ".join(told))[:_SHOWN]
