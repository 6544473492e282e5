"""Workflows: commands whose steps run in order as sub-agents of one run, with checks and retries, and continue after a crash."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import anyio
import pytest

from e2e.cli_process import MootProcess
from e2e.test_subagents import children, until
from moot.agents import workflow as agents_workflow
from moot.agents.calls import UNKNOWN_REPEATED
from moot.commands import CommandContext, Send, catalogue_of
from moot.commands.submission import expanded, submit
from moot.config.settings import Permissions, Rule
from moot.engine import open_engine
from moot.engine.undo import Undo
from moot.errors import UsageError
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.limits import Limits
from moot.types.message import note_of, text_of, text_part
from moot.types.run import Prompt, Run, Submitted
from moot.types.workflow import WORKFLOW

pytestmark = pytest.mark.anyio

AGENTS = {"default": Agent(), "coder": Agent("coder", tools=("write_file",))}

TWO = """\
type: workflow
description: Write and review
parameters: [{name: topic, required: true}]
steps:
  - name: draft
    agent: coder
    prompt: Draft a text about $topic.
    check: {contains: heron}
    retries: 1
  - name: review
    prompt: "Review {{topic}}: {{steps.draft.output}}"
"""


def define(on: Any, text: str, name: str = "write") -> None:
    path = on.engine.settings.home / f"commands/{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def start(on: Any, argument: str = "", engine: Any = None, **more: Any) -> Submitted:
    """Run the command `/write` as a client of the server does."""
    context = CommandContext(engine or on.engine, str(on.directory), **more)
    (send,) = await (await catalogue_of(context)).find("write").run(context, argument)
    assert isinstance(send, Send)
    return await submit(context, send)


async def ended(on: Any, argument: str = "") -> tuple[Run, Any]:
    run = await on.engine.runs.wait((await start(on, argument)).run.id)
    return run, await on.engine.store.conversations.message(run.message)


def notes(message: Any) -> list[str]:
    return [note_of(part) for part in message.parts if part["type"] == "data-note"]


def sent(on: Any) -> list[str]:
    """Return the last user message of each request."""
    return [str(request.json["messages"][-1]["content"]) for request in on.server.requests]


async def test_steps_run_in_order_and_get_the_output_of_earlier_ones(stage: Any) -> None:
    script = [Reply(when="Draft", text="A grey heron."), Reply(when="Review", text="Good: $topic {{topic}}.")]
    async with stage(script, agents=AGENTS, limits=Limits(subagents_per_run=1)) as on:
        define(on, TWO)
        run, message = await ended(on, "birds of {{topic}}")
        assert (run.status, run.agent, text_of(message.parts)) == ("finished", "default", "Good: $topic {{topic}}.")
        assert sent(on) == ["Draft a text about birds of {{topic}}.", "Review birds of {{topic}}: A grey heron."]
        assert [(child.agent, child.trigger, child.status) for child in await children(on, run)] == [
            ("coder", "delegate", "finished"),
            ("default", "delegate", "finished"),
        ]
        assert notes(message) == ["Step 1 of 2: draft", "Step 2 of 2: review"]
        conversation = await on.engine.store.conversations.get(run.conversation)
        assert (conversation.agent, conversation.title) == ("default", "/write birds of {{topic}}")
        keys = [(await on.engine.store.conversations.get(child.conversation)).key for child in await children(on, run)]
        assert keys == [f"delegate:{run.id}:workflow:draft:0.0", f"delegate:{run.id}:workflow:review:0.0"]


async def test_a_failed_check_is_retried_with_its_reason_and_then_fails_the_run(stage: Any) -> None:
    script = [Reply(text="A gull."), Reply(text="A crow.")]
    async with stage(script, agents=AGENTS) as on:
        define(on, TWO)
        run, message = await ended(on, "birds")
        assert run.status == "failed" and run.error is not None
        assert run.error.message == "Step 1 of 2, 'draft', failed: The output does not contain 'heron'."
        assert notes(message)[1] == "Step 1 of 2: draft, attempt 2 of 2. The output does not contain 'heron'."
        first, second = sent(on)
        assert first == "Draft a text about birds." and "A gull." in second and "does not contain 'heron'" in second


async def test_an_expression_that_takes_too_long_fails_the_step_and_stops_nothing_else(stage: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(agents_workflow, "_SECONDS", 1.0)
    text = "type: workflow\nsteps:\n- {prompt: Write., retries: 2, check: {matches: '(a+)+$'}}\n"
    async with stage([Reply(text="a" * 60 + "!")], agents=AGENTS) as on:
        define(on, text)
        run, _ = await ended(on)
        assert run.status == "failed" and "took more than 1 s" in str(run.error)
        assert len(sent(on)) == 1


@pytest.mark.parametrize(("answer", "status"), [("one\ntwo", "finished"), ("two one", "failed")])
async def test_an_expression_is_searched_in_the_whole_output(stage: Any, answer: str, status: str) -> None:
    async with stage([Reply(text=answer)], agents=AGENTS) as on:
        define(on, "type: workflow\nsteps:\n- {prompt: Write., check: {matches: 'one\\stwo'}}\n")
        assert (await ended(on))[0].status == status


@pytest.mark.parametrize(
    ("check", "answer", "status"),
    [
        ("contains: 'Topic: {{topic}}'", "Topic: a.b $topic", "finished"),
        ("contains: 'Topic: {{topic}}'", "Topic: axb $topic", "failed"),
        ("contains: 'costs $1'", "It costs $1.", "finished"),  # only {{NAME}} is a variable here
        ("matches: '^Topic: {{topic}}$'", "Topic: a.b $topic", "finished"),
        ("matches: '^Topic: {{topic}}$'", "Topic: axb $topic", "failed"),
        ("matches: '^{{steps.1.output}}$'", "(a [b", "finished"),
    ],
)
async def test_a_check_of_the_output_can_contain_values(stage: Any, check: str, answer: str, status: str) -> None:
    text = f"type: workflow\nparameters: [{{name: topic}}]\nsteps:\n- prompt: Write.\n  check:\n    {check}\n"
    async with stage([Reply(text=answer)], agents=AGENTS) as on:
        define(on, text)
        run, _ = await ended(on, "a.b $topic")
        assert run.status == status, run.error


async def test_an_expression_that_its_values_break_fails_the_step(stage: Any) -> None:
    async with stage([Reply(text="x")], agents=AGENTS) as on:
        define(on, "type: workflow\nsteps:\n- {prompt: 'Write {{1}}', retries: 2, check: {matches: '({{1}}*)'}}\n")
        run, _ = await ended(on)
        assert run.status == "failed" and "can't be used: nothing to repeat" in str(run.error) and len(sent(on)) == 1


async def test_a_step_attaches_what_its_prompt_refers_to_when_it_starts(stage: Any) -> None:
    text = (
        "type: workflow\nsteps:\n- prompt: 'Write in @{style} with @$1 and @missing.md'\n  agent: coder\n"
        "- prompt: 'See @b.md and @{style}: {{steps.1.output}}'\n- prompt: '@[list_files{}] {{steps.2.output}}'\n"
    )
    script = [
        Reply(when="Write in", tool_calls=[ToolCall("write_file", {"path": "b.md", "content": "The bees."})]),
        Reply(when="Write in", text="Use @a.md and @{style}."),
        Reply(when="See", text="Seen."),
        Reply(when="Seen", text="Done."),
    ]
    agents = {"default": Agent(tools=("list_files",)), "coder": AGENTS["coder"]}
    async with stage(script, agents=agents, macros={"style": "short words of @{who}", "who": "$1"}) as on:
        define(on, text)
        (on.directory / "a.md").write_text("The ants.")
        run, message = await ended(on, "a.md")
        assert (run.status, text_of(message.parts)) == ("finished", "Done."), run.error
        first, second, third = [
            (await on.engine.store.conversations.branch(child.conversation))[0].parts for child in await children(on, run)
        ]
        assert [text_of([part]) for part in first if part["type"] == "text"] == ["Write in short words of $1 with @a.md and @missing.md"]
        assert [part["filename"] for part in first if part["type"] == "file"] == ["a.md"]
        assert text_of(second) == "See @b.md and short words of $1: Use @a.md and @{style}."  # an output is not searched
        assert [part["filename"] for part in second if part["type"] == "file"] == ["b.md"]
        assert "The bees." in str(on.server.requests[2].json) and "The ants." not in str(on.server.requests[2].json)
        assert text_of(third) == "@[list_files{}] Seen." and "a.md" in str(on.server.requests[-1].json)
        assert "File 'missing.md' not found; sent as text." in notes(message)


async def test_a_reference_that_is_not_allowed_fails_the_step_before_it_starts(stage: Any) -> None:
    text = "type: workflow\nsteps:\n- prompt: Read @secret.md.\n  retries: 2\n"
    denying = Permissions(mode="auto", rules=(Rule("read_file", "deny", "secret.md"),))
    async with stage([], agents=AGENTS, permissions=denying) as on:
        define(on, text)
        (on.directory / "secret.md").write_text("heron")
        run, _ = await ended(on)
        assert run.error is not None and run.error.message.startswith("Step 1 of 1, '1', failed: secret.md can't be attached")
        assert await children(on, run) == [] and on.server.requests == []


async def test_an_imported_workflow_is_not_run_again(stage: Any) -> None:
    async with stage([Reply(text="Done.", times=0)], agents=AGENTS) as on:
        define(on, "type: workflow\nsteps: [{prompt: Write.}]\n")
        run, message = await ended(on)
        with closing(sqlite3.connect(on.engine.settings.database)) as database, database:
            database.execute("UPDATE run SET trigger = 'import'")
        again = await on.engine.runs.submit(Prompt((), conversation=run.conversation, answers=message.id, directory=str(on.directory)))
        assert WORKFLOW not in again.run.settings
        assert (await on.engine.runs.wait(again.run.id)).status == "finished"


async def test_a_check_is_a_shell_command_whose_values_stay_one_word(stage: Any) -> None:
    check = "{command: 'test -f $1 && printf %s {{steps.1.output}} > seen'}"
    text = f"type: workflow\nsteps:\n- prompt: Write $1.\n  retries: 1\n  check: {check}\n"
    script = [
        Reply(when="Write", text="Nothing written."),
        Reply(when="Write", tool_calls=[ToolCall("write_file", {"path": "a b", "content": "x"})]),
        Reply(when="Write", text="'; touch bad $(touch bad)"),
    ]
    async with stage(script, agents=AGENTS) as on:
        define(on, text)
        run, message = await ended(on, "'a b'")
        assert run.status == "finished", run.error
        assert (on.directory / "seen").read_text() == "'; touch bad $(touch bad)" and not (on.directory / "bad").exists()
        outputs = [str(part.get("errorText")) for part in message.parts if part["type"] == "tool-shell"]
        assert "(exit code 1)" in outputs[0] and "exit code 1" in sent(on)[1]


async def test_the_mode_asks_for_checks_but_not_for_the_agents_that_the_workflow_names(stage: Any) -> None:
    text = "type: workflow\nsteps:\n- prompt: Go.\n  retries: 3\n  check: {command: 'touch checked'}\n"
    async with stage([Reply(text="Done.", times=0)], agents=AGENTS, mode="ask") as on:
        define(on, text)
        prompt = await expanded(on.engine.runtime, Prompt((text_part("/write"),), settings={"unattended": "deny"}))
        submitted = await on.engine.runs.submit(replace(prompt, directory=str(on.directory)))
        run = await on.engine.runs.wait(submitted.run.id)
        assert run.error is not None and run.error.kind == "needs_approval" and "no one is available" in run.error.message
        assert len(on.server.requests) == 1 and not (on.directory / "checked").exists()
    asking = Permissions(mode="ask", rules=(Rule("delegate", "ask", "default"),))
    async with stage([], agents=AGENTS, permissions=asking) as on:
        await until(on, (await start(on)).run, "person")
    denying = Permissions(mode="auto", rules=(Rule("delegate", "deny", "default"),))
    async with stage([], agents=AGENTS, permissions=denying) as on:
        run, _ = await ended(on)
        assert run.status == "failed" and run.error is not None and "Not allowed" in run.error.message


async def test_a_check_needs_permission_and_a_refusal_ends_the_workflow(stage: Any) -> None:
    text = "type: workflow\nsteps:\n- prompt: Go.\n  retries: 3\n  check: {command: 'touch checked'}\n"
    asking = Permissions(mode="auto", rules=(Rule("shell", "ask", "*"),))
    for allowed in (False, True):
        async with stage([Reply(text="Done.", times=0)], agents=AGENTS, permissions=asking) as on:
            define(on, text)
            submitted = await start(on)
            await until(on, submitted.run, "person")
            assert not (on.directory / "checked").exists()
            (asked,) = await on.engine.store.records.approvals(run=submitted.run.id)
            await on.engine.runs.answer(asked.id, Answer(allowed))
            run = await on.engine.runs.wait(submitted.run.id)
            assert run.status == ("finished" if allowed else "failed") and len(on.server.requests) == 1
            assert (on.directory / "checked").exists() is allowed


async def test_a_retry_starts_all_steps_again(stage: Any) -> None:
    script = [Reply(text="A gull."), Reply(text="A crow."), Reply(when="Draft", text="A heron."), Reply(when="Review", text="Good.")]
    async with stage(script, agents=AGENTS) as on:
        define(on, TWO)
        run, message = await ended(on, "birds")
        for answers in (None, message.id, message.parent):
            again = await on.engine.runs.submit(Prompt((), conversation=run.conversation, answers=answers))
            last = await on.engine.runs.wait(again.run.id)
            if answers is None:
                assert last.status == "finished" and sent(on)[2:] == ["Draft a text about birds.", "Review birds: A heron."]
            assert again.run.id != run.id and WORKFLOW in again.run.settings


async def test_undo_takes_back_the_files_of_all_steps(stage: Any) -> None:
    steps = "steps: [{prompt: First, check: {command: 'echo y > checked'}}, {prompt: Second}]"
    writes = [ToolCall("write_file", {"path": "made", "content": "x"})]
    script = [Reply(when="First", tool_calls=writes), Reply(when="First", text="Done."), Reply(when="Second", text="Done.")]
    async with stage(script, agents={"default": Agent(tools=("write_file",))}) as on:
        define(on, f"type: workflow\n{steps}\n")
        run, _ = await ended(on)
        made = [on.directory / name for name in ("made", "checked")]
        assert run.status == "finished" and all(path.exists() for path in made)
        await Undo(on.engine.runtime, await on.engine.store.conversations.get(run.conversation)).undo("both")
        assert not any(path.exists() for path in made)


async def test_a_job_and_a_channel_can_start_a_workflow(stage: Any) -> None:
    script = [Reply(when="Draft", text="A heron."), Reply(when="Review", text="Good.")]
    async with stage(script, agents=AGENTS) as on:
        define(on, TWO)
        prompt = Prompt((text_part("/write birds"),), directory=str(on.directory), settings={"unattended": "deny"})
        submitted = await on.engine.runs.submit(await expanded(on.engine.runtime, prompt))
        run = await on.engine.runs.wait(submitted.run.id)
        assert (run.status, run.settings["unattended"]) == ("finished", "deny")
        assert [child.settings["unattended"] for child in await children(on, run)] == ["deny", "deny"]


async def test_arguments_that_no_step_mentions_go_to_the_first_one(stage: Any) -> None:
    async with stage([Reply(text="Done.", times=0)], agents=AGENTS) as on:
        define(on, "type: workflow\nsteps: [{prompt: First.}, {prompt: Second.}]\n")
        await ended(on, "but quickly")
        assert sent(on) == ["First.\n\nbut quickly", "Second."]


async def test_the_cost_limit_covers_the_steps(stage: Any) -> None:
    priced = {"scripted": {"context": 64_000, "prices": {"input": 1.0, "output": 1.0}}}
    async with stage([Reply(text="A heron.", times=0)], agents=AGENTS, priced=priced, limits=Limits(cost=10)) as on:
        define(on, TWO)
        run, _ = await ended(on, "birds")
        assert run.status == "failed" and run.error is not None and "cost limit" in run.error.message
        assert len(on.server.requests) == 1


async def test_cancelling_a_workflow_stops_its_step_and_starts_no_other(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=3)], agents=AGENTS) as on:
        define(on, TWO)
        submitted = await start(on, "birds")
        await until(on, submitted.run, "run")
        await on.engine.runs.cancel(submitted.run.id)
        (child,) = await children(on, submitted.run)
        assert [(await on.engine.runs.wait(one)).status for one in (submitted.run.id, child.id)] == ["cancelled", "cancelled"]


async def test_a_step_that_a_person_stops_is_not_retried(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=3)], agents=AGENTS) as on:
        define(on, TWO)
        submitted = await start(on, "birds")
        await until(on, submitted.run, "run")
        (child,) = await children(on, submitted.run)
        await on.engine.runs.cancel(child.id)
        run = await until(on, submitted.run, None, "failed")
        assert run.error is not None and "coder cancelled" in run.error.message and len(await children(on, run)) == 1


async def test_a_workflow_continues_in_another_process_without_repeating_a_step(stage: Any) -> None:
    script = [
        Reply(when="Draft", text="A heron."),
        Reply(when="Review", text="never ends", hang_at=3),
        Reply(when="Review", text="Good."),
    ]
    async with stage(script, agents=AGENTS) as on:
        define(on, TWO)
        async with open_engine(on.engine.settings) as dead:
            submitted = await start(on, "birds", dead)
            await on.called(2)
        define(on, TWO.replace("Draft a text", "Changed"))  # the run keeps the steps that it started with
        await on.engine.runs.sweep(resume=True)
        await until(on, submitted.run, None, "finished")
        assert [text.partition(" ")[0] for text in sent(on)] == ["Draft", "Review", "Review"]
        assert len(await children(on, submitted.run)) == 2


async def test_the_card_of_a_check_that_was_cut_off_says_that_it_is_made_again(stage: Any) -> None:
    check = "{command: 'test -f go || { touch started; exec sleep 600; }'}"
    async with stage([Reply(text="Written.")], agents=AGENTS) as on:
        define(on, f"type: workflow\nsteps:\n- prompt: Write.\n  check: {check}\n")
        async with open_engine(on.engine.settings) as dead:
            submitted = await start(on, engine=dead)
            with anyio.fail_after(60):
                while not (on.directory / "started").exists():
                    await anyio.sleep(0.01)
        (on.directory / "go").touch()
        await on.engine.runs.sweep(resume=True)
        run = await until(on, submitted.run, None, "finished")
        parts = (await on.engine.store.conversations.message(run.message)).parts
        first, second = (part for part in parts if part["type"] == "tool-shell")
        assert first["errorText"] == UNKNOWN_REPEATED and "not repeated" not in UNKNOWN_REPEATED
        assert second["state"] == "output-available"


async def test_a_message_sent_meanwhile_goes_to_the_next_step(stage: Any) -> None:
    script = [Reply(when="Draft", text="A heron.", hang_at=1), Reply(when="Review", text="Good.")]
    async with stage(script, agents=AGENTS) as on:
        define(on, TWO)
        submitted = await start(on, "birds")
        await on.called(1)
        await on.submit("Mention the moon.", conversation=submitted.conversation.id, on_busy="steer")
        on.server.release()
        run = await on.engine.runs.wait(submitted.run.id)
        assert run.status == "finished" and sent(on)[1] == "Review birds: A heron.\n\nThe user adds: Mention the moon."


async def test_the_conversation_keeps_its_agent_and_its_model_does_the_steps(stage: Any) -> None:
    script = [Reply(text="Hello."), Reply(when="Draft", text="A heron."), Reply(when="Review", text="Good."), Reply(text="Bye.")]
    async with stage(script, agents=AGENTS) as on:
        define(on, TWO)
        first, _ = await on.ask("hello", agent="coder", model="scripted@mine")
        submitted = await start(on, "birds", conversation=first.conversation)
        run = await on.engine.runs.wait(submitted.run.id)
        assert [(child.agent, child.model) for child in await children(on, run)] == [("coder", "scripted@mine")] * 2
        last, _ = await on.ask("bye", conversation=first.conversation)
        assert (last.agent, last.status) == ("coder", "finished") and "Good." in str(on.server.requests[-1].json)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("agent: coder→agent: codr", "write.yaml:5: Agent 'codr' not found"),
        ("type: workflow→type: workflow\nagent: codr", "write.yaml:2: Agent 'codr' not found"),
        ("type: workflow→type: workflow\nmodel: small@opena", "write.yaml:2: Provider 'opena' not found. Did you mean 'openai'?"),
        ("name: review→name: draft", "write.yaml:10:11: commands.write.steps[1].name: The step 'draft' is defined twice"),
        (
            "about $topic→about {{steps.review.output}}",
            "write.yaml:7:13: commands.write.steps[0].prompt: The step 'review' has no output yet",
        ),
        ("{{topic}}:→{{topc}}:", "Unknown variable {{topc}}"),
        ("steps.draft→steps.drat", "Unknown step 'drat'"),
        ("retries: 1→retry: 1", "write.yaml:9:5: commands.write.steps[0]: Unknown key 'retry'"),
        ("contains: heron→contain: heron", "Unknown key 'contain'"),
        ("contains: heron→matches: '('", "regular expression"),
        ("{contains: heron}→{command: 'echo $(cat $topic)'}", "quoted safely"),
        ("prompt: Draft a text about $topic.→prompt: ''", "The prompt is empty"),
        ("type: workflow→type: prompt", "Only a workflow has steps"),
    ],
)
async def test_a_workflow_with_a_mistake_is_listed_with_file_and_line(stage: Any, change: str, problem: str) -> None:
    before, _, after = change.partition("→")
    async with stage([], agents=AGENTS) as on:
        define(on, TWO.replace(before, after, 1))
        catalogue = await catalogue_of(CommandContext(on.engine, str(on.directory)))
        assert "write" not in catalogue and problem in catalogue.refused["write"].advice()


async def test_a_missing_argument_starts_nothing(stage: Any) -> None:
    async with stage([], agents=AGENTS) as on:
        define(on, TWO)
        with pytest.raises(UsageError, match="'topic' is missing"):
            await start(on)
        assert (await on.engine.store.conversations.list()).items == []


WRITES = """\
type: workflow
steps:
  - name: draft
    prompt: Draft $1 in @{style}.
    retries: 1
    check: {command: 'echo checked >> checks; echo {{steps.draft.output}} | grep heron'}
  - name: review
    prompt: "Review {{steps.draft.output}}"
