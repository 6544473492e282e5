"""Which model is taken where none is configured, and whether an embedded one's weights are here."""

from __future__ import annotations

from moot.cli.output import Output
from moot.plugins.registry import attribute
from moot.providers.pool import Providers

# reached by their paths: a run with a provider's model fetches nothing
_PROVIDE = "moot.cli.fetching:provide"
_IS_MISSING = "moot.cli.fetching:is_missing"


async def provide_weights(providers: Providers, model: str, output: Output, *, consent: bool) -> None:
    """Says which model is taken where none is configured, and sees to it that an embedded one's weights are here.

    Raises UsageError when nobody can be asked, ProviderError where they could not run: nobody is to fetch them for nothing.
    """
    choice = await providers.choice(model)
    if model in ("", "main") and not providers.settings.models.main:
        output.say(f"moot: no model is configured; {choice.model.id} is what there is", "dim")
    if choice.provider.name == "local":
        await attribute(_PROVIDE)(choice.model.id.model, providers.settings.home, output, consent=consent)


async def wants_weights(providers: Providers, model: str) -> bool:
    """Whether `provide_weights` would have something to say or to fetch. Raises as `Providers.choice`."""
    choice = await providers.choice(model)
    return choice.provider.name == "local" and attribute(_IS_MISSING)(choice.model.id.model, providers.settings.home)
