"""The checks of `benchmarks/small_model.py` accept right answers and reject wrong ones."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.anyio

PATH = Path(__file__).parents[2] / "benchmarks" / "small_tasks.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("small_tasks", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["small_tasks"] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


tasks = _load()
REVERSE = "Here it is:\n\n```python\ndef reverse(s):\n    return s[::-1]\n\nprint(reverse('abc'))\n```\nIt uses a slice."
ANSWERS = (
    ("What is the capital of France?", "It's Paris.", "It's Lyon."),
    ("Hello!", "Hello! How can I help you?", '{"reply": "Hello"}'),
    ("What is 17 + 25?", "17 + 25 is 42.", "It is 32."),
    ("How many days does a leap year have?", "A leap year has 366 days.", "365 days."),
    ("Which planet is closest to the sun?", "Mercury is the closest planet.", "The closest planet is Mars."),
    ("what is in README.md?", "It describes Harbor, which waters a greenhouse.", "What does moot keep?"),
    ("Which port does config.ini set?", "It sets the port 8417.", "It sets port 8080."),
    ("Look at data/plants.csv: how much water does basil get?", "Basil gets 250 ml.", "Basil gets 250 to 400 ml."),
    ("Which files are in the folder docs?", "install.md, sensors.md and valves.md", "install.md and sensors.md"),
    ("List the files in data.", "`plants.csv`, `readings.csv`, `staff.json`", "plants.csv, readings.csv, staff.json, more.csv"),
    ("How many files are in the folder letters?", "There are three files.", "There are 13 files."),
    ("Is there a file plan.txt in the folder docs?", "No, there isn't.", "Yes, the folder docs has a file plan.txt."),
    ("Which file mentions Lisbon?", "letters/claire.txt mentions it.", "claire.txt and notes.txt mention it."),
    ("Find the file anna.txt.", "It is letters/anna.txt.", "I found anna.txt."),
    ("Which letter is about an umbrella?", "The one by Bruno.", "anna.txt and bruno.txt"),
    ("Which ports are set in config.ini and in test.ini?", "8417 and 9020", "8417 and 8417"),
    ("write a python function that reverses a string", REVERSE, REVERSE.replace("[::-1]", "[::1]")),
    ("write a python function that reverses a string", "def reverse(s): return ''.join(reversed(s))", "I searched the files."),
    (
        "Write a Python function that checks whether a number is prime.",
        "```\ndef prime(n):\n    return n > 1 and all(n % d for d in range(2, n))\n```",
        "```\ndef prime(n):\n    return all(n % d for d in range(2, n))\n```",
    ),
)


@pytest.mark.parametrize(("prompt", "right", "wrong"), ANSWERS)
async def test_a_check_accepts_a_right_answer_and_rejects_a_wrong_one(prompt: str, right: str, wrong: str) -> None:
    [task] = [task for task in tasks.TASKS if task.prompt == prompt]
    assert await task.passes(tasks.Outcome(right))
    assert not await task.passes(tasks.Outcome(wrong))
    assert not await task.passes(tasks.Outcome(""))


async def test_a_plain_question_must_be_answered_without_a_tool() -> None:
    [task] = [task for task in tasks.TASKS if task.prompt == "What is the capital of France?"]
    assert not await task.passes(tasks.Outcome("Paris.", ("search_files",)))


async def test_an_example_that_asks_for_input_does_not_make_a_function_wrong() -> None:
    assert await tasks.runs("```python\ndef double(x):\n    return 2 * x\n\nprint(double(int(input('number: '))))\n```", (((2,), 4),))


async def test_code_that_does_not_end_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "CODE_SECONDS", 0.5)
    assert not await tasks.runs("while True: pass", (((1,), 1),))


def test_there_are_ten_tasks_of_each_kind_and_half_are_held_out() -> None:
    for kind in tasks.KINDS:
        found = [task for task in tasks.TASKS if task.kind == kind]
        assert len({task.prompt for task in found}) == 10
        assert sum(task.held_out for task in found) == 5


async def test_every_fact_is_in_the_prepared_folder(tmp_path: Path) -> None:
    tasks.prepare(tmp_path)
    text = "\n".join(f"{path.relative_to(tmp_path)}\n{path.read_text()}" for path in sorted(tmp_path.rglob("*")) if path.is_file())
    text += "\nsrc docs data letters 3 March 18 9 June no"
    for task in tasks.TASKS:
        if task.kind in ("read", "list", "find", "two-step"):
            only_facts = tasks.Task(task.kind, task.prompt, task.needs)
            assert await only_facts.passes(tasks.Outcome(text)), task.prompt
