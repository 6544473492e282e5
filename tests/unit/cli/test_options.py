from __future__ import annotations

from moot.runtime.approvals.typed_answers import label, options_by_key
from moot.types.approval import Option, OptionKind


def keys(*kinds: OptionKind) -> str:
    return " ".join(
        f"{key}={option.id}" for key, option in options_by_key([Option(str(n), "", kind) for n, kind in enumerate(kinds)]).items()
    )


def test_an_agents_options_get_the_keys_with_the_same_meaning() -> None:
    assert keys("allow_always", "allow_once", "reject_once") == "y=1 s=0 n=2"
    assert keys("allow_once", "allow_always", "allow_always", "reject_once", "reject_always") == "y=0 s=1 1=2 n=3 2=4"
    assert keys("reject_once", "reject_once", "allow_once") == "y=2 n=0 1=1"
    assert keys() == "" and len(keys(*["allow_once"] * 20).split()) == 10


def test_labels_hide_nothing() -> None:
    assert label(Option("a", "Yes\x1b[2J\nno", "allow_once")) == "Yes\\x1b[2J no"
    assert label(Option("a", "", "allow_once")) == "allow once"
