"""Changes of a conversation's settings that allow more than before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moot.config.settings import Settings
from moot.features.settings import widened
from moot.types.conversation import Conversation


@pytest.mark.parametrize(
    ("before", "after", "is_wider"),
    [
        (("work",), ("work/sub",), False),
        (("work",), ("work", "other"), True),
        (("work",), ("work/link",), True),
        (("work",), ("work/../other",), True),
        (("work/link",), ("other",), False),
        ((), ("work/sub",), False),
        ((), ("other",), True),
        (("work/sub",), (), True),
    ],
)
def test_folders_allow_more_if_one_is_outside_of_the_previous_ones(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...], is_wider: bool
) -> None:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "other")
    old = Conversation("1", directory=f"{tmp_path}/work", allowed_uris=tuple(f"{tmp_path}/{name}" for name in before))
    new = replace(old, allowed_uris=tuple(f"{tmp_path}/{name}" for name in after))
    assert widened(Settings(tmp_path), old, new) == (("allowed_uris",) if is_wider else ())


def test_without_a_folder_every_folder_is_more(tmp_path: Path) -> None:
    old = Conversation("1")
    assert widened(Settings(tmp_path), old, replace(old, allowed_uris=(str(tmp_path),))) == ("allowed_uris",)
