"""The tool of the benchmarks: it adds two numbers, so that a round costs only moot's own work."""

from __future__ import annotations

from pydantic import BaseModel

from moot.types.approval import Effect
from moot.types.canonical import JsonObject
from moot.types.tool import ToolContext, ToolOutput, View


class Arguments(BaseModel):
    a: int
    b: int


class BenchAdd:
    """The tool `bench_add`. A rule in the benchmark's configuration allows it, because its effects would need approval."""

    name = "bench_add"
    description = "Add two numbers."
    arguments: type[BaseModel] = Arguments
    concurrent = False
    idempotent = False
    effects: frozenset[Effect] = frozenset({"execute"})
    hidden = False
    beta = False
    badge = ""
    examples: tuple[JsonObject, ...] = ()

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        return ToolOutput(str(arguments.a + arguments.b))

    def doing(self, arguments: Arguments) -> View:
        return View("Add", f"{arguments.a} and {arguments.b}")

    def done(self, arguments: Arguments, output: ToolOutput) -> View:
        return View("Add", output.text)
