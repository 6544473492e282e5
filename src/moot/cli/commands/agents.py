"""The commands of `moot agents`, `moot models` and `moot providers`."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, get_args

import anyio

from moot.agents.known import agent_named, agents_of_project, available_agents, known_agents, presence_of
from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter
from moot.cli.console.format import paged, print_fields, print_table
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.cli.models import embedded_json, fetch, print_embedded, try_model
from moot.cli.options import Timeout, seconds
from moot.cli.welcome import choose as choose_model
from moot.config.agents.files import NAME
from moot.config.changes import set_value
from moot.config.home import home_of
from moot.config.loader import FILE
from moot.config.settings import Settings
from moot.convert.serialization import agent_json, model_json
from moot.engine import open_engine
from moot.errors import ConfigError, ProviderError, UsageError
from moot.features.agents import prompt_preview, source_of
from moot.plugins import AGENTS
from moot.plugins.registry import hint
from moot.providers.pool import Providers
from moot.providers.status import QUESTION, providers_json
from moot.providers.weights import DEFAULT
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.exchange import Failure
from moot.types.message import text_of, text_part
from moot.types.model import ModelRole
from moot.types.run import Prompt


def list_agents(
    *,
    all_: Annotated[bool, Parameter(help="Include supported agents that are not installed.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the configured agents and the outside agents whose programs are installed."""
    settings, folder = configured(output).settings, str(here())
    found = available_agents(settings, folder)
    absent = {name: entry.agent() for name, entry in known_agents().items() if name not in found}
    page = paged([agent_fields(settings, agent) for agent in (found | absent if all_ else found).values()], limit, cursor, "name")
    if json:
        output.json(page.to_json())
        return
    rows: list[list[str]] = []
    for item in page.items:
        state = "ready" if item["ready"] else "missing"
        about = f"{'(beta) ' if item['beta'] else ''}{item['description']}"
        words = [item["name"], item["model"] or "chosen by agent", item["agent_type"], item["source"], state, about]
        rows.append([str(word) for word in words])
    print_table(output, ["NAME", "MODEL", "TYPE", "SOURCE", "STATE", "DESCRIPTION"], rows)
    project = agents_of_project(settings, folder)
    for words in (*project.notes, *(error.advice() for error in project.refused.values())):
        output.say(f"moot: {words}", "yellow")
    for item in page.items:
        if item["missing"]:
            output.say(f"moot: {item['name']}: {item['missing']}; {item['install']}", "yellow")
    if absent and not all_:
        output.say(f"moot: {len(absent)} more agents are not installed; 'moot agents list --all' shows them", "dim")
    page.say_more(output)


