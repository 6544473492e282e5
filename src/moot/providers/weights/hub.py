"""Resumable download of a file from a model hub."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import BinaryIO
from urllib.parse import urlsplit

import aiohttp
from anyio import to_thread

from moot.errors import ProviderError
from moot.providers.weights.files import Progress, truncate
from moot.providers.weights.manifest import HubFile, Weights

REACH_SECONDS = 5.0
"""Time limit for name lookup, connection and first response. An unreachable hub must not delay the next source."""
_SILENCE_SECONDS = 60.0
_ERRORS = (aiohttp.ClientError, OSError, asyncio.TimeoutError)


async def reach(hub: HubFile, weights: Weights) -> None:
    """Check that the hub has the file with the expected size, without downloading it. Raise ProviderError if it does not."""
    try:
        async with asyncio.timeout(REACH_SECONDS), _session() as session, session.head(hub.url, allow_redirects=True) as response:
            if response.status != 200:
                raise ProviderError(f"{_host(hub)} answered with status {response.status}.", kind="failed")
            size = response.content_length
    except _ERRORS as error:
        raise ProviderError(f"{_host(hub)} can't be reached ({_reason(error)}).", kind="transport") from error
    if size is not None and size != weights.size:
        raise ProviderError(f"The file on {_host(hub)} has {size:,} bytes instead of the expected {weights.size:,}.", kind="protocol")


async def download(hub: HubFile, weights: Weights, file: BinaryIO, have: int, progress: Progress) -> None:
    """Append the data after the first `have` bytes to the file. Raise ProviderError on failure; data received before is kept."""
    try:
        async with _session() as session, session.get(hub.url, headers={"Range": f"bytes={have}-"} if have else {}) as response:
            start = have if response.status == 206 else 0
            if response.status not in (200, 206):
                raise ProviderError(f"{_host(hub)} answered with status {response.status}.", kind="failed")
            await to_thread.run_sync(truncate, file, start)
            await _append(response.content.iter_any(), file, start, weights.size, progress)
    except _ERRORS as error:
        raise ProviderError(
            f"The download from {_host(hub)} was interrupted ({_reason(error)}).", kind="transport", retryable=True
        ) from error


async def _append(data: AsyncIterator[bytes], file: BinaryIO, start: int, size: int, progress: Progress) -> None:
    done = start
    async for piece in data:
        done += len(piece)
        if done > size:
            raise ProviderError(f"The download is larger than the expected {size:,} bytes.", kind="protocol")
        await to_thread.run_sync(file.write, piece)
        progress(done, size)
    if done < size:
        raise ProviderError(f"The download ended after {done:,} of {size:,} bytes.", kind="transport", retryable=True)


def _session() -> aiohttp.ClientSession:
    # trust_env: downloads may use the machine's proxy, because they send no key
    timeout = aiohttp.ClientTimeout(total=None, connect=REACH_SECONDS, sock_read=_SILENCE_SECONDS)
    return aiohttp.ClientSession(timeout=timeout, trust_env=True)


def _host(hub: HubFile) -> str:
    return urlsplit(hub.url).netloc


def _reason(error: Exception) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return f"no answer within {REACH_SECONDS:g} s"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno) if error.errno > 0 else "its host name can't be resolved"
    return type(error).__name__
