"""Test calls to a model."""

from __future__ import annotations

from moot.cli.output import Output
from moot.config.settings import Settings
from moot.providers.pool import Providers
from moot.providers.trying import Answered, answered_json
from moot.providers.trying import ask_model as ask_with


async def ask_model(settings: Settings, model: str) -> Answered:
    """Send a short prompt to the model and return its answer. Raise UsageError or ProviderError on failure."""
    providers = Providers(settings)
    try:
        return await ask_with(providers, model)
    finally:
        await providers.close()


async def try_model(settings: Settings, model: str, output: Output, *, as_json: bool) -> int:
    """Call the model once and print the result. Raise UsageError or ProviderError on failure."""
    answered = await ask_model(settings, model)
    found = answered.choice.model
    if as_json:
        output.json(answered_json(answered))
    else:
        output.line(f"{found.id}: {' '.join(answered.text.split()) or '(no text)'}")
        output.say(f"moot: answered in {answered.seconds:.1f} s", "green")
    if found.note:
        output.say(f"note: {found.note}", "yellow")
    return 0
