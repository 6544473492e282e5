"""A real process with a real run, which a test kills: it starts or resumes one run, answers its questions, and records what it received.

    python journey.py HOME URL DIRECTORY ACKS

Every event that the watcher receives is appended to ACKS (one line, O_APPEND) before the next one is read. Exit code 0 = the run ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from moot.config.settings import Models, Permissions, ProviderSettings, Settings
from moot.engine import Engine, open_engine
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.canonical import dumps
from moot.types.event import Event
from moot.types.message import Part, text_part
from moot.types.run import TERMINAL, Prompt, Run

PICTURE: Part = {"type": "file", "filename": "pie.png", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}
"""The model accepts none, so a note says that it was not sent."""


PROMPTS = (Prompt((text_part("Do the journey."), PICTURE)), Prompt((text_part("And be brief."),)))


def digest(event: Event) -> str:
    seen = [event.seq, event.kind, event.chunks, event.phase, event.key, event.body]
    return hashlib.blake2b(dumps(seen) + (event.raw or b""), digest_size=8).hexdigest()


def settings_for(home: Path, url: str) -> Settings:
    provider = ProviderSettings("mine", dialect="openai-chat", base_url=url, api_key="k", models={"scripted": {}})
    agent = Agent(tools=("read_file", "shell"))
    return Settings(
        home,
        models=Models(main="scripted@mine"),
        providers={"mine": provider},
        agents={"default": agent},
        permissions=Permissions(mode="ask", timeout=0),
    )


async def take_up(engine: Engine, directory: str, prompts: Sequence[Prompt]) -> Run:
    """Return the only run of this home: created if there is none, resumed if interrupted. The first prompt starts it, the others steer."""
    runs = await engine.store.records.runs()
    if not runs:
        first, *others = [replace(prompt, directory=directory) for prompt in prompts]
        submitted = await engine.runs.submit(first)
        for steer in others:
            await engine.runs.submit(replace(steer, conversation=submitted.conversation.id, on_busy="steer"))
        return submitted.run
    run = runs[-1]
    if run.status in TERMINAL:
        return run
    open_ones = await engine.store.records.approvals(run=run.id)
    if run.status == "waiting" and open_ones:
        for approval in open_ones:
            await engine.runs.answer(approval.id, Answer(True, reason="go on"))
        return run
    return await engine.runs.resume(run.id)


async def follow(engine: Engine, run: Run, acks: int) -> None:
    async with aclosing(engine.tail.watch(run.conversation)) as batches:
        async for events in batches:
            for event in events:
                os.write(acks, f"{event.seq} {digest(event)}\n".encode())
                for chunk in event.chunks:
                    if chunk["type"] == "tool-approval-request":
                        await answer(engine, str(chunk["approvalId"]))
                if event.run == run.id and event.key == "run" and event.phase == "end":
                    return


async def answer(engine: Engine, approval: str) -> None:
    stored = await engine.store.records.approval(approval)
    if stored is not None and stored.answer is None:
        await engine.runs.answer(approval, Answer(True, reason="go on"))


async def main(settings: Settings, directory: str, path: str, prompts: Sequence[Prompt]) -> None:
    acks = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    async with open_engine(settings, seed=1) as engine:
        run = await take_up(engine, directory, prompts)
        await follow(engine, run, acks)
        await engine.runs.wait(run.id)


if __name__ == "__main__":
    asyncio.run(main(settings_for(Path(sys.argv[1]), sys.argv[2]), sys.argv[3], sys.argv[4], PROMPTS))
