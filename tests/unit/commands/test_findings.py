"""Reading the findings of a review from an answer."""

from __future__ import annotations

import pytest

from moot.types.findings import MAX_FINDINGS, Finding, findings_in


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("src/a.py:12 It fails.", [("src/a.py", 12, "It fails.")]),
        (
            "I found two.\n\n1. `a.py:1`: First\nline.\n2. **b/c.ts:20-30** – Second.",
            [("a.py", 1, "First line."), ("b/c.ts", 20, "Second.")],
        ),
        ("### src/a.py:3:14\n\nText.", [("src/a.py", 3, "")]),
        ("[Makefile.in:5] Odd.\n\nNo tests cover it.", [("Makefile.in", 5, "Odd.")]),
        ("- ./x y.py:4 is no path", []),
        ("See src/a.py:12 for this.", []),
        ("localhost:8080 is open. https://a.example:80/ too.", []),
        ("a.py:0 and a.py:x", []),
        ("```\nsrc/a.py:12 quoted\n```\nsrc/b.py:1 real", [("src/b.py", 1, "real")]),
        ("```\nsrc/a.py:12 never closed", []),
        ("No problems.", []),
    ],
)
def test_paragraphs_and_items_that_start_with_a_place_are_findings(answer: str, found: list[tuple[str, int, str]]) -> None:
    assert [*findings_in(answer)] == [Finding(*one) for one in found]


def test_long_answers_have_a_limit_and_are_read_in_linear_time() -> None:
    assert len([*findings_in("a.py:1 x\n" * 5_000)]) == MAX_FINDINGS
    for text in ("." * 200_000, "a" * 200_000, "- " * 100_000, "*" * 200_000, " " * 200_000, "```\n" * 50_000, "a.py:1" * 30_000):
        assert not [*findings_in(f"x {text}")]