"""


@pytest.fixture
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="Draft storks", text="A stork.", hang_at=1),
        Reply(when="failed", text="A heron.", times=0),
        Reply(when="Draft", text="A gull.", times=0),
        Reply(text="Good.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topic", "points"),
    [
        ("birds", ["child.started"]),
        ("storks", ["run.parked"]),  # the first sub-agent doesn't answer, so the run is parked
        ("storks", ["run.parked", "leg.begun"]),
        ("birds", ["tool.started:2"]),
        ("birds", ["tool.worked:2"]),
        ("birds", ["tool.ended:2"]),
        ("birds", ["tool.started:5"]),
        ("birds", ["run.ended:3"]),
    ],
)
def test_a_killed_workflow_continues_where_it_was(moot: MootProcess, model: ScriptedProcess, topic: str, points: list[str]) -> None:
    path = moot.home / "commands/write.yaml"
    path.parent.mkdir()
    path.write_text(WRITES)
    with (moot.home / "config.yaml").open("a") as file:
        file.write("permissions: {mode: auto}\nmacros: {style: three lines}\n")
    moot.more.update({"MOOT_TESTING": "1", "MOOT_CRASH_AT": points[0]})
    assert moot.run("commands", "run", "write", topic).returncode == -9, "the point was never passed"
    del moot.more["MOOT_CRASH_AT"]
    (parent,) = json.loads(moot.run("chat", "list", "--json").stdout)["data"]
    for name in points[1:]:
        moot.more["MOOT_CRASH_AT"] = name
        assert moot.run("chat", "resume", parent["id"]).returncode == -9, "the point was never passed"
        del moot.more["MOOT_CRASH_AT"]
    configured = moot.home / "config.yaml"
    configured.write_text(configured.read_text().replace("three lines", "two words"))
    ended = moot.run("chat", "resume", parent["id"])
    assert ended.returncode == 0 and ended.stdout.decode().endswith("Good.\n"), ended.stderr
    tree = json.loads(moot.run("agents", "tree", parent["id"], "--json").stdout)
    assert [(child["status"], child["summary"]) for child in tree["children"]] == [
        ("finished", "A gull."),
        ("finished", "A heron."),
        ("finished", "Good."),
    ]
    texts = [json.loads(request["body"])["messages"][-1]["content"] for request in model.requests()]
    first = {text for text in texts if str(text).startswith("Draft") and "earlier attempt" not in str(text)}
    assert first == {f"Draft {topic} in three lines."}  # a macro that changes meanwhile doesn't change the prompt of a step
    assert moot.run("verify", "--all").returncode == 0
