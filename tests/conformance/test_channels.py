"""Rules for every channel, built-in or from an installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import channels
from moot.errors import ConfigError
from moot.plugins import CHANNELS
from moot.testing.discord import DiscordOnTrial

pytestmark = pytest.mark.anyio

CHECKS = [
    channels.check_answers,
    channels.check_users_have_separate_conversations,
    channels.check_calls_run_only_after_approval,
    channels.check_approvals_of_sub_agents_are_shown,
    channels.check_a_disconnect_affects_no_one_else,
    channels.check_only_own_conversations_are_accessible,
]


@pytest.fixture(params=CHANNELS.names())
def channel(request: pytest.FixtureRequest) -> Any:
    return DiscordOnTrial() if request.param == "discord" else CHANNELS.make(request.param)


@pytest.mark.parametrize("check", CHECKS, ids=[check.__name__ for check in CHECKS])
async def test_a_channel_keeps_the_contract(channel: Any, tmp_path: Path, check: Any) -> None:
    async with channels.served(channel, tmp_path) as on:
        await check(on)


async def test_invalid_settings_are_rejected_with_a_message(channel: Any, tmp_path: Path) -> None:
    wrong = {name: 5 if isinstance(value, str) else [value] for name, value in channel.trial(tmp_path).items()}
    if wrong:
        with pytest.raises(ConfigError, match=channel.name):
            await channel.serve(None, wrong)
