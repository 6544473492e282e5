"""The same journey with an outside agent, which has its own process: `python outside.py HOME - DIRECTORY ACKS`."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path

from journey import main

from moot.config.settings import Permissions, Settings
from moot.types.agent import Agent
from moot.types.message import text_part
from moot.types.run import Prompt

PROMPTS = (Prompt((text_part("Do the journey."),), agent="echo"),)


def settings_of(home: Path) -> Settings:
    found = find_spec("moot.testing.acp_agent")
    assert found is not None and found.origin is not None
    agent = Agent("echo", agent_type="acp:echo", options={"command": [sys.executable, "-S", "-E", found.origin, "echo"]})
    return Settings(home, agents={"default": Agent(), "echo": agent}, permissions=Permissions(mode="ask", timeout=0))


if __name__ == "__main__":
    asyncio.run(main(settings_of(Path(sys.argv[1])), sys.argv[3], sys.argv[4], PROMPTS))
