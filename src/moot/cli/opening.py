"""The engine for one command."""

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
    """The engine for as long as the block lasts. Raises ConfigError, StoreError."""
    async with open_engine(configured(output).settings) as engine:
        yield engine


@asynccontextmanager
async def opened_at(conversation: str, output: Output) -> AsyncGenerator[tuple[Engine, Conversation], None]:
    """The engine, and the conversation that is meant. Raises ConfigError, StoreError, NotFound."""
    async with opened(output) as engine:
        yield engine, await find_conversation(engine, conversation, str(here()))
