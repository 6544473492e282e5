"""The engine for one command."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from moot.cli.configured import configured
from moot.cli.output import Output
from moot.engine import Engine, open_engine


@asynccontextmanager
async def opened(output: Output) -> AsyncGenerator[Engine, None]:
    """The engine for as long as the block lasts. Raises ConfigError, StoreError."""
    async with open_engine(configured(output).settings) as engine:
        yield engine
