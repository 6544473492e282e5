"""OpenTelemetry: spans and metrics of runs, their parents, what they never contain, and what happens without a collector."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from e2e.cli_process import MootProcess
from moot.config.settings import Models
from moot.runtime.telemetry.content import Content
from moot.runtime.telemetry.spans import RunIds, Tracing, trace_id_of
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.telemetry import CURRENT
from otlp_collector import Collector

pytestmark = pytest.mark.anyio

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
READ = Reply(tool_calls=(ToolCall("read_file", {"path": "a.txt"}),))
SECRET = "sk-proj-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


class Observed:
    """The spans and metrics of an engine."""

    def __init__(self, engine: Any, **more: Any) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(id_generator=RunIds(), shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._meters = MeterProvider([self._reader], shutdown_on_exit=False)
        tracer, meter = tracers.get_tracer("moot"), self._meters.get_meter("moot")
        engine.runtime.observe(Tracing(tracer, meter, engine.store, engine.providers, **more))

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        data = self._reader.get_metrics_data()
        assert data is not None
        found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            found[metric.name] = [(dict(point.attributes or {}), point) for point in metric.data.data_points]
        return found


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


@pytest.fixture(autouse=True)
def trace() -> Iterator[None]:
    token = CURRENT.set("")
    yield
    CURRENT.reset(token)


async def test_a_run_its_model_calls_and_its_tools_are_spans(stage: Any, directory: Any) -> None:
    (directory / "a.txt").write_text("hello")
    async with stage([READ, Reply(text="Read.", usage={"input": 20, "output": 5})]) as on:
        seen = Observed(on.engine)
        run, _ = await on.ask("read a.txt")
    agent, tool, (first, second) = seen.one("invoke_agent default"), seen.one("execute_tool read_file"), seen.named("chat scripted")
    assert ids(agent)[0] == trace_id_of(run.id) and parent(agent) is None
    assert {parent(span) for span in (tool, first, second)} == {ids(agent)}
    assert first.start_time <= first.end_time <= tool.start_time <= tool.end_time <= second.start_time <= second.end_time
    facts = dict(agent.attributes or {})
    assert facts["gen_ai.operation.name"] == "invoke_agent" and facts["gen_ai.agent.name"] == "default"
    assert facts["gen_ai.conversation.id"] == run.conversation and facts["moot.run.id"] == run.id
    assert facts["moot.run.status"] == "finished" and agent.status.status_code is StatusCode.UNSET
    assert facts["gen_ai.usage.output_tokens"] == run.usage.output
    facts = dict(second.attributes or {})
    assert facts["gen_ai.operation.name"] == "chat" and facts["gen_ai.request.model"] == "scripted"
    assert facts["gen_ai.conversation.id"] == run.conversation and facts["gen_ai.response.finish_reasons"] == ("stop",)
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (20, 5)
    assert (facts["server.address"], facts["server.port"]) == ("127.0.0.1", int(on.server.url.rpartition(":")[2]))
    assert dict(first.attributes or {})["gen_ai.response.finish_reasons"] == ("tool-calls",)
    facts = dict(tool.attributes or {})
    assert facts["gen_ai.tool.name"] == "read_file" and facts["gen_ai.tool.call.id"]


async def test_metrics_have_durations_tokens_and_the_time_to_the_first_chunk(stage: Any) -> None:
    async with stage([Reply(text="Hello.", usage={"input": 7, "output": 3})]) as on:
        seen = Observed(on.engine)
        await on.ask("hi")
        found = seen.metrics()
    tokens = {facts["gen_ai.token.type"]: point.sum for facts, point in found["gen_ai.client.token.usage"]}
    assert tokens == {"input": 7, "output": 3}
    operations = {facts["gen_ai.operation.name"]: facts for facts, _ in found["gen_ai.client.operation.duration"]}
    assert set(operations) == {"chat", "invoke_agent"} and operations["chat"]["gen_ai.request.model"] == "scripted"
    assert all("gen_ai.conversation.id" not in facts and "moot.run.id" not in facts for facts in operations.values())
    ((_, first),) = found["gen_ai.client.operation.time_to_first_chunk"]
    assert first.count == 1 and 0 <= first.sum < 60


async def test_content_is_sent_only_if_turned_on(stage: Any, directory: Any) -> None:
    (directory / "a.txt").write_text("the file's text")
    for content in (None, Content([])):
        async with stage([READ, Reply(text=f"It says {SECRET}.")]) as on:
            seen = Observed(on.engine, content=content)
            await on.ask("read the secret word")
        whole = "".join(json.dumps(dict(span.attributes or {}), default=str) for span in seen.spans)
        shown = [text in whole for text in ("secret word", "It says", "the file's text", "a.txt")]
        assert shown == [content is not None] * 4, whole
        assert SECRET not in whole
    answer = json.loads(str((seen.named("chat scripted")[1].attributes or {})["gen_ai.output.messages"]))
    assert answer[0]["role"] == "assistant" and answer[0]["parts"][0]["content"].startswith("It says")
    call = json.loads(str((seen.named("chat scripted")[0].attributes or {})["gen_ai.output.messages"]))[0]["parts"][0]
    assert (call["type"], call["name"]) == ("tool_call", "read_file")
    agent = dict(seen.one("invoke_agent default").attributes or {})
    assert json.loads(str(agent["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": "read the secret word"}]}
    ]


async def test_a_failed_model_call_and_a_failed_tool_are_errors(stage: Any) -> None:
    async with stage([READ, Reply(status=400, error="no such thing")]) as on:
        seen = Observed(on.engine)
        run, _ = await on.ask("read a.txt")
    assert run.status == "failed"
    tool, agent, refused = seen.one("execute_tool read_file"), seen.one("invoke_agent default"), seen.named("chat scripted")[1]
    assert [span.status.status_code for span in (tool, agent, refused)] == [StatusCode.ERROR] * 3
    assert (tool.attributes or {})["error.type"] == "tool_error"
    assert (refused.attributes or {})["error.type"] == (agent.attributes or {})["error.type"] == "invalid_request"
    assert "no such thing" not in str([span.to_json() for span in seen.spans])


async def test_a_run_that_waits_for_a_person_continues_in_the_same_trace(stage: Any, directory: Any) -> None:
    call = Reply(tool_calls=(ToolCall("write_file", {"path": "b.txt", "content": "x"}),))
    async with stage([call, Reply(text="Written.")], mode="ask") as on:
        seen = Observed(on.engine)
        run, _ = await on.ask("write b.txt", lambda chunk: Answer(True))
    assert run.status == "finished" and (directory / "b.txt").read_text() == "x"
    before, after = seen.named("invoke_agent default")
    assert ids(before)[0] == ids(after)[0] == ids(seen.one("execute_tool write_file"))[0]
    assert [(span.attributes or {})["moot.run.status"] for span in (before, after)] == ["waiting", "finished"]


async def test_the_callers_span_is_the_parent_and_providers_get_a_header_only_if_set(stage: Any) -> None:
    for propagate in (False, True):
        async with stage([Reply(text="Hello.")]) as on:
            seen = Observed(on.engine, propagate=propagate)
            token = CURRENT.set(PARENT)
            await on.ask("hi")
            CURRENT.reset(token)
            headers = {name.lower(): value for name, value in on.server.requests[-1].headers.items()}
        agent, chat = seen.one("invoke_agent default"), seen.one("chat scripted")
        assert parent(agent) == (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)
        trace_id, span_id = ids(chat)
        assert headers.get("traceparent") == (f"00-{trace_id:032x}-{span_id:016x}-01" if propagate else None)


async def test_a_sub_agents_run_is_a_child_of_the_call_that_started_it(stage: Any) -> None:
    agents = {"default": Agent("default", agents=("helper",)), "helper": Agent("helper")}
    delegate = ToolCall("delegate", {"agent": "helper", "prompt": "help me"})
    script = [Reply(when="help me", text="Helped."), Reply(when="start", tool_calls=(delegate,)), Reply(when="start", text="Done.")]
    async with stage(script, agents=agents) as on:
        seen = Observed(on.engine)
        run, _ = await on.ask("start")
    assert run.status == "finished"
    child, calls = seen.one("invoke_agent helper"), seen.named("execute_tool delegate")
    assert parent(child) in [ids(call) for call in calls]
    assert {ids(span)[0] for span in seen.spans} == {trace_id_of(run.id)}


async def test_a_title_is_a_model_call_in_the_trace_of_its_run(stage: Any) -> None:
    naming = Reply(when="user:", text='"A greeting"', times=0)
    models = Models(main="scripted@mine", small="little@mine")
    async with stage([naming, Reply(when="", text="Hello.", times=0)], models=models) as on:
        seen = Observed(on.engine)
        run, _ = await on.ask("hi there")
        await on.engine.runs.settle(5)
    title = seen.one("chat little")
    assert (title.attributes or {})["gen_ai.conversation.id"] == run.conversation


async def test_without_telemetry_nothing_observes_events(stage: Any) -> None:
    async with stage([Reply(text="Hello.")]) as on:
        assert on.engine.runtime.telemetry is None and on.engine.runtime.hub.observer is None
        run, _ = await on.ask("hi")
    assert "traceparent" not in run.settings


# ── the real process ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with Collector() as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(text="hello", times=0)]) as server:
        yield server


def configure(moot: MootProcess, **settings: Any) -> None:
    file = moot.home / "config.yaml"
    file.write_text(f"{file.read_text()}\ntelemetry: {json.dumps({'enabled': True, **settings})}\n")


def said(moot: MootProcess) -> str:
    """Run a prompt that succeeds, and return what the command reports."""
    ended = moot.run("run", "hi")
    assert (ended.returncode, ended.stdout.strip()) == (0, b"hello"), ended.stderr
    return ended.stderr.decode()


def test_a_command_sends_its_spans_and_metrics_by_otlp_before_it_ends(moot: MootProcess, collector: Collector) -> None:
    configure(moot, endpoint=collector.url, headers={"x-api-key": "secret-of-the-collector"})
    assert "telemetry" not in said(moot)
    for _, headers, body in collector.received:
        assert headers["x-api-key"] == "secret-of-the-collector" and headers["content-type"] == "application/x-protobuf"
        assert b"secret-of-the-collector" not in body
    (resource,) = collector.resources()
    facts = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert facts["service.name"] == "moot" and facts["service.version"]
    chat, agent = sorted(collector.spans(), key=lambda span: span.name)
    assert (chat.name, agent.name) == ("chat scripted", "invoke_agent default")
    assert (chat.trace_id, chat.parent_span_id) == (agent.trace_id, agent.span_id)
    metrics = {"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "gen_ai.client.operation.time_to_first_chunk"}
    assert collector.metric_names() == metrics


def test_an_unreachable_collector_causes_one_warning_and_no_failure(moot: MootProcess, collector: Collector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        configure(moot, endpoint=f"http://127.0.0.1:{closed.getsockname()[1]}")
    reported = said(moot)
    assert reported.count("telemetry can't be sent") == 1 and "Traceback" not in reported and "127.0.0.1" not in reported


def test_a_silent_collector_does_not_keep_a_command_from_ending(moot: MootProcess, collector: Collector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts connections, and nothing answers
        configure(moot, endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert said(moot).count("telemetry can't be sent") == 1


def test_a_configuration_that_can_not_work_is_an_error(moot: MootProcess, collector: Collector) -> None:
    configure(moot, endpoint=collector.url)
    for variable, value in (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_TRACES_EXPORTER", "zipkin")):
        moot.more[variable] = value
        ended = moot.run("run", "hi")
        assert ended.returncode == 2 and f"{variable} is '{value}'".encode() in ended.stderr
        del moot.more[variable]
    moot.more["OTEL_SDK_DISABLED"] = "true"
    said(moot)
    assert collector.received == []


def test_environment_variables_alone_turn_nothing_on(moot: MootProcess, collector: Collector) -> None:
    moot.more["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
    said(moot)
    assert collector.received == []


def test_environment_variables_choose_collector_and_signals(moot: MootProcess, collector: Collector) -> None:
    configure(moot)
    moot.more |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_METRICS_EXPORTER": "none", "OTEL_SERVICE_NAME": "mine"}
    assert "telemetry" not in said(moot)
    assert {path for path, _, _ in collector.received} == {"/v1/traces"} and len(collector.spans()) == 2
    (resource,) = collector.resources()
    assert "mine" in [one.value.string_value for one in resource.resource.attributes if one.key == "service.name"]


def test_a_missing_package_is_an_error_that_names_the_extra(moot: MootProcess, tmp_path: Path) -> None:
    configure(moot)
    hidden = tmp_path / "hidden" / "sitecustomize.py"
    hidden.parent.mkdir()
    hidden.write_text("import sys\nsys.modules['opentelemetry.sdk'] = None\n")
    moot.more["PYTHONPATH"] = str(hidden.parent)
    ended = moot.run("run", "hi", executed=True)
    assert ended.returncode == 2 and b"pip install 'moot[otel]'" in ended.stderr
