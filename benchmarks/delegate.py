"""CPU of a tool call that starts a sub-agent, whose model answers at once, next to a call of the tool `todo`.

Each run has as many steps as calls. A run without calls is subtracted. Everything but the model's endpoint runs in this process.

    python benchmarks/delegate.py [--calls 8] [--rounds 7]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import anyio

from moot.config.loader import load
from moot.config.settings import Permissions
from moot.engine import Engine, open_engine
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.message import text_part
from moot.types.run import Prompt

KINDS = ("none", "todo", "delegate")


def script(calls: int, rounds: int) -> list[Reply]:
    """Return the answers of the model for all runs."""
    replies = [Reply(when="look around", text="Nothing found.", times=0)]
    for round_ in range(rounds + 1):
        for number in range(calls):
            todo = {"todos": [{"content": f"item {number}", "status": "pending"}]}
            replies += [Reply(when=f"todo {round_}.", tool_calls=[ToolCall("todo", todo)])]
            task = {"agent": "explorer", "prompt": f"look around {number}"}
            replies += [Reply(when=f"delegate {round_}.", tool_calls=[ToolCall("delegate", task)])]
    return [*replies, Reply(text="Done.", times=0)]


async def cpu(engine: Engine, text: str, directory: str) -> float:
    """Return the CPU milliseconds of a run, with those of its sub-agents."""
    started = time.process_time()
    submitted = await engine.runs.submit(Prompt((text_part(text),), directory=directory))
    ended = await engine.runs.wait(submitted.run.id)
    assert ended.status == "finished", ended
    return (time.process_time() - started) * 1000


async def measure(home: Path, calls: int, rounds: int) -> None:
    """Run each kind alternately and print the cost of a call."""
    settings = load(home=home, environ={}, directory=home).settings
    agents = {"default": Agent(agents=("explorer",)), "explorer": Agent("explorer")}
    settings = replace(settings, agents=agents, permissions=Permissions(mode="auto"))
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    async with open_engine(settings) as engine:
        for round_ in range(rounds + 1):  # the first one warms up
            for kind in KINDS:
                took = await cpu(engine, f"{kind} {round_}.", str(home))
                if round_:
                    spent[kind].append(took)
        runs = await engine.store.records.runs(limit=(rounds + 1) * (calls + len(KINDS)))
        children = sum(run.parent_run is not None for run in runs)
        assert children == (rounds + 1) * calls, f"{children} sub-agents ran"
    print(f"{'':10}{'ms of CPU per call':>20}")
    for kind in KINDS[1:]:
        costs = [(with_ - without) / calls for with_, without in zip(spent[kind], spent["none"], strict=True)]
        print(f"{kind:10}{statistics.median(costs):20.1f}   ({min(costs):.1f} to {max(costs):.1f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ScriptedProcess(script(given.calls, given.rounds)) as model:
        home = Path(folder)
        (home / "config.yaml").write_text(model.config())
        anyio.run(measure, home, given.calls, given.rounds, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
