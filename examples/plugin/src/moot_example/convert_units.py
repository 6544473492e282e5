"""The tool `convert_units`. `tools.convert_units: {digits: 6}` in the configuration sets its precision."""

from __future__ import annotations

from pydantic import BaseModel, Field, ValidationError

from moot.types.approval import Effect
from moot.types.canonical import JsonObject
from moot.types.tool import ToolContext, ToolOutput, View

UNITS: dict[str, tuple[str, float]] = {
    "mm": ("length", 0.001),
    "cm": ("length", 0.01),
    "m": ("length", 1.0),
    "km": ("length", 1000.0),
    "inch": ("length", 0.0254),
    "foot": ("length", 0.3048),
    "mile": ("length", 1609.344),
    "g": ("mass", 0.001),
    "kg": ("mass", 1.0),
    "pound": ("mass", 0.45359237),
    "second": ("time", 1.0),
    "minute": ("time", 60.0),
    "hour": ("time", 3600.0),
}
"""Unit → measured quantity, and its size in base units."""


class Arguments(BaseModel):
    value: float = Field(description="The number to convert", allow_inf_nan=False)
    unit: str = Field(description=f"One of: {', '.join(UNITS)}")
    into: str = Field(description="The unit to convert to")


class Settings(BaseModel):
    """Settings in `tools.convert_units`, validated by `moot config check`."""

    digits: int = Field(default=6, ge=1, le=16)


class ConvertUnits:
    """A complete tool: its declaration for models and policies, `run`, and two views for people."""

    name = "convert_units"
    description = "Convert a length, a mass or a time from one unit into another."
    arguments: type[BaseModel] = Arguments
    settings: type[BaseModel] = Settings
    concurrent = True
    idempotent = True
    effects: frozenset[Effect] = frozenset()
    hidden = False
    beta = False
    badge = ""
    examples: tuple[JsonObject, ...] = ({"user": "How far is 5 miles?", "arguments": {"value": 5, "unit": "mile", "into": "km"}},)

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Convert the value. Mistakes of the model result in an error output, never in an exception."""
        for unit in (arguments.unit, arguments.into):
            if unit not in UNITS:
                return ToolOutput(f"unknown unit {unit!r}; available: {', '.join(UNITS)}", error=True)
        (quantity, factor), (target, divisor) = UNITS[arguments.unit], UNITS[arguments.into]
        if quantity != target:
            return ToolOutput(
                f"{arguments.unit} measures {quantity} and {arguments.into} {target}; they can't be converted into each other", error=True
            )
        try:
            digits = Settings.model_validate(context.settings).digits
        except ValidationError as error:
            return ToolOutput(f"tools.convert_units: {error.errors()[0]['msg']}; run moot config check", error=True)
        value = float(f"{arguments.value * factor / divisor:.{digits}g}")
        return ToolOutput(f"{arguments.value:g} {arguments.unit} = {value:g} {arguments.into}", {"value": value, "unit": arguments.into})

    def doing(self, arguments: Arguments) -> View:
        return View("Convert", f"{arguments.value:g} {_line(arguments.unit)} into {_line(arguments.into)}")

    def done(self, arguments: Arguments, output: ToolOutput) -> View:
        return View("Convert", _line(output.text))


def _line(text: str) -> str:
    return " ".join(text.split())
