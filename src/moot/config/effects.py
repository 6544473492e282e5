"""Keys that are validated but have no effect in this version. Loading warns about them, and `moot config check` fails."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from moot.config.agents.builtin import BUILT_IN
from moot.config.tree import Node, Place, find, place_of
from moot.errors import ConfigError
from moot.plugins import AGENTS, CHANNELS, DELIVERIES, KNOWN_AGENTS, TOOLS
from moot.types.agent import KnownAgent
from moot.types.cron import CHANNEL, WEBHOOK

_OWN_LOOP_ONLY = (
    *("temperature", "history.max_tokens", "history.compact_at", "history.keep", "reasoning.show"),
    *("prompt", "agents", "skills", "output_format"),
)
"""Keys of an agent that have an effect only if its type is `moot`."""

_OUTSIDE_ONLY = ("options",)
"""Keys of an agent that have no effect if its type is `moot`."""


def without_effect(root: Node) -> tuple[ConfigError, ...]:
    """Return an error for each key that is set but has no effect, in file order."""
    found = [*_of_agents(root), *_of_unknown_names(root)]
    return tuple(sorted(found, key=lambda error: (error.file, error.line, error.column)))


def _of_agents(root: Node) -> Iterator[ConfigError]:
    for name, agent in _entries(root, "agents").items():
        kind = str(find(agent, "agent_type") or "moot")
        if kind not in AGENTS or AGENTS.package(kind):  # only the plugin knows which keys it reads
            continue
        for key in _OUTSIDE_ONLY if kind == "moot" else _OWN_LOOP_ONLY:
            for path, place in _set(agent, key):
                yield _error(f"agents.{name}.{path}", place, f"This key has no effect for agents of the type {kind!r}.")
        models = find(agent, "fallback") if kind != "moot" else None
        for entry in models if isinstance(models, list) else ():
            if "@" in str(entry.value):  # outside agents choose their models themselves
                yield _error(f"agents.{name}.fallback", entry.place, f"For agents of the type {kind!r}, only agents can be listed here.")


def _of_unknown_names(root: Node) -> Iterator[ConfigError]:
    for section, registry in (("channels", CHANNELS), ("tools", TOOLS)):
        for name, entry in _entries(root, section).items():
            kind = str(find(entry, "type") or name) if section == "channels" else name
            if kind not in registry and not (section == "tools" and find(entry, "command") is not None):
                yield _error(f"{section}.{name}", entry.named or entry.place, registry.unknown(kind))
    yield from _of_budgets(root)
    for name, job in _entries(root, "cron").items():
        deliver = str(find(job, "deliver") or "log")
        if problem := delivery_problem(deliver, _entries(root, "outgoing_webhooks"), _entries(root, "channels")):
            yield _error(f"cron.{name}.deliver", job.named or job.place, problem)


def _of_budgets(root: Node) -> Iterator[ConfigError]:
    agents = {"default", *BUILT_IN, *_entries(root, "agents")}
    for name, budget in _entries(root, "budgets").items():
        agent = str(find(budget, "agent") or "")
        # a project can define agents that are not known here
        if agent and agent not in agents and not find(budget, "project") and agent not in _outside_agents():
            known = f"Known: {', '.join(sorted(agents))}. For an agent of a project, set project too."
            yield _error(f"budgets.{name}.agent", place_of(root, ("budgets", name, "agent")), f"Agent {agent!r} not found. {known}")
        if find(budget, "per") == "run" and find(budget, "tz"):
            yield _error(f"budgets.{name}.tz", place_of(root, ("budgets", name, "tz")), "This key has no effect for budgets per run.")


def _outside_agents() -> set[str]:
    """Return the names of the outside agents that run without configuration."""
    tables: list[tuple[KnownAgent, ...]] = [KNOWN_AGENTS.load(name) for name in KNOWN_AGENTS.names()]
    return {agent.name for table in tables for agent in table}


def delivery_problem(deliver: str, webhooks: Collection[str], channels: Collection[str]) -> str:
    """Return the reason why answers can't be delivered to this target, or an empty string if they can.

    `webhooks` and `channels` are the names of the configured outgoing webhooks and channels.
    """
    kind, _, target = deliver.partition(":")
    name, _, place = target.partition(":")
    if kind == WEBHOOK:
        known = f"Known: {', '.join(sorted(webhooks))}." if webhooks else "The section outgoing_webhooks is empty."
        return "" if target in webhooks else f"There is no outgoing webhook {name!r}. {known}"
    if kind == CHANNEL and name in channels:
        return "" if place else f"{deliver!r} does not name a place. Use channel:{name}:PLACE, such as channel:discord:GUILD/CHANNEL."
    if kind == CHANNEL:
        known = f"Known: {', '.join(sorted(channels))}." if channels else "The section channels is empty."
        return f"There is no channel {name!r}. {known}"
    if kind in DELIVERIES:
        return ""
    return f"Answers can't be delivered by {kind!r}. Available: {', '.join([*DELIVERIES.names(), CHANNEL, WEBHOOK])}."


def _entries(root: Node, section: str) -> dict[str, Node]:
    found = find(root, section)
    return found if isinstance(found, dict) else {}


def _set(node: Node, pattern: str, above: str = "") -> Iterator[tuple[str, Place]]:
    """Yield the path and place of each key that matches the pattern and is not empty. `*` matches any name."""
    step, _, rest = pattern.partition(".")
    for name, child in node.value.items() if isinstance(node.value, dict) else ():
        if step not in ("*", name):
            continue
        if rest:
            yield from _set(child, rest, f"{above}{name}.")
        elif not _is_empty(child):
            yield f"{above}{name}", child.named or child.place


def _is_empty(node: Node) -> bool:
    if isinstance(node.value, dict):
        return all(_is_empty(child) for child in node.value.values())
    return node.value is None or node.value in ([], "")


def _error(path: str, place: Place, why: str) -> ConfigError:
    return place.error(f"{path}: {why}")
