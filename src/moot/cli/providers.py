"""The commands `moot providers list` and `test`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.paging import paged
from moot.cli.tables import print_table
from moot.cli.trying import try_model
from moot.providers.described import providers_json
from moot.providers.pool import Providers


async def list_(*, limit: Limit = 50, cursor: Cursor = None, json: AsJson = False, output: Out) -> None:
    """Print the providers in lookup order, and what each one is missing."""
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


async def test(
    provider: Annotated[str, Parameter(kind="provider", help="Name of the provider.")],
    /,
    *,
    model: Annotated[
        str, Parameter(name=("--model", "-m"), kind="model", help="Model of this provider. Defaults to the provider's choice.")
    ] = "",
    json: AsJson = False,
    output: Out,
) -> int:
    """Send a short prompt to a model of the provider and print the answer."""
    return await try_model(configured(output).settings, f"{model}@{provider}", output, as_json=json)
