"""The tree of a conversation and its sub-agents."""

from __future__ import annotations

from moot.features.family import Relative
from moot.types.conversation import Conversation


def relative(cost: int | None, unpriced: int = 0, *children: Relative) -> Relative:
    return Relative(Conversation("c", message_count=2, cost=cost, unpriced_runs=unpriced), None, "finished", (), "", children)


def test_the_cost_of_a_tree_is_the_known_part_next_to_the_number_of_unpriced_runs() -> None:
    top = relative(5, 1, relative(None, 2), relative(7), relative(0))
    assert (top.cost, top.unpriced_runs) == (12, 3)
    assert (top.to_json()["cost"], top.to_json()["unpriced_runs"]) == (12, 3)
    unknown = relative(None, 1, relative(None))
    assert (unknown.cost, unknown.unpriced_runs) == (None, 1)
