from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.models import Script, ScriptedModels, Step
from agents.programs import (
    by_node,
    claude,
    claude_environment,
    codex,
    codex_environment,
    gemini_environment,
    opencode,
    opencode_environment,
    pi_environment,
    qwen_environment,
)
from agents.relay import Relay
from conformance.formats import check_read
from moot.formats.agents.claude.format import ClaudeFormat
from moot.formats.agents.codex.format import CodexFormat
from moot.formats.agents.gemini.format import Gemini
from moot.formats.agents.opencode.format import OpenCode
from moot.formats.agents.pi import Pi
from moot.formats.agents.qwen import Qwen
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, InstallableSession, WholeConversation
from moot.types.message import Message, Part, text_of, text_part

ID = "4b1f6f2c-53a1-4c0e-9c56-6a3c4b1e9d11"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE: Part = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PIXEL}"}
SCRIPT: Script = {"go on now": [Step(text="Going on.")]}


@pytest.fixture(scope="module")
def models(serve_models: Callable[[Script], ScriptedModels]) -> ScriptedModels:
    return serve_models(SCRIPT)


def conversation(directory: Path) -> ExportedConversation:
    """A message with everything that an answer of moot's own loop may contain."""
    asked = Message("u1", "user", (text_part("What is in the picture, and here?"), PICTURE), created_at=1_767_600_000_000)
    parts: tuple[Part, ...] = (
        {"type": "step-start"},
        {"type": "reasoning", "text": "Nobody signed this.", "state": "done"},
        text_part("I look around."),
        {"type": "tool-list_files", "toolCallId": "call.1", "state": "output-available", "input": {"path": "."}, "output": "notes.txt"},
        {"type": "tool-run", "toolCallId": "call_2", "state": "output-error", "input": {}, "errorText": "exit code 3"},
        {
            "type": "tool-look",
            "toolCallId": "call_3",
            "state": "output-available",
            "input": {},
            "output": {"type": "content", "value": [PICTURE]},
        },
        {"type": "steering-message", "id": "s1", "parts": [text_part("be quick")]},
        {"type": "step-start"},
        text_part("One file."),
    )
    steps: list[Any] = [{"usage": {"input": 10, "output": 5}, "cost": 1000}, {"usage": {"input": 20, "output": 5}, "cost": None}]
    answer = Message("a1", "assistant", parts, {"model": "big", "steps": steps}, created_at=1_767_600_001_000)
    thanks = Message("u2", "user", (text_part("Thank you."),), created_at=1_767_600_002_000)
    last = Message("a2", "assistant", (text_part("You are welcome."),), created_at=1_767_600_003_000)
    about = Conversation("c1", title="A picture", directory=str(directory), created_at=1_767_600_000_000)
    return ExportedConversation(about, (asked, answer, thanks, last))


