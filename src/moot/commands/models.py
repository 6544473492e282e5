"""Models in the order of a list to choose from, each with what helps to choose."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Situation
from moot.types.model import Model

__all__ = ["model_choices"]

_RECENT = 50
"""Runs that are looked through for models used last."""


async def recent_models(situation: Situation) -> list[str]:
    """The models that answered last, newest first."""
    runs = await situation.engine.store.records.runs(limit=_RECENT)
    return list(dict.fromkeys(run.model for run in runs if run.model))


async def model_choices(situation: Situation) -> Sequence[Choice]:
    """All that can be reached, those used last first."""
    listing = await situation.engine.providers.models()
    recent = await recent_models(situation)
    known = {str(model.id): Choice(str(model.id), about=words(model)) for model in listing.models}
    first = [name for name in recent if name in known]
    return [known[name] for name in dict.fromkeys([*first, *known])]


def words(model: Model) -> str:
    """Context, price and what it can do, in a few words."""
    price = model.price
    facts = [
        f"{model.context // 1000}k" if model.context else "",
        f"${_dollars(price.input)} in, ${_dollars(price.output)} out" if price else "",
        "tools" if model.tools != "none" else "",
        "pictures" if "image" in model.modalities else "",
        "reasoning" if model.reasoning else "",
        model.note,
    ]
    return " · ".join(fact for fact in facts if fact)


def _dollars(nano_per_token: float | None) -> str:
    return "?" if nano_per_token is None else f"{nano_per_token / 1000:g}"
