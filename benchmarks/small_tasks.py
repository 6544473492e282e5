"""Sixty tasks for small models, a folder to work in, and the checks of their answers."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from moot.guard.processes import child_environment, output
from moot.guard.sandbox.mechanisms import problem_of
from moot.types.canonical import Json
from moot.types.sandbox import MECHANISMS, Confinement

Kind: TypeAlias = Literal["plain", "code", "read", "list", "find", "two-step"]
KINDS: tuple[Kind, ...] = ("plain", "code", "read", "list", "find", "two-step")
CODE_SECONDS = 10.0

FILES = {
    "README.md": "# Harbor\n\nHarbor plans the watering of a small greenhouse. It reads the sensors every 15 minutes and opens the "
    "valves.\n\n"
    "## Install\n\nRun `python -m harbor install`. You need Python 3.10 or newer.\n\nLicense: MIT. Maintainer: Ines Roth.\n",
    "notes.txt": "Meeting on 4 March\n\n- The pump arrives on Tuesday.\n- Karl orders 30 bags of soil.\n- "
    "Next meeting: 18 March in room B12.\n",
    "todo.txt": "1. Pay the gardener.\n2. Send the parcel. The delivery address is in letters/bruno.txt.\n",
    "config.ini": "[server]\nhost = 127.0.0.1\nport = 8417\n\n[log]\nlevel = warning\nfile = harbor.log\n",
    "test.ini": "[server]\nhost = 127.0.0.1\nport = 9020\n",
    "src/harbor.py": 'VERSION = "2.7.1"\n\n\ndef open_valve(number, seconds=45):\n    # TODO: check that the number is valid\n'
    '    print("open", number, seconds)\n\n\ndef read_sensor(name):\n    return {"name": name, "moisture": 0.4}\n',
    "src/schedule.py": "from datetime import timedelta\n\n\nclass Plan:\n    def __init__(self, times):\n        self.times = times\n\n\n"
    "def next_watering(last):\n    return last + timedelta(hours=6)\n",
    "src/alarm.py": 'import smtplib\n\nLIMIT_CELSIUS = 38\n\n\ndef send_alarm(text):\n    """Send the text by e-mail to the gardener."""\n'
    '    with smtplib.SMTP("localhost") as server:\n        server.sendmail("harbor@example.org", ["gardener@example.org"], text)\n',
    "docs/install.md": "# Install\n\nCopy the folder to the small computer and connect it to the power supply.\n",
    "docs/sensors.md": "# Sensors\n\nThere are two kinds of sensors: one measures the moisture of the soil, the "
    "other the temperature of the air.\n",
    "docs/valves.md": "# Valves\n\nThe valves need a pressure of 2.5 bar. Clean them once a month.\n",
    "data/plants.csv": "name,water_ml\nbasil,250\nmint,400\ntomato,900\n",
    "data/readings.csv": "time,moisture\n08:00,0.41\n08:15,0.39\n",
    "data/staff.json": '[{"name": "Ines Roth", "phone": "555-0142", "place": "greenhouse"},\n'
    ' {"name": "Omar Haddad", "phone": "555-0177", "place": "office"},\n {"name": "Karl Lind", "phone": "555-0119", "place": "garden"}]\n',
    "letters/anna.txt": "Dear all,\nplease bring the long ladder on Friday.\nAnna\n",
    "letters/bruno.txt": "Hello,\nI forgot my umbrella. Send it to 14 Mill Lane, Dover.\nBruno\n",
    "letters/claire.txt": "Hi,\nI am writing from Lisbon. I return on 9 June.\nClaire\n",
}
"""The files of the prepared folder, by path."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task: the text of the answer, and the names of the tools that were called."""

    text: str
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt and the conditions that its answer must meet. An answer to a plain question must also use no tool."""

    kind: Kind
    prompt: str
    needs: tuple[str, ...] = ()
    """Regular expressions that must all match, without regard to case."""
    forbids: tuple[str, ...] = ()
    """Regular expressions that must not match."""
    files: tuple[str, ...] | None = None
    """Names of all files that the answer must mention; it must mention no other file. None = any."""
    cases: tuple[tuple[tuple[Json, ...], Json], ...] = ()
    """Arguments and result of a function that the answer must define."""
    held_out: bool = False
    """True for the half of the tasks that no change was tuned on."""

    async def passes(self, outcome: Outcome) -> bool:
        """Return True if the answer is right."""
        text = outcome.text
        if not text.strip() or (self.kind == "plain" and outcome.tools):
            return False
        if not all(re.search(need, text, re.IGNORECASE) for need in self.needs):
            return False
        if any(re.search(bad, text, re.IGNORECASE) for bad in self.forbids):
            return False
        if self.files is not None and {Path(found).name for found in _FILE.findall(text)} != set(self.files):
            return False
        return not self.cases or await runs(text, self.cases)


_FILE = re.compile(r"[\w./-]*\w\.(?:md|txt|ini|py|csv|json|log|yaml|toml)\b")
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_TRIAL = """
import copy, json, sys, types
given = json.load(sys.stdin)
space = {"__name__": "answer"}
try:
    exec(given["code"], space)
