"""Ensuring that the chosen model's weights are installed."""

from __future__ import annotations

from moot.cli.output import Output
from moot.plugins.registry import attribute
from moot.providers.pool import Providers

# loaded by path: runs with a provider's model don't need them
_PROVIDE = "moot.cli.fetching:provide"
_IS_MISSING = "moot.cli.fetching:is_missing"


async def provide_weights(providers: Providers, model: str, output: Output, *, consent: bool) -> None:
    """Print which model is used if none is configured, and download the weights of an embedded one.

    Raise UsageError if the user cannot be asked, and ProviderError if the model cannot run on this machine.
    """
    choice = await providers.choice(model)
    if model in ("", "main") and not providers.settings.models.main:
        output.say(f"moot: no model is configured; using {choice.model.id}", "dim")
    if choice.provider.name == "local":
        await attribute(_PROVIDE)(choice.model.id.model, providers.settings.home, output, consent=consent)


async def wants_weights(providers: Providers, model: str) -> bool:
    """Return whether `provide_weights` would download weights. Raise like `Providers.choice`."""
    choice = await providers.choice(model)
    return choice.provider.name == "local" and attribute(_IS_MISSING)(choice.model.id.model, providers.settings.home)
