"""What a provider states about its endpoint: plain facts, by which it is found, priced and asked for its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moot.types.provider import Quirks


@dataclass(frozen=True, slots=True)
class Facts:
    """Plain facts of one endpoint; an outside provider may carry them too, as its class attribute `facts`."""

    name: str
    base_url: str = ""
    """What the vendor's own SDK takes; empty = the configuration must say."""
    dialect: str = "openai-chat"
    needs_key: bool = True
    """Which environment variable holds it: `moot.config.home.KEY_VARIABLES`."""
    key_form: str = ""
    """A pattern that the vendor's keys fit and no other's do; empty = they have no form of their own."""
    priority: int = 50
    """Smaller goes first for a bare model name: vendors 10 to 39, custom 40, hosts 50, gateways 60, own machine 80, local 800, demo 990."""
    plans: Mapping[str, str] = field(default_factory=dict[str, str])
    """`plan` of the configuration → the base URL that serves it."""
    plan_models: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names that only a plan has, the one to propose first."""
    main: str = ""
    """The model proposed when nothing is configured; empty = the first that the endpoint lists."""
    prices: str = ""
    """The vendor's name in the price snapshot, which also says what models there are; empty = not in it."""
    sold: str = ""
    """A pattern for the models of the snapshot that this endpoint itself offers; empty = all of them."""
    vendors: Mapping[str, str] = field(default_factory=dict[str, str])
    """A gateway's word for a vendor where the snapshot has another: `x-ai/…` there, `xai/…` here."""
    lower_case: bool = False
    """Whether the endpoint's model names are all lower case."""
    free: bool = False
    """Whether answers cost no money: they are computed on the person's own machine."""
    open_ended: bool = False
    """Whether only the endpoint itself knows what models it has."""
    quirks: Quirks = field(default_factory=Quirks)