except (Exception, SystemExit):  # an example call may fail, such as one of input(); functions defined before it count
    pass
def right(function):
    for arguments, wanted in given["cases"]:
        try:
            found = function(*copy.deepcopy(arguments))
        except Exception:
            return False
        found = list(found) if isinstance(wanted, list) and not isinstance(found, str) else found
        close = isinstance(wanted, float) and isinstance(found, (int, float)) and abs(found - wanted) < 1e-6
        if not close and (found != wanted or isinstance(found, bool) != isinstance(wanted, bool)):
            return False
    return True
functions = [each for each in space.values() if isinstance(each, types.FunctionType)]
sys.exit(0 if any(right(each) for each in functions) else 1)
"""


def code_of(text: str) -> list[str]:
    """Return the code in an answer: all fenced blocks together, then each one. Without fences, the whole answer."""
    blocks: list[str] = _FENCED.findall(text)
    return ["\n".join(blocks), *blocks] if blocks else [text]


async def runs(text: str, cases: Sequence[tuple[tuple[Json, ...], Json]]) -> bool:
    """Return True if the code in the answer defines a function that returns the expected results. It runs in a sandbox if there is one."""
    with tempfile.TemporaryDirectory(prefix="moot-code-") as name:
        folder = Path(name, "work")
        folder.mkdir()
        usable = [mechanism for mechanism in MECHANISMS if not await problem_of(mechanism)]
        sandbox = Confinement(usable[0], folder, (folder,), Path(name)) if usable else None
        for code in code_of(text):
            (folder / "trial.py").write_text(_TRIAL)
            (folder / "given.json").write_text(json.dumps({"code": code, "cases": cases}))
            command = f"exec {sys.executable} -I trial.py < given.json"
            done = await output(["/bin/sh", "-c", command], cwd=folder, env=child_environment(), timeout=CODE_SECONDS, sandbox=sandbox)
            if done.code == 0:
                return True
    return False


def _halves(kind: Kind, tasks: Sequence[Task]) -> list[Task]:
    return [Task(kind, t.prompt, t.needs, t.forbids, t.files, t.cases, held_out=number % 2 == 1) for number, t in enumerate(tasks)]


def _task(prompt: str, *needs: str, forbids: tuple[str, ...] = (), files: tuple[str, ...] | None = None) -> Task:
    return Task("plain", prompt, needs, forbids, files)


def _code(prompt: str, *cases: tuple[tuple[Json, ...], Json]) -> Task:
    return Task("code", prompt, cases=cases)


_PLAIN = (
    _task("What is the capital of France?", r"\bParis\b"),
    _task("Hello!", r"hello|\bhi\b|help|welcome", forbids=(r"[{}]",)),
    _task("What is 17 + 25?", r"\b42\b"),
    _task("How many days does a leap year have?", r"\b366\b"),
    _task("Translate 'good morning' into Spanish.", r"buen(os|as)? d[ií]as?"),
    _task("What does HTTP stand for?", r"hyper-?text transfer protocol"),
    _task("Who wrote Romeo and Juliet?", r"shakespeare"),
    _task("What is the opposite of hot?", r"\b(cold|cool)\b"),
    _task("Explain in two sentences what a list is in Python.", r"order|collect|sequence|items|elements", r"\blists?\b"),
    _task("Which planet is closest to the sun?", r"\bMercury\b"),
)
_CODE = (
    _code("write a python function that reverses a string", (("abc",), "cba"), (("",), "")),
    _code("Write a Python function that checks whether a number is prime.", ((7,), True), ((9,), False), ((1,), False), ((2,), True)),
    _code("I need a Python function for the factorial of n.", ((5,), 120), ((0,), 1)),
    _code("Give me a Python function that counts the vowels in a string.", (("hello",), 2), (("sky",), 0), (("Audio",), 4)),
    _code("Write a function in Python that removes duplicates from a list and keeps the order.", (([3, 1, 3, 2, 1],), [3, 1, 2])),
    _code("How do I convert Celsius to Fahrenheit in Python? Write a function.", ((100,), 212.0), ((-40,), -40.0)),
    _code("Python: function is_palindrome(word) that returns True or False", (("level",), True), (("house",), False)),
    _code("Write Python code for a function that returns how often each word occurs in a text.", (("a b a",), {"a": 2, "b": 1})),
    _code("Please write a Python function that returns the largest number in a list.", (([3, 9, 2],), 9), (([-5, -2],), -2)),
    _code("Show me a Python function that adds up the even numbers of a list.", (([1, 2, 3, 4],), 6), (([7],), 0)),
)
_READ = (
    _task("what is in README.md?", r"harbor|greenhouse", r"water|valve|sensor"),
    _task("Which port does config.ini set?", r"\b8417\b"),
    _task("Who is the maintainer according to README.md?", r"\bInes\b"),
    _task("When and where is the next meeting? See notes.txt.", r"18 March|March 18", r"\bB12\b"),
    _task("How many bags of soil does Karl order according to notes.txt?", r"\b(30|thirty)\b"),
    _task("Which version is set in src/harbor.py?", r"2\.7\.1"),
    _task("Summarize docs/sensors.md in one sentence.", r"moisture", r"temperature"),
    _task("Who works in the office? It is in data/staff.json.", r"\bOmar\b", forbids=(r"(Ines|Karl)\b.{0,30} works? in the office",)),
    _task("Look at data/plants.csv: how much water does basil get?", r"\b250\b", forbids=(r"\b(400|900)\b",)),
    _task("What does the function send_alarm in src/alarm.py do?", r"sends?\b", r"mail|smtp"),
)
_TOP = ("README.md", "notes.txt", "todo.txt", "config.ini", "test.ini")
_LETTERS = ("anna.txt", "bruno.txt", "claire.txt")
_SOURCES = ("harbor.py", "schedule.py", "alarm.py")
_LIST = (
    _task("Which files are in the folder docs?", files=("install.md", "sensors.md", "valves.md")),
    _task("List the files in data.", files=("plants.csv", "readings.csv", "staff.json")),
    _task("What is in this folder?", r"\bsrc\b", r"\bdocs\b", r"\bletters\b", files=_TOP),
    _task("How many files are in the folder letters?", r"\b(3|three)\b"),
    _task("Show me the names of the files in src.", files=_SOURCES),
    _task("Is there a file plan.txt in the folder docs?", r"\bno\b|\bnot\b|n't\b", forbids=(r"^yes",)),
    _task("Which folders are here?", r"\bsrc\b", r"\bdocs\b", r"\bdata\b", r"\bletters\b", forbids=(r"\.(md|txt|ini)\b",)),
    _task("Does the folder data contain a JSON file? Which one?", r"staff\.json"),
    _task("ls letters", files=_LETTERS),
    _task("What's inside the src directory?", files=_SOURCES),
)
_FIND = (
    _task("Which file mentions Lisbon?", files=("claire.txt",)),
    _task("Where is the function next_watering defined?", r"schedule\.py"),
    _task("Find all CSV files.", files=("plants.csv", "readings.csv")),
    _task("Which file contains the word TODO?", r"harbor\.py"),
    _task("In which file is LIMIT_CELSIUS set?", files=("alarm.py",)),
    _task("Find the file anna.txt.", r"letters/anna\.txt|folder (called |named )?[`'\"]?letters"),
    _task("Search the files for the word pump.", r"notes\.txt"),
    _task("Which letter is about an umbrella?", r"bruno", forbids=(r"anna|claire",)),
    _task("Where are the INI files?", files=("config.ini", "test.ini")),
    _task("Find the class Plan in the code.", r"schedule\.py"),
)
_TWO_STEP = (
    _task("Find the letter that mentions Lisbon and tell me when its writer returns.", r"9 June|June 9"),
    _task("Read todo.txt. Which delivery address does the letter named there give?", r"14 Mill Lane"),
    _task(
        "Which ports are set in config.ini and in test.ini?", r"\b8417\b", r"\b9020\b", forbids=(r"config\.ini((?!test\.ini).)*\b9020\b",)
    ),
    _task(
        "Find the CSV file about plants and tell me which plant needs the most water.", r"tomato", forbids=(r"(basil|mint) needs the most",)
    ),
    _task("Find the file that defines open_valve and tell me the default number of seconds.", r"\b45\b"),
    _task("List the folder letters, then tell me what the first letter asks for.", r"ladder"),
    _task("Look for the page about valves in docs. Which pressure do they need?", r"2\.5"),
    _task("Who is the maintainer in README.md, and what is their phone number in data/staff.json?", r"\bInes\b", r"555-0142"),
    _task("Find the JSON file and tell me how many people are listed in it.", r"\b(3|three)\b"),
    _task("Which file in src is about alarms, and what is the limit in it?", r"alarm\.py", r"\b38\b"),
)
_GROUPS = (_PLAIN, _CODE, _READ, _LIST, _FIND, _TWO_STEP)
TASKS: tuple[Task, ...] = tuple(task for kind, group in zip(KINDS, _GROUPS, strict=True) for task in _halves(kind, group))
"""All tasks, ten of each kind. The second, fourth, … of each kind are held out."""


def prepare(folder: Path) -> None:
    """Write the files that the tasks ask about."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
