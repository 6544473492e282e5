"""Models, their prices and limits, and the settings of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Effort: TypeAlias = Literal["none", "low", "medium", "high", "max"]
Detail: TypeAlias = Literal["auto", "low", "high"]
"""Detail in which a model sees an image. `auto` = the provider decides."""
ModelRole: TypeAlias = Literal["main", "small", "compaction", "image", "transcription"]
"""A model type, which is a key of `models` in the configuration: `models: {main: …, small: …}`."""


@dataclass(frozen=True, slots=True)
class ModelId:
    """`model@provider`, split at the last `@`; an empty provider means the first available one."""

    model: str
    provider: str = ""

    @staticmethod
    def parse(text: str) -> ModelId:
        model, at, provider = text.rpartition("@")
        return ModelId(model, provider) if at else ModelId(text)

    def __str__(self) -> str:
        return f"{self.model}@{self.provider}" if self.provider else self.model


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in nano-dollars per token or per web search. None = unknown; 0 = free."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    """Price of tokens that are cached for an hour. None = the same as `cache_write`."""
    web_search: float | None = None
    tiers: tuple[tuple[int, Price], ...] = ()
    """Prices for long inputs, in ascending order: pairs of a number of tokens and the price of a call with more input tokens. The last
    match applies."""
    variants: tuple[tuple[str, Price], ...] = ()
    """Prices for classes of service: pairs of a name, such as `batch` or `priority`, and the price of such a call."""


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """Image formats and sizes accepted by a model."""

    formats: tuple[str, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
    max_bytes: int = 5_000_000
    """Maximum size of the image in bytes, encoded as base64."""
    max_pixels: int = 8_000 * 8_000
    max_side: int = 8_000


@dataclass(frozen=True, slots=True)
class Model:
    """Everything known about one model of one provider."""

    id: ModelId
    wire_name: str
    """The provider's own name for the model."""
    context: int | None = None
    """Size of the context window in tokens; None = unknown."""
    max_output: int | None = None
    """Maximum number of output tokens; None = unknown."""
    modalities: tuple[str, ...] = ("text",)
    """Accepted inputs: text, image, pdf, audio, video."""
    tools: Literal["native", "schema", "none"] = "native"
    """Way of calling tools: `native` = by the API; `schema` = by structured output, for small local models; `none` = not at all."""
    reasoning: bool = False
    images: ImageLimits = field(default_factory=ImageLimits)
    price: Price | None = None
    """Price of its tokens; None = unknown."""
    small: bool = False
    """True if the rules for small models apply: a short prompt, few tools and little history."""
    max_steps: int | None = None
    """Maximum number of steps of a run with this model; None = the model sets no limit."""
    note: str = ""
    """Notice shown with every answer, for example that the model is very small; empty = none."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of a request to a model."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    effort: Effort | None = None
    """None = the model's default."""
    show_reasoning: bool = True
    schema: dict[str, object] | None = None
    """A JSON Schema that the answer must satisfy."""
    tool_choice: str = ""
    """Empty = the model decides; `none` = no tool; `required` = any tool; `=NAME` = the tool with that name."""
    parallel_calls: bool = True
    """True if one step may make several calls."""
