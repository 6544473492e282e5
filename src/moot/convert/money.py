"""Texts of costs, for every face."""

from __future__ import annotations


def describe_cost(cost: int | None, unpriced: int, *, digits: int = 4) -> str:
    """Return a cost in nano-dollars with the number of answers that it doesn't include, such as `$4.10 + 3 unpriced`; empty if unknown."""
    known = "" if cost is None or (not cost and unpriced) else f"${cost / 1e9:,.{digits}f}"
    return " + ".join(filter(None, (known, f"{unpriced:,} unpriced" if unpriced else "")))
