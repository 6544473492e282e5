"""Facts about models: context, modalities, prices, and each provider's name for a model.

There are three sources; later ones take precedence: families by name, the price snapshot (`prices.py`), and
`providers.<name>.models` in the configuration: `{context, max_output, modalities, tools, reasoning, small, wire_name, note,
price: {input, output, cache_read, cache_write}}`, with prices in dollars per million tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from moot.config.settings import ProviderSettings
from moot.convert.dialects.frames import KEPT
from moot.errors import ConfigError, ProviderError
from moot.plugins import Registry
from moot.types.canonical import Json, JsonObject, loads
from moot.types.model import Model, ModelId, Price
from moot.types.provider import Facts
from moot.types.usage import Usage


@dataclass(frozen=True, slots=True)
class Family:
    """Models with the same capabilities.

    The regular expression `pattern` is searched for in the lowercase model name without its vendor.
    """

    pattern: str
    modalities: str = "text"
    reasoning: bool = False
    max_output: int | None = None


_FAMILIES = (
    Family(r"^claude-(opus|sonnet|haiku|fable|mythos)-", "text image pdf", reasoning=True, max_output=64_000),
    Family(r"^claude-3[-.]7", "text image pdf", reasoning=True, max_output=64_000),
    Family(r"^claude-3", "text image pdf", max_output=8_192),
    Family(r"^gpt-oss", reasoning=True),
    Family(r"^gpt-([5-9]|\d\d)", "text image", reasoning=True, max_output=128_000),
    Family(r"^gpt-4(o|\.1|-turbo)", "text image", max_output=16_384),
    Family(r"^o[134](-|$)", "text image", reasoning=True, max_output=100_000),
    Family(r"^gemini-", "text image pdf audio video", reasoning=True, max_output=65_536),
    Family(r"^grok-([4-9]|build|code)", "text image", reasoning=True),
    Family(r"^grok-3-mini", reasoning=True),
    Family(r"^deepseek-(reasoner|r1|v3\.[1-9]|v[4-9]|flash)", reasoning=True),
    Family(r"^glm-\d(\.\d)?v", "text image", reasoning=True),
    Family(r"^glm-(4\.[5-9]|[5-9])", reasoning=True),
    Family(r"^kimi-(k2\.[5-9]|k[3-9]|for-coding)", "text image", reasoning=True),
    Family(r"^kimi-k2-thinking", reasoning=True),
    Family(r"^minimax-m\d", reasoning=True),
    Family(r"^(mistral-(small|medium|large)|pixtral|ministral)", "text image"),
    Family(r"^magistral", "text image", reasoning=True),
    Family(r"^(qwen[\d.]*-?vl|llava|gemma-?[3-9]|llama-?4|.*-vision)", "text image"),
    Family(r"^(qwen-?3|qwq)", reasoning=True),
)


@lru_cache(1024)
def family_of(name: str) -> Family:
    """Return the first family that matches the model's name, or one that accepts only text and has unknown limits."""
    bare = name.lower().rpartition("/")[2]
    return next((family for family in _FAMILIES if re.search(family.pattern, bare)), Family(""))


_SNAPSHOT = Registry("moot.prices", {"names": "moot.providers.prices:names", "priced": "moot.providers.prices:priced"})
"""Imported on first use, because the import takes half a second and most commands need no prices."""

SMALL_CONTEXT = 32_000
"""Context below which a model on the user's machine counts as small. An unknown context is small too, because local servers use about
4,000 tokens by default."""

_NANO_PER_TOKEN = 1000
_PRICES = {**dict.fromkeys(("input", "output", "cache_read", "cache_write", "cache_write_1h"), _NANO_PER_TOKEN), "web_search": 1_000_000}
"""Configurable price → factor from dollars per million tokens, or per 1,000 searches, to nano-dollars for one."""
_FREE = Price(0, 0, 0, 0)


def price(model: Model, usage: Usage, service_tier: str = "") -> int | None:
    """Return the cost of a call in nano-dollars, or None if a required price or count is unknown.

    Cached tokens are part of the input. If a vendor has no separate price for them, they cost as much as other input.
    """
    return None if model.price is None else cost_at(model.price, usage, service_tier)


