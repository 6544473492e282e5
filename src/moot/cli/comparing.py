"""The command `moot chat compare`."""

from __future__ import annotations

from typing import Any, cast

from moot.cli.configured import here
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out, Which
from moot.cli.output import Output
from moot.cli.references import find_conversation
from moot.convert.comparing import compared
from moot.runtime.sides import side_of
from moot.types.canonical import JsonObject

__all__ = ["compare", "print_comparison"]

_MARKS = {"-": ("[-", "-]", "red"), "+": ("{+", "+}", "green")}


async def compare(conversation: Which, other: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Compare two conversations: matching prompts, both answers, and their usage."""
    async with opened(output) as engine:
        one = await find_conversation(engine, conversation, str(here()))
        two = await find_conversation(engine, other, str(here()))
        comparison = compared(await side_of(engine.store, one), await side_of(engine.store, two))
    if json:
        output.json(comparison)
    else:
        print_comparison(comparison, output)


def print_comparison(comparison: JsonObject, output: Output) -> None:
    """Print a word-by-word comparison. Marks show the differences where there is no colour."""
    values = cast("dict[str, Any]", comparison)
    a, b = values["a"], values["b"]
    output.data(output.styled("A", "red") + f"  {output.fit(_title(a))}\n")
    output.data(output.styled("B", "green") + f"  {output.fit(_title(b))}\n")
    for pair in values["pairs"]:
        _pair(pair, output)
    output.data("\n")
    for name, unit in (("cost", _money), ("ms", _time), ("tools", str)):
        output.line(f"{_NAMES[name]:<12} A {unit(a[name]):>12}   B {unit(b[name]):>12}")
    for name in ("input", "output"):
        output.line(f"{name + ' tokens':<12} A {_count(a, name):>12}   B {_count(b, name):>12}")
    if values["same"]:
        output.say("moot: the answers are identical")


_NAMES = {"cost": "cost", "ms": "time", "tools": "tool calls"}


def _pair(pair: dict[str, Any], output: Output) -> None:
    prompt = pair["prompt"]["a"] if pair["prompt"]["a"] is not None else pair["prompt"]["b"]
    output.data("\n")
    output.data(output.styled(f"› {output.fit(_short(str(prompt or '(no prompt)')))}", "bold") + "\n")
    for name in ("a", "b"):
        answer = pair[name]
        output.line(f"{name.upper()}: {_facts(answer)}" if answer is not None else f"{name.upper()}: no answer")
    if pair["a"] is None or pair["b"] is None:
        return
    if pair["same"]:
        output.line("  identical")
        return
    output.data("".join(_piece(str(op), str(text), output) for op, text in pair["diff"]) + "\n")


def _piece(op: str, text: str, output: Output) -> str:
    text = output.fit(text)
    if op == " ":
        return text
    begin, end, style = _MARKS[op]
    return output.styled(f"{begin}{text}{end}", style)


def _facts(answer: dict[str, Any]) -> str:
    tools = ", ".join(call["name"] for call in answer["tools"])
    facts = [
        answer["agent"],
        answer["model"],
        answer["status"] if answer["status"] != "finished" else "",
        _money(answer["cost"]),
        _time(answer["ms"]),
    ]
    facts.append(f"{answer['usage'].get('input', 0):,} in, {answer['usage'].get('output', 0):,} out" if answer["usage"] else "")
    return " · ".join(fact for fact in [*facts, f"tools: {tools}" if tools else ""] if fact and fact != "unknown")


def _title(side: dict[str, Any]) -> str:
    return f"{side['id'][:13]} · {side['title'] or 'untitled'} · {side['model'] or side['agent']}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"


def _money(cost: int | None) -> str:
    return "unknown" if cost is None else f"${cost / 1e9:.4f}"


def _time(ms: int | None) -> str:
    return "unknown" if ms is None else f"{ms / 1000:.1f} s"


def _count(side: dict[str, Any], name: str) -> str:
    count = side["usage"].get(name)
    return "unknown" if count is None else f"{count:,}"
