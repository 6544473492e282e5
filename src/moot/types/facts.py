"""Facts about a provider's endpoint, used to select it, price its models and find its API key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moot.types.provider import Quirks


@dataclass(frozen=True, slots=True)
class Facts:
    """Static facts about one endpoint; a third-party provider may declare them as its class attribute `facts`."""

    name: str
    base_url: str = ""
    """The base URL that the vendor's own SDK uses; empty = the configuration must set it."""
    dialect: str = "openai-chat"
    needs_key: bool = True
    """The environment variable that holds the key is in `moot.config.home.KEY_VARIABLES`."""
    key_form: str = ""
    """A pattern that matches this vendor's keys and no others; empty = the keys have no distinctive form."""
    priority: int = 50
    """Lower values come first for a bare model name: vendors 10 to 39, custom 40, hosts 50, gateways 60, own machine 80,
    local 800, demo 990."""
    plans: Mapping[str, str] = field(default_factory=dict[str, str])
    """Base URL for each `plan` of the configuration."""
    plan_models: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Models available only with a plan, the suggested one first."""
    main: str = ""
    """The model suggested when none is configured; empty = the first one that the endpoint lists."""
    prices: str = ""
    """The vendor's name in the price snapshot, which also lists models; empty = not included."""
    sold: str = ""
    """A pattern for the models in the snapshot that this endpoint offers; empty = all."""
    vendors: Mapping[str, str] = field(default_factory=dict[str, str])
    """A gateway's vendor names that differ from the snapshot's: `x-ai/…` there, `xai/…` here."""
    lower_case: bool = False
    """True if the endpoint's model names are all lower case."""
    free: bool = False
    """True if answers cost nothing because they are computed on the user's own machine."""
    open_ended: bool = False
    """True if only the endpoint itself knows which models it has."""
    quirks: Quirks = field(default_factory=Quirks)
