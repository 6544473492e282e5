"""A run's position, read from its journal."""

from __future__ import annotations

from moot.agents.journal import HANDED, Call, Position, locate, signature
from moot.agents.loop import over_limit
from moot.convert.exchanges import totals
from moot.types import chunk
from moot.types.canonical import JsonObject
from moot.types.event import Event
from moot.types.exchange import Ending, Failure
from moot.types.limits import Limits
from moot.types.usage import Usage


def started(step: int, attempt: int) -> Event:
    return Event("exchange", exchange=f"r:{step}.{attempt}", phase="start", key=f"llm:{step}.{attempt}", body={"model": "m@p"})


def ended(step: int, attempt: int, ending: Ending, how: str = "eof", charged: int | None = None) -> Event:
    body: JsonObject = {**ending.to_json(), "ended": how, "charged": charged}
    return Event("exchange", exchange=f"r:{step}.{attempt}", phase="end", key=f"llm:{step}.{attempt}", body=body)


def said(step: int, attempt: int, *chunks: chunk.Chunk) -> Event:
    return Event("raw", chunks, b"x", exchange=f"r:{step}.{attempt}")


def call(name: str, id: str = "c1") -> chunk.Chunk:
    return {"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": {"a": 1}}


STEP_END = Event("chunks", (chunk.FINISH_STEP,), phase="end", key="step:1")


def test_a_fresh_run_is_at_the_first_step() -> None:
    position = locate([Event("chunks", (chunk.start("m"),), phase="start", key="run")])
    assert position.step == 1 and position.attempts == [] and not position.finished


def test_an_attempt_without_an_end_is_not_an_answer() -> None:
    position = locate([started(1, 0), said(1, 0, {"type": "text-start", "id": "1.0.0"})])
    assert position.answered is None
    assert position.attempts[0].visible and position.attempts[0].ending is None


def test_an_answer_with_calls_waits_for_its_tools() -> None:
    position = locate([started(1, 0), said(1, 0, call("read_file")), ended(1, 0, Ending("tool-calls"))])
    assert position.answered is not None
    assert [found.tool for found in position.answered.calls] == ["read_file"]
    assert position.step == 1


def test_a_finished_step_with_calls_leads_to_the_next() -> None:
    position = locate([started(1, 0), said(1, 0, call("read_file")), ended(1, 0, Ending("tool-calls")), STEP_END])
    assert position.step == 2 and not position.finished and position.attempts == []
    assert position.tool_call_ids == ["c1"]


def test_a_finished_step_without_calls_finishes_the_run() -> None:
    position = locate([started(1, 0), said(1, 0, {"type": "text-start", "id": "1.0.0"}), ended(1, 0, Ending("stop")), STEP_END])
    assert position.finished


def test_a_step_whose_calls_are_handed_to_the_client_finishes_the_run() -> None:
    handed = STEP_END._replace(body=HANDED)
    position = locate([started(1, 0), said(1, 0, call("weather")), ended(1, 0, Ending("tool-calls")), handed])
    assert position.finished and position.step == 2


def test_a_paused_answer_continues() -> None:
    paused = Ending("stop", "pause_turn", metadata={"continue": True})
    assert not locate([started(1, 0), ended(1, 0, paused), STEP_END]).finished


def test_a_model_call_cut_off_by_a_shutdown_is_repeated_and_billed() -> None:
    position = locate([started(1, 0), ended(1, 0, Ending("other", usage=Usage(5, 1)), "cancelled", charged=7)])
    assert position.answered is None and position.attempts[0].ending is None
    assert position.usage == Usage(5, 1) and position.cost == 7


def test_a_sum_with_an_unknown_price_is_unknown() -> None:
    events = [started(1, 0), ended(1, 0, Ending("error", error=Failure("x")), charged=3), started(1, 1), ended(1, 1, Ending("stop"))]
    assert locate(events).cost is None


def test_calls_executed_by_the_vendor_are_not_run_again() -> None:
    position = locate([started(1, 0), said(1, 0, {**call("web"), "providerExecuted": True}), ended(1, 0, Ending("stop"))])
    assert position.answered is not None and position.answered.calls == []


def test_a_reached_limit_names_its_configuration_key() -> None:
    same = signature(Call("a", "t", {"x": 1}))
    other = signature(Call("b", "t", {"x": 2}))
    assert over_limit(Limits(), Position(step=51), 50) is not None
    assert over_limit(Limits(), Position(step=50), 50) is None
    assert over_limit(Limits(repeats=3), Position(signatures=[other, same, same]), 0) is None
    repeated = over_limit(Limits(repeats=3), Position(signatures=[same, same, same]), 0)
    assert repeated is not None and repeated.kind == "limit" and "limits.repeats" in repeated.fix
    assert over_limit(Limits(tokens=10), Position(endings=[Ending("stop", usage=Usage(8, 2))], costs=[None]), 0) is not None


def test_a_cost_limit_with_an_unknown_price_stops_instead_of_guessing() -> None:
    position = Position(endings=[Ending("stop")], costs=[None])
    stopped = over_limit(Limits(cost=5), position, 0)
    assert stopped is not None and "unknown" in stopped.message
    assert over_limit(Limits(cost=5), Position(endings=[Ending("stop")], costs=[4]), 0) is None
    assert over_limit(Limits(cost=5), Position(endings=[Ending("stop")], costs=[5]), 0) is not None


def test_an_incomplete_call_reserves_its_id() -> None:
    half: chunk.Chunk = {"type": "tool-input-start", "toolCallId": "c1", "toolName": "shell"}
    assert locate([started(1, 0), said(1, 0, half), started(1, 1), said(1, 1, half)]).tool_call_ids == ["c1"]


def test_an_interrupted_attempt_makes_the_cost_unknown_but_the_known_part_counts() -> None:
    events = [started(1, 0), started(1, 1), ended(1, 1, Ending("stop", usage=Usage(5, 1)), charged=3)]
    position = locate(events)
    assert position.cost is None and position.spent == 3 and position.usage == Usage(5, 1)
    assert over_limit(Limits(cost=4), position, 0) is None
    assert over_limit(Limits(cost=3), position, 0) is not None
    assert totals(events) == (Usage(5, 1), None, "m@p")
    assert totals(events[1:]) == (Usage(5, 1), 3, "m@p")
    assert totals(events[:1]) == (Usage(), None, "m@p")


def test_the_model_of_an_outside_agent_is_the_last_that_it_reported() -> None:
    start = Event("exchange", exchange="r:1.0", phase="start", key="llm:1.0", body={"model": ""})
    assert totals([start, ended(1, 0, Ending("stop", metadata={"model": "a"})), ended(2, 0, Ending("stop"))])[2] == "a"
    assert totals([started(1, 0), ended(1, 0, Ending("stop", metadata={"model": "other"}))])[2] == "m@p"