async def show_agent(
    name: Annotated[str, Parameter(kind="agent", help="Name of the agent.")],
    /,
    *,
    prompt: Annotated[
        bool, Parameter(help="Print the parts of the agent's system prompt for this folder, with estimated token counts.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the settings of an agent and whether its program is installed."""
    settings, folder = configured(output).settings, str(here())
    agent = agent_of(settings, name, folder)
    if not prompt:
        print_fields(output, agent_fields(settings, agent), json=json)
        return
    async with opened(output) as engine:
        parts = await prompt_preview(engine, agent.name, Conversation("", directory=folder))
    if json:
        output.json({"data": [part.to_json() for part in parts]})
        return
    for part in parts:
        output.line(f"── {part.name} · {part.tokens:,} tokens")
        output.line(f"{part.text}\n")
    output.say(f"moot: {sum(part.tokens for part in parts):,} tokens in total (estimated)", "dim")


async def add_agent(
    name: Annotated[str, Parameter(help="Name of the agent. It can contain letters, digits, - and _.")],
    /,
    *command: Annotated[str, Parameter(help="Command that starts an outside agent, placed after --.")],
    type_: Annotated[str, Parameter(metavar="TYPE", help="Agent type: moot, or the type of an outside agent.")] = "",
    model: Annotated[
        str, Parameter(name=("--model", "-m"), kind="model", help="Model of the agent. By default, outside agents choose their own model.")
    ] = "",
    description: Annotated[str, Parameter(metavar="TEXT", help="Short description.")] = "",
    instructions: Annotated[str, Parameter(metavar="TEXT", help="System prompt.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Add an agent to the user's configuration file after checking it."""
    if not NAME.fullmatch(name):
        raise UsageError(f"Invalid agent name {name!r}: use letters, digits, - and _.")
    if name in configured(output).settings.agents:
        raise UsageError(
            f"Agent {name!r} already exists.", fix=f"Show it with 'moot agents show {name}', or change it with 'moot config edit'."
        )
    kind = type_ or (f"acp:{name}" if command else "moot")
    if kind.partition(":")[0] not in AGENTS:
        raise UsageError(AGENTS.unknown(kind), fix="moot agents list --all")
    if kind == "moot" and model not in ("", *get_args(ModelRole)):
        await _check_model(configured(output).settings, model)
    path = home_of(os.environ) / FILE
    entry: JsonObject = {"description": description, "agent_type": kind, "model": model, "instructions": instructions}
    entry = {key: value for key, value in entry.items() if value or (key == "model" and kind != "moot")}
    entry |= {"options": {"command": list[Json](command)}} if command else {}
    set_value(path, f"agents.{name}", entry, os.environ)
    report_saved(output, name, f"added agents.{name} to {path}", json=json)


def report_saved(output: Output, name: str, done: str, *, json: bool) -> None:
    """Print the fields of a saved agent as JSON, or print a message and how to test the agent."""
    settings = configured(output).settings
    agent = agent_of(settings, name)
    if json:
        output.json(agent_fields(settings, agent))
        return
    output.say(f"moot: {done}", "green")
    if (found := presence_of(agent)).missing:
        output.say(f"moot: {name}: {found.missing}; {found.install}", "yellow")
    output.say(f"moot: test it with 'moot agents test {name}'", "dim")


async def _check_model(settings: Settings, model: str) -> None:
    """Raise UsageError if the model is unknown. Any model is accepted if its provider has no key yet or doesn't answer."""
    providers = Providers(settings)
    try:
        with suppress(ConfigError, ProviderError):
            await providers.choice(model)
    finally:
        await providers.close()


def agent_of(settings: Settings, name: str, directory: str = "") -> Agent:
    """Return the agent with this name in a folder. Raise UsageError if it does not exist."""
    agent = agent_named(settings, name, directory)
    if agent is None:
        known = list(available_agents(settings, directory))
        meant = hint(name, [*known, *known_agents()])
        raise UsageError(f"Agent {name!r} not found.{meant} Available agents: {', '.join(known)}.", fix="moot agents list --all")
    return agent


def agent_fields(settings: Settings, agent: Agent) -> JsonObject:
    """Return an agent as JSON: its settings, where it is defined, and whether its program is installed."""
    return {**agent_json(agent), "source": source_of(settings, agent), **presence_of(agent).to_json()}


async def test_agent(
    name: Annotated[str, Parameter(kind="agent", help="Name of the agent.")],
    /,
    *,
    timeout: Timeout = "2m",
    json: AsJson = False,
    output: Out,
) -> int:
    """Run a short prompt with an agent in an empty directory, with every permission denied. Nothing is stored."""
    settings = configured(output).settings
    agent = agent_of(settings, name, str(here()))
    if agent.agent_type == "moot":
        return await try_model(settings, agent.model, output, as_json=json)
    if not (found := presence_of(agent)).ready:
        raise ConfigError(f"Agent {name!r} is not available: {found.missing}.", fix=found.install)
    return await _try_agent(settings, agent, output, timeout=seconds(timeout), as_json=json)


async def _try_agent(settings: Settings, agent: Agent, output: Output, *, timeout: float, as_json: bool) -> int:
    """Run an outside agent once, in a temporary home and a temporary directory. Raise ProviderError if the run fails."""
    with TemporaryDirectory(prefix="moot-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        temporary = replace(settings, home=Path(folder) / "home", agents={**settings.agents, agent.name: agent})
        async with open_engine(temporary) as engine:
            prompt = Prompt(
                (text_part(QUESTION),), directory=str(work), agent=agent.name, settings={"unattended": "deny", "timeout": timeout}
            )
            started = anyio.current_time()
            run = (await engine.runs.submit(prompt)).run
            ended = await engine.runs.wait(run.id)
            duration = anyio.current_time() - started
            message = await engine.store.conversations.message(ended.message)
    if ended.status != "finished":
        failure = ended.error or Failure(f"the run ended with status {ended.status}")
        raise ProviderError(f"{agent.name}: {failure.message}", fix=failure.fix)
    text = " ".join(text_of(message.parts).split())
    if as_json:
        facts: JsonObject = {"agent": agent.name, "text": text, "seconds": round(duration, 3)}
        output.json({**facts, "usage": ended.usage.to_json(), "cost": ended.cost})
    else:
        output.line(f"{agent.name}: {text or '(no text)'}")
        output.say(f"moot: answered in {duration:.1f} s", "green")
    return 0


async def list_models(
    provider: Annotated[str | None, Parameter(kind="provider", help="Provider whose models to list. Defaults to all providers.")] = None,
    /,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the models of all available providers, and the embedded models that can be downloaded."""
    settings = configured(output).settings
    providers = Providers(settings)
    try:
        listing = await providers.models(provider or "")
    finally:
        await providers.close()
    for name, problem in listing.problems.items():
        output.say(f"moot: {name}: {problem}", "yellow")
    page = paged([model_json(model) for model in listing.models], limit, cursor, "id")
    embedded = embedded_json(settings.home) if provider in (None, "local") else []
    if json:
        output.json({**page.to_json(), "embedded": list[Json](embedded)})
        return
    shown = {str(item["id"]) for item in page.items}
    rows = [
        [
            str(model.id),
            f"{model.context:,}" if model.context else "?",
            ",".join(model.modalities),
            _dollars(model.price.input if model.price else None),
            _dollars(model.price.output if model.price else None),
            model.note,
        ]
        for model in listing.models
        if str(model.id) in shown
    ]
    print_table(output, ["MODEL", "CONTEXT", "INPUT", "$/M IN", "$/M OUT", "NOTE"], rows)
    page.say_more(output)
    if embedded:
        print_embedded(embedded, output)


async def pull_model(
    name: Annotated[str, Parameter(help="Name of the embedded model.")] = DEFAULT,
    /,
    *,
    from_: Annotated[Path | None, Parameter(help="Local file to use instead of downloading the weights.")] = None,
    yes_download: Annotated[bool, Parameter(help="Download without prompting.")] = False,
    json: AsJson = False,
    verbose: Annotated[bool, Parameter(help="Also show the license, the download source, and download sources that failed.")] = False,
    output: Out,
) -> None:
    """Download the weights of an embedded model, after showing its name, size and publisher."""
    path = await fetch(name, configured(output).settings.home, output, consent=yes_download, source=from_, verbose=verbose)
    if json:
        output.json({"name": name, "path": str(path)})
    else:
        output.line(str(path))


async def test_model(
    model: Annotated[
        str, Parameter(kind="model", help="Model: MODEL@PROVIDER, a model name, or a name defined in the configuration, such as small.")
    ] = "main",
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> int:
    """Send a short prompt to a model and print the answer."""
    return await try_model(configured(output).settings, model, output, as_json=json)


async def choose_main_model(
    *,
    yes: Annotated[
        bool, Parameter(name=("--yes", "-y"), help="Don't prompt: use the first available model, downloading it if needed.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Show the available models and ask which one to use. Raise UsageError if the user cannot be asked."""
    if not yes and not (output.attended and output.stderr_terminal):
        raise UsageError(
            "Choosing a model requires a terminal.", fix="Run 'moot config set models.main MODEL@PROVIDER' or 'moot models choose --yes'."
        )
    loaded = await choose_model(configured(output), output, yes=yes)
    if json:
        output.json({"main": loaded.settings.models.main or None})


def _dollars(nano_per_token: float | None) -> str:
    return "?" if nano_per_token is None else f"{nano_per_token / 1000:g}"


async def list_providers(*, limit: Limit = 50, cursor: Cursor = None, json: AsJson = False, output: Out) -> None:
    """Print the providers in the order in which models are looked up, and what each one needs before it can be used."""
    providers = Providers(configured(output).settings)
    try:
        found = await providers_json(providers)
    finally:
        await providers.close()
    page = paged(found, limit, cursor, "name")
    if json:
        output.json(page.to_json())
        return
    rows = [[str(item["name"]), str(item["state"]), str(item["dialect"]), str(item["base_url"] or "-")] for item in page.items]
    print_table(output, ["NAME", "STATE", "DIALECT", "URL"], rows)
    for item in page.items:
        if item["missing"]:
            output.say(f"moot: {item['name']}: {item['missing']}", "yellow")
    page.say_more(output)


async def test_provider(
    provider: Annotated[str, Parameter(kind="provider", help="Name of the provider.")],
    /,
    *,
    model: Annotated[
        str, Parameter(name=("--model", "-m"), kind="model", help="Model to test. Defaults to the provider's default model.")
    ] = "",
    json: AsJson = False,
    output: Out,
) -> int:
    """Send a short prompt to a model of the provider and print the answer."""
    return await try_model(configured(output).settings, f"{model}@{provider}", output, as_json=json)
