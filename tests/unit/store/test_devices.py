"""Devices that get push notifications."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot.config.settings import Settings
from moot.errors import NotFound, Refused
from moot.store import open_store
from moot.types.ids import new_id
from moot.types.push import MOST_DEVICES, Device

pytestmark = pytest.mark.anyio

PHONE = Device("", "ann", "phone", "https://push.example.com/a", b"key", b"auth", "t1")


def device(**changes: Any) -> Device:
    return replace(PHONE, id=new_id(), **changes)


async def test_the_same_subscription_is_one_device_with_the_latest_choices(tmp_path: Path) -> None:
    async with await open_store(Settings(home=tmp_path)) as store:
        devices = store.of("ann").devices
        first = await devices.add(device())
        await devices.record(first.id, "busy")
        again = await devices.add(device(name="my phone", events=("approval.asked",), details=True))
        assert (again.id, again.created_at) == (first.id, first.created_at)
        assert [one.id for one in await devices.list()] == [first.id]
        assert (again.name, again.events, again.details, again.failures, again.error) == ("my phone", ("approval.asked",), True, 1, "busy")


async def test_a_renewed_subscription_replaces_the_old_one(tmp_path: Path) -> None:
    async with await open_store(Settings(home=tmp_path)) as store:
        devices = store.of("ann").devices
        first = await devices.add(device())
        await devices.record(first.id, "busy")
        renewed = await devices.add(device(endpoint="https://push.example.com/b", p256dh=b"new"), replaces=PHONE.endpoint)
        assert [(one.id, one.endpoint) for one in await devices.list()] == [(first.id, renewed.endpoint)]
        assert (renewed.failures, renewed.error) == (0, "")
        unknown = await devices.add(device(endpoint="https://push.example.com/c"), replaces="https://push.example.com/never")
        assert unknown.id != first.id


async def test_another_owner_can_not_replace_a_device(tmp_path: Path) -> None:
    async with await open_store(Settings(home=tmp_path)) as store:
        first = await store.of("ann").devices.add(device())
        other = await store.of("bob").devices.add(device(endpoint="https://push.example.com/b"), replaces=PHONE.endpoint)
        assert (await store.of("ann").devices.list(), await store.of("bob").devices.list()) == ([first], [other])
        with pytest.raises(Refused, match="Another subscription"):
            await store.of("bob").devices.add(device(p256dh=b"other"))


async def test_a_browser_with_another_login_is_no_longer_the_first_users(tmp_path: Path) -> None:
    async with await open_store(Settings(home=tmp_path)) as store:
        first = await store.of("ann").devices.add(device())
        taken = await store.of("bob").devices.add(device(token="t2"))
        assert taken.id != first.id and taken.owner == "bob"
        assert await store.of("ann").devices.list() == []


async def test_results_are_counted_until_a_notification_is_accepted(tmp_path: Path) -> None:
    async with await open_store(Settings(home=tmp_path)) as store:
        devices = store.of("ann").devices
        first = await devices.add(device())
        for reason in ("first", "second"):
            await devices.record(first.id, reason)
        failed = await devices.get(first.id)
        assert (failed.failures, failed.error, failed.sent_at) == (2, "second", None)
        await devices.record(first.id, "")
        accepted = await devices.get(first.id)
        assert (accepted.failures, accepted.error, accepted.sent_at is None) == (0, "", False)
        await devices.record("missing", "ignored")


async def test_the_number_of_devices_is_limited_for_each_owner(tmp_path: Path) -> None:
    async with await open_store(Settings(home=tmp_path)) as store:
        devices = store.of("ann").devices
        for number in range(MOST_DEVICES):
            await devices.add(device(endpoint=f"https://push.example.com/{number}"))
        with pytest.raises(Refused, match="at most 20 devices"):
            await devices.add(device(endpoint="https://push.example.com/more"))
        assert (await devices.add(device(endpoint="https://push.example.com/0"))).name == "phone"
        await store.of("bob").devices.add(device(endpoint="https://push.example.com/more"))
        await devices.remove((await devices.list())[0].id)
        await devices.add(device(endpoint="https://push.example.com/next"))


async def test_a_removed_device_is_gone(tmp_path: Path) -> None:
    async with await open_store(Settings(home=tmp_path)) as store:
        first = await store.of("ann").devices.add(device())
        await store.of("ann").devices.remove(first.id)
        with pytest.raises(NotFound, match="No device has the id"):
            await store.of("ann").devices.remove(first.id)