def cost_at(table: Price, usage: Usage, service_tier: str = "") -> int | None:
    """Return the cost of a call at the given prices, in nano-dollars, or None.

    `service_tier` is a class of service, such as `batch`. If the table has no prices for it, the usual ones apply.
    """
    if service_tier:
        table = next((variant for name, variant in table.variants if name == service_tier), table)
    if table.input == 0 and table == _FREE:  # comparing a field first takes a tenth of the time
        return 0
    if usage.input is None or usage.output is None:
        return None
    searches = (usage.web_searches or 0) * (table.web_search or 0)
    for above, dearer in table.tiers:
        table = dearer if usage.input > above else table
    if table.input is None or table.output is None:
        return None
    read, write = usage.cache_read or 0, usage.cache_write or 0
    total = max(0, usage.input - read - write) * table.input + usage.output * table.output
    total += read * (table.input if table.cache_read is None else table.cache_read)
    written = table.input if table.cache_write is None else table.cache_write
    for_an_hour = min(usage.cache_write_1h or 0, write)
    total += (write - for_an_hour) * written + for_an_hour * (written if table.cache_write_1h is None else table.cache_write_1h)
    return round(total + searches)


def own_prices(settings: Mapping[str, ProviderSettings]) -> dict[str, Price]:
    """Return the prices in the configuration by `MODEL@PROVIDER`, and by model name. Raise ConfigError for invalid ones."""
    found: dict[str, Price] = {}
    for provider, entry in settings.items():
        for name, facts in entry.models.items():
            if (table := _Overlay(provider, name, facts).price()) is not None:
                found[f"{name}@{provider}"] = table
                found.setdefault(name, table)
    return found


def listed_price(vendor: str, name: str, at: int = 0, home: Path | None = None) -> Price | None:
    """Return the vendor's price for a model from the price list, or any other vendor's price for it; None if there is none.

    `at` is the time of the call in ms since the epoch; 0 = now. Names that other programs use, such as `copilot/claude-sonnet-4.5` and
    `us.anthropic.claude-sonnet-4-5-v1:0`, are looked up without the additions to the vendor's name.
    """
    found = _SNAPSHOT.load("priced")
    bare = _ADDED.sub("", name.rpartition("/")[2])
    lookups = dict.fromkeys(((vendor or None, name), (None, name), (vendor or None, bare), (None, bare)))
    return next((priced.price for provider, model in lookups if (priced := found(provider, model, at, home)) is not None), None)


_ADDED = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|meta|amazon|mistral|openai)\.|-v\d+(?::\d+)?$")
"""Region, vendor and version that Amazon Bedrock adds to a model's name."""


def load_snapshot() -> None:
    """Import the price snapshot. Safe to call in a worker thread."""
    _SNAPSHOT.load("names")("")


def describe(provider: str, facts: Facts, settings: ProviderSettings, name: str) -> Model:
    """Return the known facts about a provider's model, or only its name if it is unknown.

    Raise ConfigError for invalid configured facts.
    """
    overlay = _Overlay(provider, name, settings.models.get(name, {}))
    wire_name = overlay.text("wire_name") or wire_name_of(facts, name) or name
    priced = _SNAPSHOT.load("priced")(facts.prices, _in_snapshot(facts, wire_name), 0, settings.home) if facts.prices else None
    family = family_of(wire_name)
    context = overlay.count("context") or (priced.context if priced else None)
    known_price = _FREE if facts.free else None if settings.plan.endswith("coding") or priced is None else priced.price
    return Model(
        ModelId(name, provider),
        wire_name,
        context=context,
        max_output=overlay.count("max_output") or family.max_output,
        modalities=overlay.texts("modalities") or tuple(family.modalities.split()),
        tools=overlay.tools(),
        reasoning=overlay.flag("reasoning", family.reasoning),
        small=overlay.flag("small", facts.free and facts.open_ended and (context or 0) < SMALL_CONTEXT),
        price=overlay.price() or known_price,
        note=overlay.text("note"),
    )


def known_models(facts: Facts, settings: ProviderSettings) -> list[str]:
    """Return the provider's known model names from the configuration, its plan and the snapshot, without using the network."""
    return list(dict.fromkeys([*settings.models, *facts.plan_models.get(settings.plan, ()), *_offered(facts)]))


def default_model(facts: Facts, settings: ProviderSettings) -> str:
    """Return the name of the provider's default model; empty if only the endpoint knows its models."""
    return next(iter((*settings.models, *facts.plan_models.get(settings.plan, ()), facts.main)))


