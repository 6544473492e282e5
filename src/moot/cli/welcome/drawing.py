"""Layout of the first-run screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moot.cli.approving.rows import wrap_words
from moot.cli.screen.cells import cut, width_of
from moot.cli.welcome.finding import Discovery, Offer

__all__ = ["Line", "number_names", "render", "wrap"]

Line = tuple[str, str]
"""Text, and a style of `Lines.say`."""

MAX_WIDTH = 100
"""Columns. Longer lines are hard to read."""
_PRIVATE = "No account is needed, and nothing is sent before you choose. The chosen model is tested with one short question."


def render(found: Discovery, width: int) -> list[Line]:
    """Return the screen without the input line."""
    width = min(width - 1, MAX_WIDTH)
    lines: list[Line] = [*wrap("No model is configured yet. Available models:", width, "bold"), ("", "")]
    lines += _offers(found.offers, width)
    notes: list[Line] = []
    if found.missing:
        notes += wrap(found.missing, width, "dim")
    if found.agents:
        agents = ", ".join(found.agents)
        notes += wrap(f"Installed agents: {agents}. Run one with moot run -a NAME; it uses its own model and login.", width, "dim")
    if notes:
        lines += [("", ""), *notes]
    lines += [("", ""), *wrap(_question(found), width, ""), *wrap(_PRIVATE, width, "dim")]
    return lines


def number_names(names: Sequence[str], width: int) -> list[Line]:
    """Return the names with their numbers, as many on a line as fit."""
    numbered = [f"{number} {name}" for number, name in enumerate(names, 1)]
    column = max(map(width_of, numbered)) + 3
    each = max((min(width - 1, MAX_WIDTH) - 2) // column, 1)
    rows = [numbered[at : at + each] for at in range(0, len(numbered), each)]
    return [("  " + "".join(f"{name:<{column}}" for name in row).rstrip(), "") for row in rows]


def wrap(text: str, width: int, style: str, indent: int = 0) -> list[Line]:
    """Return the text in lines of at most `width` columns."""
    return [(" " * indent + line, style) for line in wrap_words(text, max(width, 20) - indent)]


def _question(found: Discovery) -> str:
    default = f" Press Enter for 1 ({found.offers[0].provider})." if found.offers else ""
    number = "Type a number or paste" if found.offers else "Paste"
    return f"{number} an API key, then press Enter.{default} Press Esc or type s to decide later."


def _offers(offers: Sequence[Offer], width: int) -> Iterator[Line]:
    names = [offer.provider for offer in offers]
    models = [offer.model or "(first model)" for offer in offers]
    name_width, model_width = max(map(width_of, names), default=0), max(map(width_of, models), default=0)
    details = max((width_of(offer.detail) for offer in offers), default=0)
    wide = 9 + name_width + model_width + details <= width
    for number, (offer, model) in enumerate(zip(offers, models, strict=True), 1):
        name = offer.provider + " " * (name_width - width_of(offer.provider))
        if wide:
            yield f"{number:>3}  {name}  {model}{' ' * (model_width - width_of(model))}  {offer.detail}", ""
        else:
            yield cut(f"{number:>3}  {offer.provider}  {model}", width, mark="…"), ""
            yield from wrap(offer.detail, width, "dim", indent=5)
