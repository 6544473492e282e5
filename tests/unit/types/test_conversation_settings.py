from __future__ import annotations

import pytest

from moot.errors import UsageError
from moot.types.conversation import SETTINGS, Conversation, check_settings


def test_settings_include_columns_and_leave_out_what_is_unknown_or_invalid() -> None:
    stored = {
        "mode": "edits",
        "model": "m@p",
        "effort": "extreme",
        "detail": "fine",
        "tools": [],
        "network": 1,
        "grants": [],
        "newer": True,
    }
    conversation = Conversation("c", agent="reviewer", model="last@p", allowed_uris=("/a",), settings=stored)  # type: ignore[arg-type]
    settings = conversation.own_settings
    assert settings.to_json() == {"mode": "edits", "model": "m@p", "agent": "reviewer", "tools": [], "allowed_uris": ["/a"]}
    assert settings.for_run() == {"tools": False}
    assert Conversation("c").own_settings.to_json() == {}


def test_null_is_valid_for_every_setting_and_errors_say_what_is_expected() -> None:
    check_settings(dict.fromkeys(SETTINGS))
    with pytest.raises(UsageError, match="Invalid value 'nonsense' for the setting 'mode': expected one of ask, edits, plan, auto"):
        check_settings({"mode": "nonsense"})
    with pytest.raises(UsageError, match="Unknown setting 'modes'"):
        check_settings({"modes": "ask"})
