"""A scripted endpoint in a separate process, for tests of the command line without an event loop.

with ScriptedProcess([Reply(text="Hello.")]) as server:
    (home / "config.yaml").write_text(server.config())
    subprocess.run(["moot", "run", "hi"], env={"MOOT_HOME": str(home), ...})
    assert server.requests()[0]["body"]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from moot.testing.script import Reply, replies_to_json

_SECONDS = 20.0
_TO_ITSELF = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ScriptedProcess:
    """A context manager that runs `python -m moot.testing.scripted`."""

    def __init__(self, script: Sequence[Reply] = (), *, obey: bool = False, models: Sequence[str] = ("scripted",)) -> None:
        """Without a script, every answer is `Hello.`"""
        self.url = ""
        self.models = tuple(models)
        self._script = list(script) or [Reply(text="Hello.", times=0)]
        self._obey = obey
        self._process: subprocess.Popen[str] | None = None

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "script.json")
            script.write_text(replies_to_json(self._script))
            command = [sys.executable, "-m", "moot.testing.scripted", "--script", str(script), "--models", ",".join(self.models)]
            self._process = subprocess.Popen([*command, *(["--obey"] if self._obey else [])], stdout=subprocess.PIPE, text=True)
            self.url = cast("Any", self._process.stdout).readline().strip()
        if not self.url:
            self._stop()
            raise RuntimeError("The scripted endpoint did not start. See its stderr.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def config(self, *, dialect: str = "openai-chat", name: str = "mine") -> str:
        """Return a `config.yaml` whose main model is this server's first one."""
        base_url = self.openai_url if dialect.startswith("openai-") else self.url
        models = ", ".join(f"{json.dumps(model)}: {{context: 100000}}" for model in self.models)
        entry = f"{{dialect: {dialect}, base_url: {json.dumps(base_url)}, api_key: scripted-key, models: {{{models}}}}}"
        return f"models: {{main: {json.dumps(f'{self.models[0]}@{name}')}}}\nproviders:\n  {name}: {entry}\n"

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests received so far: path, headers, body (text), at, status, sent, hung_up, done."""
        with _TO_ITSELF.open(f"{self.url}/_requests", timeout=_SECONDS) as answer:
            return cast("list[dict[str, Any]]", json.load(answer))

    def release(self) -> None:
        """Let all requests received so far be answered, whether their responses already hang or would hang later."""
        with _TO_ITSELF.open(urllib.request.Request(f"{self.url}/_release", method="POST"), timeout=_SECONDS):
            return

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
