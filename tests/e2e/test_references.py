"""References in prompts: what a text names after `@` is attached, and nothing else."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from moot.commands import catalogue_of
from moot.commands.command import CommandContext, Notice, Send
from moot.commands.custom import CustomCommand, hooks_of
from moot.commands.submission import run_in_channel
from moot.config.settings import Models, Permissions, Rule
from moot.convert.files.attachments import label_of, prompt_text, readable_prompt, with_texts
from moot.engine.undo import Undo
from moot.errors import MootError, Refused, UsageError
from moot.features.context import context_report
from moot.features.prompts.references import MAX_PAGES, MAX_REFERENCES, Place, read_references
from moot.guard.paths import Paths
from moot.runtime.history import compact
from moot.testing.script import Reply
from moot.types.agent import Agent, McpServer
from moot.types.approval import Answer
from moot.types.canonical import JsonObject
from moot.types.command import CommandDefinition, CommandFacts
from moot.types.message import is_tool, text_of, text_part, tool_name
from moot.types.run import Prompt, References

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\nxx"


@asynccontextmanager
async def website(pages: dict[str, tuple[str, bytes]]) -> AsyncGenerator[tuple[str, list[str], dict[str, Any]]]:
    """Serve pages by path. Yield the address, the paths that were requested, and settings of tools that allow the address."""
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        kind, body = pages.get(request.path, ("", b""))
        return web.Response(body=body, content_type=kind) if kind else web.Response(status=404)

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    bound = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, bound).start()
    port = bound.getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", asked, {"fetch_url": {"allow": ["127.0.0.1/32"], "ports": [port]}}
    finally:
        await runner.cleanup()


async def read(on: Any, text: str, **more: Any) -> References:
    return await read_references(text, Place(on.engine.runtime, str(on.directory), **more))


def texts(found: References) -> list[str]:
    return [str(part.get("text", part.get("mediaType"))) for part in with_texts(found.parts)]


async def test_references_are_files_lines_folders_pictures_or_plain_text(stage: Any, directory: Path) -> None:
    (directory / "a b.txt").write_text("one\ntwo\nthree")
    (directory / "p.png").write_bytes(PNG)
    (directory / "d").mkdir()
    (directory / "d" / "x").write_text("")
    os.mkfifo(directory / "pipe")
    async with stage([]) as on:
        found = await read(on, '@"a b.txt" (see @d/), @p.png and me@example.org, @missing @gone.txt @"a b.txt"')
        assert texts(found) == [f"{directory}/a b.txt:\n\none\ntwo\nthree", "d/:\n\nx", "image/png"]
        assert found.notes == ("File 'gone.txt' not found; sent as text.",)
        (lines,) = (await read(on, '@"a b.txt#2-3"')).parts
        assert (lines["type"], lines["filename"], lines["providerMetadata"]) == (
            "file",
            "a b.txt",
            {"moot": {"path": "a b.txt", "size": 9, "lines": [2, 3], "referenced": True}},
        )
        assert prompt_text(lines) == "a b.txt, lines 2 to 3:\n\ntwo\nthree"
        assert label_of(lines) == "a b.txt (lines 2 to 3), text/plain, 9 bytes"
        with pytest.raises(UsageError, match="has 3 lines"):
            await read(on, '@"a b.txt#9-12"')
        for refused in ('@"/etc/passwd"', "@pipe"):
            with pytest.raises(Refused):
                await read(on, refused)
        outside = await read(on, "import { Button } from '@/components/button' and @~/notes")
        assert (outside.parts, len(outside.notes)) == ((), 2)
        assert all(note.endswith("Sent as text.") or "not found; sent as text" in note for note in outside.notes)


async def test_rules_for_file_tools_decide_about_files_and_folders(stage: Any, directory: Path) -> None:
    (directory / "secret").mkdir()
    (directory / "secret" / "k.txt").write_text("key")
    rules = (Rule("read_file", "deny", "secret/*"), Rule("list_files", "deny", "secret"), Rule("read_file", "ask", "asked.txt"))
    (directory / "asked.txt").write_text("fine")
    async with stage([], permissions=Permissions(rules=rules)) as on:
        for denied in ("@secret/k.txt", "@secret/k.txt#1", "@secret/"):
            for attended in (True, False):
                with pytest.raises(Refused, match="can't be attached"):
                    await read(on, denied, attended=attended)
        assert len((await read(on, "@asked.txt")).parts) == 1
        with pytest.raises(Refused, match="no one is available"):
            await read(on, "@asked.txt", attended=False)


async def test_a_link_that_replaces_a_file_is_not_followed(stage: Any, directory: Path, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "outside.txt").write_text("outside")
    (directory / "n.txt").write_text("inside")
    resolve = Paths.resolve

    def swapped(self: Paths, path: str) -> Path:
        found = resolve(self, path)
        (directory / "n.txt").unlink()
        (directory / "n.txt").symlink_to(tmp_path / "outside.txt")
        return found

    async with stage([]) as on:
        monkeypatch.setattr(Paths, "resolve", swapped)
        with pytest.raises(Refused):
            await read(on, '@"n.txt"')


@pytest.mark.parametrize(
    "text",
    [
        "Write to notes@example.org, or to <a.b+notes@notes.example>.",
        "@property\ndef size(self): ...",
        '@app.get("/notes")\n@pytest.mark.parametrize("x", [])\n@dataclass(slots=True)',
        "In `@notes` and ``a ` @notes`` nothing is attached.",
        "```py\n@notes\n```\nand\n~~~\n@notes https://x @https://127.0.0.1/\n~~~",
        "```\n@notes in a block that never ends",
        "`one\ntwo @notes` spans lines",
        "x@notes @@notes /@notes",
        "@ notes @",
    ],
)
async def test_text_that_only_looks_like_a_reference_is_left_alone(stage: Any, directory: Path, text: str) -> None:
    (directory / "notes").write_text("secret")
    async with stage([]) as on:
        assert await read(on, text) == References(text)


async def test_code_ends_where_markdown_ends_it(stage: Any, directory: Path) -> None:
    (directory / "notes").write_text("mine")
    async with stage([]) as on:
        for text in ("a ` b\n\n@notes `", "```\ncode\n```\n@notes", "one ` tick @notes", "```` not closed by ``` @notes"):
            assert len((await read(on, text)).parts) == 1, text


async def test_a_web_page_is_fetched_once_and_stored_in_the_prompt(stage: Any) -> None:
    pages = {"/doc(1)": ("text/html", b"<h1>Head</h1><script>x</script><p>Some <b>text</b></p>"), "/p.png": ("image/png", PNG)}
    async with (
        website(pages) as (address, asked, tools),
        stage([Reply(text="Read.", times=0)], tools=tools, mode="ask") as on,
    ):
        url = f"{address}/doc(1)"
        found = await read(on, f"Read @{url}, (also @{url}). And @{address}/p.png!")
        assert asked == ["/doc(1)", "/p.png"] and not found.notes
        page, picture = found.parts
        assert (prompt_text(page) or "").startswith(f"{url}:\n\n") and "Some **text**" in (prompt_text(page) or "")
        assert "script" not in str(prompt_text(page)) and picture["mediaType"] == "image/png"
        assert readable_prompt([page, text_part("hi")]).startswith("[doc(1), text/markdown, ")
        run, _ = await on.ask(f"Read @{url}")
        assert run.status == "finished" and len(asked) == 2  # text that a program submits is sent as it is


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("{address}/gone", "responded with status 404"),
        ("{address}/data", "can't be shown as text"),
        ("http://10.0.0.1/", "not on the public network"),
        ("http://169.254.169.254/latest", "not on the public network"),
        ("http://[::1]/", "not on the public network"),
        ("http://user:password@127.0.0.1/", "user name or password"),
        ("http://127.0.0.1:99999/", "not a valid URL"),
        ("http://127.0.0.1:22/", "Port 22 is not allowed"),
        (f"http://127.0.0.1/{')' * 100_000}", "has more than 8,000 characters"),
    ],
)
async def test_a_page_that_can_not_be_fetched_is_an_error_before_anything_is_stored(stage: Any, url: str, problem: str) -> None:
    async with (
        website({"/data": ("application/octet-stream", b"\0\1\2" * 100)}) as (address, _, tools),
        stage([], tools=tools) as on,
    ):
        with pytest.raises(MootError, match=problem):
            await read(on, f"See @{url.format(address=address)} please")


async def test_rules_for_the_tool_decide_about_pages_and_the_mode_about_unattended_prompts(stage: Any) -> None:
    async with website({"/a": ("text/plain", b"A"), "/b": ("text/plain", b"B")}) as (address, asked, tools):
        rules = Permissions(
            mode="ask",
            rules=(Rule("fetch_url", "deny", f"{address}/b"), Rule("fetch_url", "ask", f"{address}/c")),
        )
        async with stage([], tools=tools, permissions=rules) as on:
            assert len((await read(on, f"@{address}/a")).parts) == 1
            for text, more, problem in (
                (f"@{address}/b", {}, "says deny"),
                (f"@{address}/a", {"attended": False}, "needs a person's approval"),
            ):
                with pytest.raises(Refused, match=problem):
                    await read(on, text, **more)
        allowed = Permissions(mode="ask", rules=(Rule("fetch_url", "allow", f"{address}/*"),))
        async with stage([], tools=tools, permissions=allowed) as on:
            assert len((await read(on, f"@{address}/a", attended=False)).parts) == 1
    assert asked == ["/a", "/a"]


async def test_a_long_page_is_shortened_and_too_many_references_are_refused(stage: Any) -> None:
    async with website({"/long": ("text/plain", b"x" * 300_000)}) as (address, asked, tools), stage([], tools=tools) as on:
        found = await read(on, f"@{address}/long")
        assert found.notes == (f"{address}/long is too long; only its first 200,000 characters were attached.",)
        asked.clear()
        for number in range(MAX_REFERENCES + 1):
            (on.directory / f"name{number}").write_text("x")
        for text, what in (
            (" ".join(f"@{address}/{number}" for number in range(MAX_PAGES + 1)), "more than 10 web pages"),
            (" ".join(f"@name{number}" for number in range(MAX_REFERENCES + 1)), "more than 100 references"),
        ):
            with pytest.raises(UsageError, match=what):
                await read(on, text)
        assert not asked


# ── files that are attached again ──────────────────────────────────────────────────────────────────────────────────────────────────────

AGAIN = "unchanged since it was attached above"


def sent(on: Any) -> list[str]:
    """Return the prompts of the last request to the main model."""
    request = next(one for one in reversed(on.server.requests) if one.json["model"] == "scripted")
    return [str(message["content"]) for message in request.json["messages"] if message["role"] == "user"]


async def attach(on: Any, text: str, **more: Any) -> Any:
    """Send a prompt with what it refers to, and return its run."""
    found = await read(on, text)
    submitted = await on.engine.runs.submit(Prompt((*found.parts, text_part(text)), directory=str(on.directory), **more))
    return await on.follow(submitted)


async def test_an_unchanged_file_is_sent_once_and_stays_stored(stage: Any, directory: Path) -> None:
    (directory / "a.py").write_text("x = 1\n")
    async with stage([Reply(text="Yes.", times=0)], agents={"default": Agent(tools=())}) as on:
        id = (await attach(on, "Explain @a.py")).conversation
        first = sent(on)
        await attach(on, "Again @a.py", conversation=id)
        assert sent(on)[0] == first[0] and "x = 1" in sent(on)[0] and AGAIN in sent(on)[1] and "x = 1" not in sent(on)[1]
        (directory / "a.py").write_text("x = 2\n")
        await attach(on, "And now @a.py", conversation=id)
        assert "x = 2" in sent(on)[2] and AGAIN not in sent(on)[2]
        branch = await on.engine.store.conversations.branch(id)
        stored = [prompt_text(message.parts[0]) for message in branch if message.role == "user"]
        assert ["x = 1" in str(text) for text in stored] == [True, True, False]  # the log has every copy
        report = await context_report(on.engine, await on.engine.store.conversations.get(id))
        assert str(report.request).count("x = 1") == 1 and str(report.request).count(AGAIN) == 1
        fork = await on.engine.store.tree.fork(id, message=branch[3].id)
        await attach(on, "In the copy @a.py", conversation=fork.id)
        assert "x = 1" in sent(on)[0] and AGAIN in sent(on)[1] and "x = 2" in sent(on)[2]


async def test_a_file_is_sent_again_if_its_first_copy_is_summarized_undone_edited_or_deleted(stage: Any, directory: Path) -> None:
    (directory / "a.py").write_text("x = 1\n")
    models = Models(main="scripted@mine", compaction="little@mine")
    script = [Reply(when="Write the summary", text="They read a file.", times=0), Reply(text="Yes.", times=0)]
    async with stage(script, models=models, agents={"default": Agent(tools=())}) as on:
        store, id = on.engine.store, (await attach(on, "First @a.py")).conversation
        await attach(on, "Second @a.py", conversation=id)
        first, *_ = await store.conversations.branch(id)
        await attach(on, "Edited, without it", conversation=id, edits=first.id)
        await attach(on, "Third @a.py", conversation=id)
        assert AGAIN not in str(sent(on)) and "x = 1" in sent(on)[1]
        await Undo(on.engine.runtime, await store.conversations.get(id)).undo("talk", overwrite=False, dry_run=False)
        await attach(on, "Fourth @a.py", conversation=id)
        assert AGAIN not in str(sent(on)) and "x = 1" in sent(on)[1]
        await attach(on, "Fifth @a.py", conversation=id)
        assert AGAIN in sent(on)[2]
        head = (await store.conversations.get(id)).head
        assert await compact(on.engine.runtime, id, head, keep=2) is not None
        await attach(on, "Sixth @a.py", conversation=id)
        assert "They read a file." in sent(on)[0] and "x = 1" in sent(on)[1] and AGAIN in sent(on)[2]
        kept = next(message for message in await store.conversations.branch(id) if "Fifth" in text_of(message.parts))
        await store.tree.delete(id, [kept.id])
        await attach(on, "Seventh @a.py", conversation=id)
        assert "x = 1" in sent(on)[1] and AGAIN in sent(on)[2]


# ── tool calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def call(on: Any, text: str, answer: Any = None, **more: Any) -> tuple[Any, Any]:
    """Send a prompt with its tool calls, and return its run and answer."""
    found = await read(on, text)
    return await on.ask(text, answer, settings=hooks_of((), found.calls), **more)


async def test_a_named_tool_runs_before_the_prompt_with_exactly_these_arguments(stage: Any, directory: Path) -> None:
    (directory / "a.txt").write_text("content of a")
    async with stage([Reply(text="Seen.", times=0)], mode="ask") as on:
        text = '@[read_file{"path": "a.txt"}] and @[search_files{"pattern": "`con` {{prompt}} @b ]"}], please'
        assert [one["arguments"] for one in (await read(on, text)).calls] == [
            {"path": "a.txt"},
            {"pattern": "`con` {{prompt}} @b ]"},
        ]
        run, answer = await call(on, text)
        assert run.status == "finished", run.error
        read_call, search_call = [part for part in answer.parts if is_tool(part)]
        assert (tool_name(read_call), read_call["state"]) == ("read_file", "output-available")
        assert search_call["input"] == {"pattern": "`con` {{prompt}} @b ]"}
        prompt = sent(on)[-1]
        assert "Output of read_file, run before this prompt:" in prompt and "content of a" in prompt and prompt.endswith(text)
        await on.ask("And now?", conversation=run.conversation)
        assert "content of a" in sent(on)[0] and len(on.server.requests) == 2


async def test_a_named_tool_is_asked_about_and_denied_like_a_call_of_the_model(stage: Any, directory: Path) -> None:
    text = '@[shell{"command": "echo hi > out.txt"}] go'
    async with stage([Reply(text="Seen.", times=0)], mode="ask") as on:
        found = await read(on, text)
        submitted = await on.submit(text, settings=hooks_of((), found.calls))
        run = await on.follow(submitted)
        assert (run.status, run.awaits) == ("waiting", "person") and not (directory / "out.txt").exists() and not on.server.requests
        run, _ = await call(on, text, lambda _: Answer(True))
        assert run.status == "finished" and (directory / "out.txt").read_text() == "hi\n"
        (directory / "out.txt").unlink()
        run, answer = await call(on, text, lambda _: Answer(False, reason="no"))
        assert run.status == "finished" and not (directory / "out.txt").exists()
        assert next(part["state"] for part in answer.parts if is_tool(part)) == "output-denied"
        assert "Output of shell failed, run before this prompt:" in sent(on)[-1]
    denied = Permissions(mode="auto", rules=(Rule("shell", "deny", "*"),))
    async with stage([Reply(text="Seen.", times=0)], permissions=denied) as on:
        run, answer = await call(on, text)
        assert run.status == "finished" and "says deny" in str(answer.parts) and not (directory / "out.txt").exists()


async def test_only_tools_of_the_agent_are_called_even_if_the_prompt_was_not_checked(stage: Any, directory: Path) -> None:
    agents = {"default": Agent(tools=("read_file",)), "other": Agent("other", agent_type="claude-code")}
    async with stage([Reply(text="Seen.", times=0)], agents=agents) as on:
        for text, more, problem in (
            ('@[shell{"command": "touch x"}]', {}, "'default' doesn't have the tool 'shell'"),
            ('@[raed_file{"path": "x"}]', {}, "Did you mean 'read_file'"),
            ('@[read_file{"path": "x"}]', {"agent": "other"}, "has its own tools"),
            ('@[read_file{"path": "x"]', {}, "are not valid JSON"),
            ('@[read_file{"path": "x"} now', {}, "']' is missing"),
            ('@[read_file{"path": 1, "path": 2}]', {}, "not valid JSON"),
            ("@[read_file" + '{"path":' * 100_000, {}, "not valid JSON"),
        ):
            with pytest.raises(UsageError) as raised:
                await read(on, text, **more)
            assert problem in raised.value.message
        hook: JsonObject = {"tool": "shell", "arguments": {"command": "touch x"}, "referenced": True}
        run, answer = await on.ask("go", settings=hooks_of((), [hook]))
        assert run.status == "finished" and not (directory / "x").exists()
        assert "Tool 'shell' not found. Available tools: read_file." in str(answer.parts)
        run, answer = await call(on, '@[read_file{"pth": "x"}] @[read_file{"path": "gone"}]')
        assert run.status == "finished"
        assert [part["state"] for part in answer.parts if is_tool(part)] == ["output-error", "output-error"]
        for text in ("@[x] @[] @[{}] @[a b{}]", '`@[shell{"command": "touch x"}]`', 'me@[shell{"command": "touch x"}]'):
            assert (await read(on, text)).calls == ()


async def test_a_command_runs_named_tools_after_its_shell_lines(stage: Any, directory: Path) -> None:
    (directory / "a.txt").write_text("content of a")
    async with stage([Reply(text="Seen.", times=0)]) as on:
        facts = CommandFacts("look")
        command = CustomCommand(CommandDefinition(facts, 'See @[read_file{"path": "a.txt"}] and !`echo line`'))
        (send,) = await command.run(CommandContext(on.engine, str(directory)), "")
        assert isinstance(send, Send)
        run, answer = await on.ask(send.text, settings=send.settings)
        assert run.status == "finished"
        assert [tool_name(part) for part in answer.parts if is_tool(part)] == ["shell", "read_file"]


async def test_long_and_odd_references_are_read_quickly(stage: Any) -> None:
    async with stage([], mcp={"s": McpServer("s", command=sys.executable, enabled=False)}) as on:
        for text in (
            "@s:file:a" + ")" * 300_000,
            "@http://127.0.0.1/" + ")" * 7_000,
            "@x#" + "9" * 5_000,
            "@[foo{1}] @[[self alloc] init]",
        ):
            with anyio.fail_after(20), suppress(MootError):
                assert (await read(on, text)).parts == ()
        names = " ".join(f"@name{number}" for number in range(5_000))
        assert (await read(on, names)).parts == ()


async def test_a_tool_of_an_mcp_server_can_be_named(stage: Any, tmp_path: Path) -> None:
    server = McpServer("demo", command=sys.executable, args=(str(Path(__file__).with_name("mcp_server.py")), "stdio", str(tmp_path)))
    async with stage([Reply(text="Seen.", times=0)], mcp={"demo": server}) as on:
        run, answer = await call(on, '@[demo__add{"a": 20, "b": 22}] @[demo__gone{"a": 1}]')
        assert run.status == "finished", run.error
        added, gone = [part for part in answer.parts if is_tool(part)]
        assert added["state"] == "output-available" and "42" in str(added["output"])
        assert "Tool 'demo__gone' not found" in str(gone["errorText"])


async def test_the_context_command_attaches_files_in_a_terminal_but_not_in_a_channel(stage: Any, directory: Path) -> None:
    (directory / "big.txt").write_text("plums " * 4_000)
    async with stage([Reply(text="Yes.", times=0)]) as on:
        run, _ = await on.ask("hi")
        conversation = await on.engine.store.conversations.get(run.conversation)
        context = CommandContext(on.engine, str(directory), conversation.id)
        command = (await catalogue_of(context)).find("context")
        (notice,) = await command.run(context, "Read @big.txt @gone.txt")
        assert isinstance(notice, Notice) and "File 'gone.txt' not found" in notice.text
        literal = await run_in_channel(on.engine, conversation, "context", "Read @big.txt @gone.txt")
        tokens = [int(re.findall(r"([\d,]+) of", text)[0].replace(",", "")) for text in (notice.text, literal)]
        assert tokens[0] > tokens[1] + 3_000 and "gone.txt" not in literal