def wire_name_of(facts: Facts, name: str) -> str | None:
    """Return the provider's name for a model, or None if the snapshot does not contain the model.

    For example, a gateway's name for `claude-sonnet-4-5` is `anthropic/claude-sonnet-4.5`.
    """
    if not facts.prices:
        return None
    candidates = _offered(facts)
    same_case = {found.lower(): found for found in candidates}
    if name.lower() in same_case:
        return name.lower() if facts.lower_case else name
    alike = [found for found in candidates if normalized_name(found) == normalized_name(name)]
    if alike:
        return alike[0]
    known = re.match(facts.sold, name) and _SNAPSHOT.load("priced")(facts.prices, _in_snapshot(facts, name))
    return name if known else None


def normalized_name(name: str) -> str:
    """Return a model's name for comparisons: lowercase, without its vendor, and with dashes instead of dots and underscores."""
    return re.sub(r"[._]", "-", name.lower().rpartition("/")[2])


def parse_list(name: str, facts: Facts, settings: ProviderSettings, body: bytes) -> Sequence[Model]:
    """Return the models from an endpoint's list (`{"data": [{"id"}]}`). Raise ProviderError if the list has another format."""
    names = [wire for row in rows_of(name, body) if isinstance(wire := row.get("id", row.get("name")), str)]
    return [describe(name, facts, settings, wire) for wire in dict.fromkeys(names)]


def rows_of(name: str, body: bytes) -> list[JsonObject]:
    """Return the objects in an endpoint's list of models. Raise ProviderError if the body is not such a list."""
    try:
        value = loads(body)
    except ValueError:
        value = None
    rows = value.get("data", value.get("models")) if isinstance(value, dict) else value
    if not isinstance(rows, list):
        message, fix = f"{name} did not return a list of models.", f"Check providers.{name}.base_url."
        raise ProviderError(message, fix=fix, kind="protocol", raw=body[:KEPT])
    return [row for row in rows if isinstance(row, dict)]


class _Overlay:
    """The configured facts about one model, validated when read."""

    def __init__(self, provider: str, name: str, values: JsonObject) -> None:
        self._where = f"providers.{provider}.models.{name}"
        self._values = values

    def text(self, field: str) -> str:
        return cast("str", self._get(field, str, "text")) or ""

    def count(self, field: str) -> int | None:
        value = cast("int | None", self._get(field, int, "a whole number"))
        if value is not None and value <= 0:
            raise self._wrong(field, value, "a number above 0")
        return value

    def flag(self, field: str, default: bool) -> bool:
        value = self._get(field, bool, "true or false")
        return default if value is None else bool(value)

    def texts(self, field: str) -> tuple[str, ...]:
        values = cast("list[Json]", self._get(field, list, "a list of strings") or [])
        return tuple(str(value) for value in values)

    def tools(self) -> Literal["native", "schema", "none"]:
        value = self._values.get("tools")
        match value:
            case None | "native" | True:
                return "native"
            case "schema":
                return "schema"
            case "none" | False:
                return "none"
            case _:
                raise self._wrong("tools", value, "native, schema or none")

    def price(self) -> Price | None:
        values = cast("Mapping[str, Json] | None", self._get("price", dict, "a mapping"))
        if values is None:
            return None
        fields = tuple(_PRICES)
        for field, value in values.items():
            if field not in fields or isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise self._wrong(
                    f"price.{field}", value, f"dollars per million tokens, or per 1,000 web searches, for one of: {', '.join(fields)}"
                )
        nano = {field: float(value) * _PRICES[field] for field, value in values.items() if isinstance(value, int | float)}
        return Price(**cast("dict[str, Any]", nano))

    def _get(self, field: str, kind: type[Any], expected: str) -> object:
        value = self._values.get(field)
        if value is None or type(value) is kind:
            return value
        raise self._wrong(field, value, expected)

    def _wrong(self, field: str, value: object, expected: str) -> ConfigError:
        return ConfigError(f"The option {self._where}.{field} is {value!r}. Expected {expected}.")


def _offered(facts: Facts) -> list[str]:
    """Return the snapshot's models with the names that the provider uses."""
    offered: list[str] = []
    for name in _SNAPSHOT.load("names")(facts.prices) if facts.prices else ():
        if re.match(facts.sold, name):
            vendor, slash, rest = name.partition("/")
            spelled = f"{facts.vendors.get(vendor, vendor)}/{rest}" if slash else name
            offered.append(spelled.lower() if facts.lower_case else spelled)
    return offered


def _in_snapshot(facts: Facts, name: str) -> str:
    vendor, slash, rest = name.partition("/")
    there = {here: vendor for vendor, here in facts.vendors.items()}
    return f"{there.get(vendor, vendor)}/{rest}" if slash else name
