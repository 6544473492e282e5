"""The commands `moot models list`, `pull`, `test` and `choose`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.fetching import fetch
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.paging import paged
from moot.cli.tables import print_table
from moot.cli.trying import try_model
from moot.cli.welcome.choosing import choose as choose_model
from moot.convert.described import model_json
from moot.errors import UsageError
from moot.providers.pool import Providers
from moot.providers.weights.manifest import DEFAULT
from moot.types.model import Model


async def list_(
    provider: Annotated[str | None, Parameter(kind="provider", help="Provider whose models to list. Defaults to all.")] = None,
    /,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the models of all available providers."""
    providers = Providers(configured(output).settings)
    try:
        listing = await providers.models(provider or "")
    finally:
        await providers.close()
    for name, problem in listing.problems.items():
        output.say(f"moot: {name}: {problem}", "yellow")
    page = paged([model_json(model) for model in listing.models], limit, cursor, "id")
    if json:
        output.json(page.to_json())
        return
    shown = {str(item["id"]) for item in page.items}
    rows = [_row(model) for model in listing.models if str(model.id) in shown]
    print_table(output, ["MODEL", "CONTEXT", "INPUT", "$/M IN", "$/M OUT", "NOTE"], rows)
    page.say_more(output)


async def pull(
    name: Annotated[str, Parameter(help="Name of the embedded model.")] = DEFAULT,
    /,
    *,
    from_: Annotated[Path | None, Parameter(name="--from", help="Local file to use instead of a download.")] = None,
    yes_download: Annotated[bool, Parameter(help="Download without prompting.")] = False,
    json: AsJson = False,
    verbose: Annotated[bool, Parameter(help="Also show the license, the source, and sources that failed.")] = False,
    output: Out,
) -> None:
    """Download the weights of an embedded model, after showing what it is and how large."""
    path = await fetch(name, configured(output).settings.home, output, consent=yes_download, source=from_, verbose=verbose)
    if json:
        output.json({"name": name, "path": str(path)})
    else:
        output.line(str(path))


async def test(
    model: Annotated[str, Parameter(kind="model", help="Model as MODEL@PROVIDER, a model name, or a type.")] = "main",
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> int:
    """Send a short prompt to a model and print the answer."""
    return await try_model(configured(output).settings, model, output, as_json=json)


async def choose(
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


def _row(model: Model) -> list[str]:
    price = model.price
    return [
        str(model.id),
        f"{model.context:,}" if model.context else "?",
        ",".join(model.modalities),
        _dollars(price.input if price else None),
        _dollars(price.output if price else None),
        model.note,
    ]


def _dollars(nano_per_token: float | None) -> str:
    return "?" if nano_per_token is None else f"{nano_per_token / 1000:g}"
