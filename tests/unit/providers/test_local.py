from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from moot.config.settings import ProviderSettings
from moot.convert.dialects.small_model import OpenAISchema
from moot.errors import ProviderError, UsageError
from moot.guard.processes import child_environment, output, spawn
from moot.providers.endpoints import local as _local_server
from moot.providers.endpoints.local import Local
from moot.providers.machine import _loads, check_machine, import_failed
from moot.types.chunk import Chunk, problems
from moot.types.exchange import Ending, ExchangeOptions
from moot.types.message import Message, text_part
from moot.types.model import ModelSettings
from moot.types.provider import ModelPrompt, ModelRequest, ToolDefinition

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NAME = "smollm2-135m"
# read before the tests' own home is set; `.ci/run` fills it with `moot models pull smollm2-135m`
FOLDER = Path(os.environ.get("TEST_WEIGHTS") or Path.home() / ".cache" / "moot-test" / "data" / "models")
WEIGHTS = FOLDER / f"{NAME}.gguf"
needs_weights = pytest.mark.skipif(
    not WEIGHTS.is_file(), reason=f"no {WEIGHTS}: MOOT_HOME=~/.cache/moot-test moot models pull {NAME} --yes-download"
)
PROGRAM = Path(_local_server.__file__).with_name("_local_child.py")
PATH: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
PATTERN: dict[str, Any] = {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
TOOLS = (
    ToolDefinition("read_file", "Read a file.", PATH, ({"user": "Read plan.md", "arguments": {"path": "plan.md"}},)),
    ToolDefinition("find_files", "Find files by name.", PATTERN, ({"user": "Find YAML", "arguments": {"pattern": "*.yaml"}},)),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with the test's weights."""
    models = tmp_path / "data" / "models"
    models.mkdir(parents=True)
    (models / WEIGHTS.name).symlink_to(WEIGHTS)
    return tmp_path


def local(home: Path, **options: Any) -> Local:
    return Local(ProviderSettings("local", options=options, home=home))


def body(provider: Local, *messages: Message, system: str = "", **settings: Any) -> bytes:
    prompt = ModelPrompt(provider.describe(NAME), system, messages, TOOLS, ModelSettings(**settings))
    return json.dumps(OpenAISchema().to_request(prompt)).encode()


def user(text: str) -> Message:
    return Message("u", "user", (text_part(text),))


async def answer(provider: Local, request: bytes) -> tuple[list[bytes], list[Chunk], Ending]:
    translator = OpenAISchema().translator
    state = translator.open(ExchangeOptions())
    raws: list[bytes] = []
    chunks: list[Chunk] = []
    async with aclosing(provider.stream(ModelRequest(request, NAME))) as reads:  # type: ignore[type-var]
        async for frames in reads:
            for raw in frames:
                raws.append(raw)
                state, more = translator.feed(state, raw)
                chunks += more
    more, ending = translator.close(state, "eof")
    return raws, [*chunks, *more], ending


def server_of(provider: Local) -> Any:
    [(server, _)] = provider._servers.values()
    return server


async def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except FileNotFoundError:
            return True
        await asyncio.sleep(0.1)
    return False


@needs_weights
async def test_a_real_model_answers_with_the_requested_schema(home: Path) -> None:
    provider = local(home)
    request = body(provider, user("What does notes.txt say?"), temperature=0.0, max_tokens=160)
    raws, chunks, ending = await answer(provider, request)
    assert raws[-1] == b"data: [DONE]\n\n"
    assert len(raws) > 3
    assert all(raw.startswith(b"data: ") and raw.endswith(b"\n\n") for raw in raws)
    said = "".join(
        str(json.loads(raw[6:])["choices"][0]["delta"].get("content") or "") for raw in raws[:-1] if json.loads(raw[6:])["choices"]
    )
    assert [problem for chunk in chunks for problem in problems(chunk)] == []
    assert ending.error is None
    assert re.match(r'\{\s*"(reply|tool)"\s*:\s*"', said)
    if ending.finish_reason != "length":  # such a small model may talk up to its limit, and its text differs between machines
        answered = json.loads(said)
        assert set(answered) in ({"reply"}, {"tool", "arguments"})
        assert ending.finish_reason == ("stop" if "reply" in answered else "tool-calls")
    assert (ending.usage.input or 0) > 50
    assert (ending.usage.output or 0) > 3
    await provider.close()


@needs_weights
async def test_the_server_requires_its_key_listens_only_on_loopback_and_serves_no_page(home: Path) -> None:
    provider = local(home)
    await answer(provider, body(provider, user("hi"), max_tokens=2))
    server = server_of(provider)
    key = {"Authorization": f"Bearer {server.key}"}
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{server.url}/v1/models") as response:
            assert response.status == 401
        async with session.get(f"{server.url}/v1/models", headers={**key, "Origin": "http://evil.example"}) as response:
            assert response.status == 200
            assert response.headers.get("Access-Control-Allow-Origin", "") == ""
            assert NAME in await response.text()
        for path in ("/", "/slots", "/metrics"):
            async with session.get(server.url + path, headers=key) as response:
                assert response.status >= 400
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", server.url)
    process = Path(f"/proc/{server.pid}")
    assert server.key.encode() not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    await provider.close()
    assert await gone(server.pid)


@needs_weights
async def test_a_crash_is_retryable_and_the_next_request_restarts_the_server(home: Path) -> None:
    provider = local(home)
    request = body(provider, user("Tell me a long story."))
    with pytest.raises(ProviderError, match="SIGSEGV") as caught:
        async with aclosing(provider.stream(ModelRequest(request, NAME))) as reads:  # type: ignore[type-var]
            async for _ in reads:
                os.kill(server_of(provider).pid, signal.SIGSEGV)
    assert caught.value.retryable
    first = server_of(provider).pid
    _, _, ending = await answer(provider, body(provider, user("hi"), max_tokens=2))
    assert ending.error is None
    assert server_of(provider).pid != first
    await provider.close()


@needs_weights
async def test_the_server_dies_with_a_parent_that_is_killed(home: Path) -> None:
    script = """
import asyncio, sys
from pathlib import Path
from moot.config.settings import ProviderSettings
from moot.providers.endpoints.local import Local

async def main():
    provider = Local(ProviderSettings("local", home=Path(sys.argv[1])))
    server, _ = await provider._serving(sys.argv[2])
    print(server.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    parent = await spawn([sys.executable, "-c", script, str(home), NAME], stderr="null")
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    os.kill(parent.process.pid, signal.SIGKILL)
    assert await gone(pid)
    await parent.kill(0)


TEXTS = [
    "lorem ipsum dolor sit amet " * 900,
    "a1B2c3D4-" * 1500,
    "語は難しい。" * 900,
    '{"k": [1, 2, {"x": null}]}\n' * 500,
    "aeiouy" * 1200,
]


@needs_weights
async def test_the_sent_request_respects_the_limits_of_the_models_tokenizer(home: Path) -> None:
    provider = local(home)
    await answer(provider, body(provider, user("hi"), max_tokens=1))
    server = server_of(provider)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {server.key}"}) as session:

        async def count(messages: list[Any]) -> int:
            async with session.post(f"{server.url}/apply-template", json={"messages": messages}) as response:
                prompt = (await response.json())["prompt"]
            async with session.post(f"{server.url}/tokenize", json={"content": prompt, "parse_special": True}) as response:
                return len((await response.json())["tokens"])

        for text in TEXTS:
            called = {"type": "tool-read_file", "toolCallId": "1", "state": "output-available", "input": {"path": "a.txt"}, "output": text}
            conversation = [user(text), Message("a", "assistant", (text_part(text),)), user("a.txt?"), Message("b", "assistant", (called,))]
            sent = json.loads(body(provider, *conversation, system=text))
            assert sent["temperature"] == 0.0
            assert 0 < await count([message for message in sent["messages"] if message["role"] == "system"]) <= 500
            assert await count(sent["messages"]) <= 2500
    await provider.close()


async def test_missing_weights_are_reported_with_the_command_that_downloads_them(tmp_path: Path) -> None:
    provider = local(tmp_path)
    with pytest.raises(ProviderError) as caught:
        await anext(aiter(provider.stream(ModelRequest(b"{}", "qwen2.5-coder-0.5b"))))
    assert "491 MB" in caught.value.message
    assert "moot models pull qwen2.5-coder-0.5b" in caught.value.fix
    assert all(word in caught.value.fix for word in ("--yes-download", "Ollama", "API key", "demo"))
    assert [str(model.id) for model in await provider.models()] == ["qwen2.5-coder-0.5b@local"]
    with pytest.raises(UsageError):
        provider.describe("gpt-5")
    await provider.close()


async def test_every_answer_of_an_embedded_model_is_labelled_and_has_four_steps(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF")
    for model in [local(tmp_path).describe("qwen2.5-coder-0.5b"), *await local(tmp_path, path=str(file)).models()]:
        assert "check it" in model.note
        assert (model.tools, model.max_steps, model.context) == ("schema", 4, 8192)


async def test_a_file_that_is_not_a_model_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"no model at all")
    provider = local(tmp_path, path=str(file))
    with pytest.raises(ProviderError, match="can't run here"):
        await anext(aiter(provider.stream(ModelRequest(b"{}", "mine"))))
    with pytest.raises(UsageError, match="is not a file"):
        await local(tmp_path, path=str(tmp_path / "none.gguf")).models()


async def test_a_missing_system_library_is_reported(tmp_path: Path) -> None:
    package = tmp_path / "xllamacpp"
    package.mkdir()
    words = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise ImportError({words!r})")
    child = await spawn([sys.executable, "-P", str(PROGRAM)], env={**child_environment(), "PYTHONPATH": str(tmp_path)}, stdin="pipe")
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps({"log": str(tmp_path / "log")}).encode() + b"\n")
    said = json.loads(await child.stdout.readline())
    assert said == {"error": "import", "message": words}
    assert "apt-get install libgomp1" in import_failed(said["message"]).fix
    assert await child.wait() == 0
    await child.kill(0)


async def test_the_child_imports_nothing_of_moot(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text(
        "import sys\nraise ImportError(','.join(m for m in sys.modules if m.startswith('moot')) or 'none')"
    )
    orders = json.dumps({"log": str(tmp_path / "log")})
    shell = f"echo '{orders}' | {sys.executable} -P {PROGRAM}"
    said = await output(["/bin/sh", "-c", shell], env={**child_environment(), "PYTHONPATH": str(tmp_path)})
    assert json.loads(said.stdout)["message"] == "none"


@pytest.mark.parametrize(
    ("cpuinfo", "meminfo", "reason"),
    [
        ("flags\t\t: fpu sse2 fma f16c bmi2\n", "MemAvailable: 9000000 kB\n", "lacks avx2"),
        ("flags\t\t: avx2 fma f16c bmi2\n", "MemAvailable: 100000 kB\n", "97 MB are free"),
    ],
)
def test_an_unsupported_machine_is_reported_with_alternatives(tmp_path: Path, cpuinfo: str, meminfo: str, reason: str) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    (tmp_path / "meminfo").write_text(meminfo)
    with pytest.raises(ProviderError, match=reason) as caught:
        check_machine(500_000_000, tmp_path)
    assert "Ollama" in caught.value.fix
    (tmp_path / "cpuinfo").write_text("flags\t\t: avx2 fma f16c bmi2\n")
    (tmp_path / "meminfo").write_text("MemAvailable: 9000000 kB\n")
    check_machine(500_000_000, tmp_path)


def test_a_missing_system_library_is_detected_before_the_download() -> None:
    assert not _loads("libno-such-library-of-moot.so.9")
    assert "libgomp1" in import_failed("libgomp").fix
