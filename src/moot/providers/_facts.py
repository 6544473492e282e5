"""What a provider's file states about its endpoint."""

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
    keys: tuple[str, ...] = ()
    """Environment variables that hold a key, the first that is set wins. Used only for the vendor's own hosts."""
    needs_key: bool = True
    priority: int = 500
    """Smaller goes first for a bare model name."""
    plans: Mapping[str, str] = field(default_factory=dict[str, str])
    """`plan` of the configuration → the base URL that serves it."""
    main: str = ""
    """The model proposed when nothing is configured; empty = what the endpoint lists first."""
    prices: str = ""
    """The vendor's name in the price snapshot; empty = not in it."""
    free: bool = False
    """Whether its answers cost no money (they are computed on the person's own machine)."""
    open_ended: bool = False
    """Whether any model name may be right, because the person's own machine decides what there is."""
    quirks: Quirks = field(default_factory=Quirks)
