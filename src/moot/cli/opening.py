"""Opening the engine for one command."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from moot.cli.configured import configured, here
from moot.cli.output import Output
from moot.cli.references import find_conversation
from moot.engine import Engine, open_engine
from moot.types.conversation import Conversation


@asynccontextmanager
async def opened(output: Output) -> AsyncGenerator[Engine, None]:
    """Open the engine for the block. Raise ConfigError or StoreError on failure."""
    async with open_engine(configured(output).settings) as engine:
        yield engine


@asynccontextmanager
async def opened_at(conversation: str, output: Output) -> AsyncGenerator[tuple[Engine, Conversation], None]:
    """Open the engine and find a conversation. Raise ConfigError, StoreError or NotFound on failure."""
    async with opened(output) as engine:
        yield engine, await find_conversation(engine, conversation, str(here()))
