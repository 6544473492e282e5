"""Number of tasks in `small_tasks.py` that a model solves with the agent `local`, in a folder prepared for them.

    python benchmarks/small_model.py [--model NAME@PROVIDER] [--only KIND] [--half tuned|held-out] [--seed 1] [--json] [--show]

Weights of embedded models are taken from moot's home and must be installed. Each task is a conversation of its own, with the same seed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from small_tasks import KINDS, TASKS, Outcome, Task, prepare

from moot.config.home import home_of
from moot.config.loader import load
from moot.config.settings import Settings
from moot.engine import Engine, open_engine
from moot.providers.endpoints.local import Local
from moot.providers.weights import DEFAULT, models_folder
from moot.types.message import is_tool, text_of, text_part, tool_name
from moot.types.provider import Quirks
from moot.types.run import Prompt


@dataclass(frozen=True, slots=True)
class Result:
    """A task's outcome and whether it is right."""

    task: Task
    outcome: Outcome
    right: bool
    seconds: float


async def attempt(engine: Engine, task: Task, model: str, folder: Path) -> Result:
    """Run the task in a new conversation and check its answer."""
    started = time.monotonic()
    prompt = Prompt((text_part(task.prompt),), directory=str(folder), agent="local", model=model, settings={"unattended": "deny"})
    submitted = await engine.runs.submit(prompt)
    ended = await engine.runs.wait(submitted.run.id)
    message = await engine.store.conversations.message(ended.message)
    # only the text after the last tool call is the answer
    parts = list(message.parts)
    last = max((number for number, part in enumerate(parts) if is_tool(part)), default=-1)
    outcome = Outcome(text_of(parts[last + 1 :]), tuple(tool_name(part) for part in parts if is_tool(part)))
    right = ended.status == "finished" and await task.passes(outcome)
    return Result(task, outcome, right, time.monotonic() - started)


async def measure(settings: Settings, tasks: list[Task], model: str, *, show: bool) -> list[Result]:
    """Run the tasks one after the other."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="moot-work-") as name:
        prepare(Path(name))
        async with open_engine(settings) as engine:
            for task in tasks:
                results.append(result := await attempt(engine, task, model, Path(name)))
                mark = "right" if result.right else "wrong"
                print(f"{mark}  {result.seconds:5.1f} s  {task.kind:9} {task.prompt}", file=sys.stderr, flush=True)
                if show:
                    print(f"       {', '.join(result.outcome.tools) or 'no tool'}: {result.outcome.text!r}", file=sys.stderr, flush=True)
    return results


def rate(results: list[Result]) -> str:
    """Return the number of right answers and its share."""
    right = sum(result.right for result in results)
    return f"{right:3} of {len(results):2} {right / len(results):5.0%}" if results else "-"


def print_table(results: list[Result]) -> None:
    """Print the rates of each kind and half."""
    print(f"{'':10}{'tuned on':>16}{'held out':>16}{'all':>16}{'tools':>7}{'seconds':>9}")
    for kind in (*KINDS, "all"):
        found = [result for result in results if kind in (result.task.kind, "all")]
        if found:
            halves = [rate([result for result in found if result.task.held_out == held]) for held in (False, True)]
            tools, seconds = (sum(values) / len(found) for values in ([len(r.outcome.tools) for r in found], [r.seconds for r in found]))
            print(f"{kind:10}{halves[0]:>16}{halves[1]:>16}{rate(found):>16}{tools:7.1f}{seconds:9.1f}")


def to_json(results: list[Result], model: str, seed: int) -> str:
    """Return the results as a JSON document."""
    tasks = [
        {
            "kind": result.task.kind,
            "prompt": result.task.prompt,
            "held_out": result.task.held_out,
            "right": result.right,
            "answer": result.outcome.text,
            "tools": list(result.outcome.tools),
            "seconds": round(result.seconds, 1),
        }
        for result in results
    ]
    return json.dumps({"model": model, "seed": seed, "right": sum(r.right for r in results), "of": len(results), "tasks": tasks}, indent=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=f"{DEFAULT}@local")
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--half", choices=("tuned", "held-out"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", action="store_true", help="also print the answers to stderr")
    given = parser.parse_args()
    tasks = [task for task in TASKS if given.only in (None, task.kind) and given.half in (None, "held-out" if task.held_out else "tuned")]
    Local.facts = replace(Local.facts, quirks=Quirks(extra={"seed": given.seed}))
    weights = models_folder(home_of(os.environ))
    with tempfile.TemporaryDirectory(prefix="moot-home-") as name:
        home = Path(name)
        if weights.is_dir():
            models_folder(home).parent.mkdir(parents=True)
            models_folder(home).symlink_to(weights)
        settings = load(home=home, environ={}, directory=home).settings
        results = anyio.run(lambda: measure(settings, tasks, given.model, show=given.show), backend_options={"use_uvloop": True})
    if given.json:
        print(to_json(results, given.model, given.seed))
    else:
        print(f"{given.model}, seed {given.seed}")
        print_table(results)


if __name__ == "__main__":
    main()