def put(session: InstallableSession) -> None:
    for path, data in {session.path: session.data, **session.beside}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def run(command: list[str], directory: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (done.stdout + done.stderr).decode()


def heard(models: ScriptedModels) -> str:
    """Return the last request to the model that continues the conversation. Some programs then ask for notes about it."""
    requests = [json.dumps(asked["messages"]) for asked in models.asked()]
    return next(said for said in reversed(requests) if "memory extraction" not in said)


def check_what_went_along(said: str) -> None:
    positions = [
        said.find(words) for words in ("What is in the picture", "I look around.", "notes.txt", "exit code 3", "One file.", "Thank you.")
    ]
    assert -1 not in positions and positions == sorted(positions), said
    for words in ("list_files", "You are welcome.", "go on now"):
        assert words in said


def check_it_went_on(session: InstallableSession, read: WholeConversation) -> None:
    assert session.path.read_bytes().startswith(session.data)
    known = {message.source_id: message for message in read.messages}
    said, at = list[str](), read.facts.head
    while at is not None:
        said.insert(0, text_of(known[at].parts))
        at = known[at].parent
    asked = "What is in the picture, and here?"
    assert said == [asked, "I look around.One file.", "Thank you.", "You are welcome.", "go on now", "Going on."]
    assert read.facts.head == read.messages[-1].source_id and read.facts.title == "A picture"


def test_claude_code_resumes_a_session_written_by_moot(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work of Ünal.d" / ("deep" * 50)
    work.mkdir(parents=True)
    format = ClaudeFormat()
    session = format.session(conversation(work), ID, work, tuple(format.places(tmp_path, {})))
    put(session)
    with Relay(models.url) as relay:
        environment = {**claude_environment(relay.url), "HOME": str(tmp_path), "IS_SANDBOX": "1"}
        run([claude(), "-p", "go on now", *session.command[1:]], work, environment)
    check_what_went_along(heard(models))
    sent = relay.bodies[-1].decode()
    assert "Nobody signed this." not in sent
    assert sent.count(PIXEL) == 2 and "be quick" in sent
    [read] = check_read(format, session.path)
    check_it_went_on(session, read)


def test_codex_resumes_a_session_written_by_moot(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    format = CodexFormat()
    environment = {**codex_environment(models.url, tmp_path, work), "HOME": str(tmp_path)}
    session = format.session(conversation(work), ID, work, tuple(format.places(tmp_path, environment)))
    put(session)
    run([codex(), "exec", "resume", "--skip-git-repo-check", ID, "go on now"], work, environment)
    said = heard(models)
    check_what_went_along(said)
    assert "be quick" in said and PIXEL in said and "Nobody signed this." not in said
    [read] = check_read(format, session.path)
    check_it_went_on(session, read)


@pytest.mark.slow
def test_gemini_cli_lists_and_resumes_a_session_written_by_moot(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work of Ünal.d"
    work.mkdir()
    format = Gemini()
    program = by_node("@google/gemini-cli/bundle/gemini.js")
    with Relay(models.url) as relay:
        environment = gemini_environment(relay.url, tmp_path, work)
        session = format.session(conversation(work), ID, work, tuple(format.places(tmp_path, environment)))
        put(session)
        listed = run([*program, "--list-sessions"], work, environment)
        assert "A picture" in listed and ID in listed, listed
        run([*program, *session.command[1:], "-p", "go on now", "-m", "gemini-2.5-flash"], work, environment)
    check_what_went_along(heard(models))
    sent = next(body for body in reversed(relay.bodies) if b"go on now" in body).decode()
    assert sent.count(PIXEL) == 2 and "be quick" in sent and "Nobody signed this." not in sent
    [read] = check_read(format, session.path)
    check_it_went_on(session, read)
    assert read.messages[1].parts == conversation(work).messages[1].parts


@pytest.mark.slow
def test_qwen_code_lists_and_resumes_a_session_written_by_moot(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work of Ünal.d"
    work.mkdir()
    format = Qwen()
    program = by_node("@qwen-code/qwen-code/cli.js")
    other = Message("o1", "user", (text_part("This branch is not shown."),), parent="a2", created_at=1_767_600_004_000)
    with Relay(models.url) as relay:
        environment = qwen_environment(relay.url, tmp_path, work)
        session = format.session(replace(conversation(work), others=(other,)), ID, work, tuple(format.places(tmp_path, environment)))
        put(session)
        run([*program, *session.command[1:], "-p", "go on now"], work, environment)
        environment["OPENAI_BASE_URL"] = f"{models.url}/v1"
    said = heard(models)
    check_what_went_along(said)
    sent = next(body for body in relay.bodies if b"go on now" in body).decode()
    assert sent.count(PIXEL) == 2 and "Nobody signed this." in sent and "be quick" in said and "not shown" not in said
    [read] = check_read(format, session.path)
    check_it_went_on(session, read)
    assert read.messages[1].parts == conversation(work).messages[1].parts
    run([*program, "--continue", "-p", "Once more, go on now"], work, environment)  # the newest session in its list
    said = heard(models)
    assert "You are welcome." in said and "Going on." in said and "Once more" in said


@pytest.mark.slow
def test_pi_lists_and_resumes_a_session_written_by_moot(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work of Ünal.d"
    work.mkdir()
    format = Pi()
    other = Message("o1", "user", (text_part("This branch is not shown."),), parent="a2", created_at=1_767_600_004_000)
    with Relay(models.url) as relay:
        environment = pi_environment(relay.url, tmp_path, work)
        session = format.session(replace(conversation(work), others=(other,)), ID, work, tuple(format.places(tmp_path, environment)))
        put(session)
        assert session.command == ("pi", "--session", ID)
        # it looks up a part of an id in its list
        run([*by_node("@mariozechner/pi-coding-agent/dist/cli.js"), "--session", ID[:9], "-p", "go on now"], work, environment)
    said = heard(models)
    check_what_went_along(said)
    sent = next(body for body in relay.bodies if b"go on now" in body).decode()
    assert sent.count(PIXEL) == 2 and "Nobody signed this." in sent and "be quick" in said and "not shown" not in said
    [read] = check_read(format, session.path)
    check_it_went_on(session, read)
    assert read.messages[1].parts == conversation(work).messages[1].parts


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_opencode_imports_lists_and_resumes_a_session_written_by_moot(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work of Ünal.d"
    work.mkdir()
    format = OpenCode()
    with Relay(models.url) as relay:
        environment = opencode_environment(relay.url, tmp_path, work)
        places = tuple(format.places(tmp_path, environment))
        session = format.session(conversation(work), ID, work, places)
        put(session)
        run([opencode(), *session.setup[1:]], work, environment)
        listed = run([opencode(), "session", "list"], work, environment)
        assert "A picture" in listed and session.command[-1] in listed, listed
        # without a terminal, it would use the model of the last prompt, which it doesn't have
        run([opencode(), "run", *session.command[1:], "-m", "scripted/one", "go on now"], work, environment)
    said = heard(models)
    check_what_went_along(said)
    sent = next(body for body in relay.bodies if b"go on now" in body).decode()
    assert sent.count(PIXEL) == 2 and "Nobody signed this." in sent and "be quick" in said
    [read] = check_read(format, places[0])
    assert [text_of(one.parts) for one in read.messages][-4:] == ["Thank you.", "You are welcome.", '"go on now"', "Going on."]
    assert read.messages[1].parts == conversation(work).messages[1].parts
    assert read.facts.title == "A picture" and read.facts.directory == str(work)
