"""Errors of the connection to an agent, as readable messages with a fix."""

from __future__ import annotations

from moot.agents.known.acp import AcpAgent
from moot.agents.outside.rpc import RpcRefused
from moot.errors import ProviderError
from moot.guard.terminal import clean
from moot.types.canonical import Json, JsonObject

AUTH_REQUIRED = -32000
VERSION = 1
"""Version of the protocol that moot speaks."""
_SHOWN = 500


def speaks(initialized: JsonObject, agent: AcpAgent) -> None:
    """Raise ProviderError if the agent speaks another version of the protocol."""
    version = initialized.get("protocolVersion")
    if version == VERSION:
        return
    message = f"{_name(agent)} speaks version {version!r} of the Agent Client Protocol, and moot speaks version {VERSION}"
    raise ProviderError(message, kind="protocol", fix=f"update moot, or install a version of {_name(agent)} that speaks version {VERSION}")


def refused(error: RpcRefused, what: str, agent: AcpAgent, methods: Json) -> ProviderError:
    """Return the error for a refused request. If the agent requires a login, the fix names its own command."""
    words = _shown(error)
    if error.rpc_code != AUTH_REQUIRED and "authenticat" not in words.lower():
        return ProviderError(f"{_name(agent)} could not {what}: {words}", kind="failed")
    fix = f"log in with `{agent.login}`" if agent.login else _ways(methods) or f"log in with {_name(agent)}'s own program"
    return ProviderError(f"{_name(agent)} requires a login: {words}", kind="auth", fix=fix)


def _name(agent: AcpAgent) -> str:
    return repr(agent.name or "the agent")


def _shown(error: RpcRefused) -> str:
    """Return the message with its details: many messages are only "Internal error"."""
    message = error.message.partition("was refused: ")[2] or error.message
    data = error.data
    detail = data.get("details") or data.get("message") or data.get("error") if isinstance(data, dict) else data
    text = f"{message}: {detail}" if isinstance(detail, str) and detail and detail not in message else message
    return clean(text)[:_SHOWN]


def _ways(methods: Json) -> str:
    """Return the agent's own description of how to log in."""
    methods_text: list[str] = []
    for method in methods if isinstance(methods, list) else []:
        if isinstance(method, dict):
            methods_text.append(str(method.get("description") or method.get("name") or method.get("id")))
    return clean("; ".join(methods_text))[:_SHOWN]
