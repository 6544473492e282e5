"""The Jupyter kernel as a real process, driven by Jupyter's own client."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from e2e.cli_process import MootProcess, make
from moot.formats.notebook.outputs import RECORD
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

SECONDS = 60
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    script = [
        Reply(when="write it", tool_calls=[ToolCall("shell", {"command": "echo hey > out.txt"})], times=1),
        Reply(when="write it", text="I am done.", times=1),
        Reply(when="deny it", tool_calls=[ToolCall("shell", {"command": "echo no > denied.txt"})], times=1),
        Reply(when="deny it", text="I did not.", times=1),
        Reply(when="later", tool_calls=[ToolCall("shell", {"command": "echo later > later.txt"})], times=1),
        Reply(when="later", text="Now it exists.", times=1),
        Reply(
            when="ask me",
            tool_calls=[
                ToolCall(
                    "ask_user",
                    {"questions": [{"header": "Tea", "question": "Which one?", "options": [{"label": "green"}, {"label": "black"}]}]},
                )
            ],
            times=1,
        ),
        Reply(when="ask me", text="Thank you.", times=1),
        Reply(when="hang", text="one two three four five six seven", reasoning="hm", hang_at=6, times=0),
        Reply(when="stop it", tool_calls=[ToolCall("shell", {"command": "echo no > stopped.txt"})], times=0),
        Reply(when="refuse", status=401, error="wrong key", times=0),
        Reply(when="markup", text="<img src=x onerror=alert(1)> ![p](http://x.example/?secret) `<b>`\n\n```html\n<i>\n```", times=0),
        Reply(when="attached", text="I see it.", times=0),
        Reply(text="Hello *there*.", times=0),
    ]
    with ScriptedProcess(script) as server:
        yield server


INTERRUPT = "(interrupt)"
"""Instead of typing an answer, the person interrupts the kernel."""


class Kernel:
    """A running kernel and a client."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client: BlockingKernelClient = manager.client()  # type: ignore[assignment]
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)
        self.outputs: list[dict[str, Any]] = []
        """The displayed outputs of the last cell, after their updates."""
        self.updates = 0
        self.asked: list[str] = []
        self.shown = queue.SimpleQueue[str]()

    def run(self, code: str, *, cell: str = "", answers: list[str] | None = None) -> dict[str, Any]:
        """Run a cell and return the reply. The person types `answers`; None = the frontend has no input field."""
        self.outputs, self.updates, self.asked = [], 0, []
        places: dict[str, int] = {}

        def output(message: Any) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind in ("display_data", "update_display_data"):
                id = content["transient"].get("display_id", "")
                self.updates += 1
                if kind == "update_display_data":
                    self.outputs[places[id]] = content["data"]
                else:
                    places[id] = len(self.outputs)
                    self.outputs.append(content["data"])
                self.shown.put(str(content["data"].get("text/plain")))
            elif kind == "error":
                self.outputs.append({"error": content["evalue"]})

        def stdin(message: Any) -> None:
            self.asked.append(message["content"]["prompt"])
            if (answer := (answers or []).pop(0)) == INTERRUPT:
                self.manager.interrupt_kernel()
            else:
                self.client.input(answer)

        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": answers is not None}
        message = self.client.session.msg("execute_request", {**content, "stop_on_error": True}, metadata={"cellId": cell} if cell else {})
        with pytest.MonkeyPatch.context() as patch:  # the client itself sends no id of the cell
            patch.setattr(
                self.client, "execute", lambda *_, **__: (self.client.shell_channel.send(message), message["header"]["msg_id"])[1]
            )
            asks = answers is not None
            reply: Any = self.client.execute_interactive(code, allow_stdin=asks, output_hook=output, stdin_hook=stdin, timeout=SECONDS)
        return reply["content"]

    def text(self) -> str:
        return "\n".join(str(one.get("text/plain", one.get("error"))) for one in self.outputs)

    def record(self) -> dict[str, Any]:
        return next(one[RECORD] for one in reversed(self.outputs) if RECORD in one)

    def conversation(self) -> str:
        return self.record()["conversation"]["id"]


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config())
    process.more |= {"JUPYTER_PATH": str(tmp_path / "jupyter/share/jupyter"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "run")}
    assert process.run("kernel", "install", "--prefix", str(tmp_path / "jupyter")).returncode == 0
    yield process
    process.close()


@contextmanager
def kernel(moot: MootProcess, notebook: Path | None = None) -> Iterator[Kernel]:
    environ = {**moot.environ, **({"JPY_SESSION_NAME": str(notebook)} if notebook is not None else {})}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", moot.more["JUPYTER_PATH"])
        patch.setenv("JUPYTER_RUNTIME_DIR", moot.more["JUPYTER_RUNTIME_DIR"])
        manager = KernelManager(kernel_name="moot", transport="ipc", ip=str(moot.home.parent / f"ipc{time.monotonic_ns()}"))
        manager.start_kernel(cwd=str(moot.work), env=environ)
        try:
            running = Kernel(manager)
            yield running
            running.client.stop_channels()
        finally:
            manager.shutdown_kernel(now=False)
            manager.cleanup_resources()


def shown(moot: MootProcess, conversation: str) -> list[tuple[str, str]]:
    """Return the role and text of each message of the branch that is shown."""
    document = json.loads(moot.run("chat", "show", conversation, "--json").stdout)
    return [(one["role"], "".join(part.get("text", "") for part in one["parts"] if part["type"] == "text")) for one in document["data"]]


def test_the_kernel_can_be_installed_listed_and_removed(moot: MootProcess, tmp_path: Path) -> None:
    [found] = json.loads(moot.run("kernel", "list", "--json").stdout)["data"]
    folder = Path(found["folder"])
    specification = json.loads((folder / "kernel.json").read_text())
    assert found["exists"] and specification["argv"][0] == found["python"] and specification["interrupt_mode"] == "message"
    assert (folder / "logo-svg.svg").read_text().startswith("<svg")
    (folder / "kernel.json").write_text(json.dumps({**specification, "argv": ["/gone/python"]}))
    assert b"missing; run: moot kernel install" in moot.run("kernel", "list").stdout
    assert moot.run("kernel", "uninstall", "--prefix", str(tmp_path / "jupyter")).returncode == 0 and not folder.exists()
    again = moot.run("kernel", "uninstall", "--prefix", str(tmp_path / "jupyter"))
    assert again.returncode == 2 and b"The kernel is not installed below" in again.stderr
    assert moot.run("kernel", "install", "--user", "--sys-prefix").returncode == 2


def test_a_notebook_is_executed_by_other_programs(moot: MootProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell fails with a plain text if it needs an approval, and the call can be approved in another program."""
    for name, value in moot.environ.items():
        monkeypatch.setenv(name, value)
    document = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "moot", "display_name": "moot", "language": "moot"}})
    document.cells = [nbformat.v4.new_code_cell(code) for code in ("hello", "%mode ask\nlater")]
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="this frontend can't ask for it"):
        nbclient.NotebookClient(document, timeout=SECONDS, kernel_name="moot", resources={"metadata": {"path": str(moot.work)}}).execute()
    nbformat.validate(document)
    [answer] = document.cells[0].outputs
    assert answer["data"]["text/markdown"] == "Hello *there*." and "Traceback" not in json.dumps(document)
    error = document.cells[1].outputs[-1]
    conversation = answer["data"][RECORD]["conversation"]["id"]
    assert error["ename"] == "NeedsApproval" and f"moot chat resume {conversation[:13]}" in error["evalue"]
    [asked] = json.loads(moot.run("approvals", "list", "--json").stdout)["data"]
    assert moot.run("approvals", "allow", asked["id"]).returncode == 0
    assert moot.run("chat", "resume", conversation).returncode == 0
    assert (moot.work / "later.txt").exists() and shown(moot, conversation)[-1] == ("assistant", "Now it exists.")


def test_answers_approvals_and_questions(moot: MootProcess) -> None:
    (moot.work / "notes.txt").write_text("some notes")
    with kernel(moot) as running:
        assert running.run("hello")["status"] == "ok"
        assert running.outputs[0]["text/markdown"] == "Hello *there*."
        conversation = running.conversation()
        assert running.run("%mode ask\nwrite it", answers=["what?", "y"])["status"] == "ok"
        assert len(running.asked) == 2 and running.asked[0].startswith("Allow? [y]es, once")
        assert (moot.work / "out.txt").read_text() == "hey\n"
        assert any("echo hey" in str(one.get("text/html")) and "done" in str(one.get("text/html")) for one in running.outputs)
        assert running.text().endswith("I am done.")
        running.run("deny it", answers=["no because I say so"])
        assert not (moot.work / "denied.txt").exists() and "I say so" in running.text()
        running.run("ask me", answers=["2"])
        assert running.asked == ["Answer (a number or text): "] and "black" in running.text() and running.text().endswith("Thank you.")
        running.run("attached @notes.txt")
        assert running.conversation() == conversation
        running.run("markup")
        markdown = running.outputs[-1]["text/markdown"]
        assert "\\<img src=x" in markdown and "\\![p]" in markdown and "`<b>`" in markdown and "\n<i>\n" in markdown
    assert [role for role, _ in shown(moot, conversation)] == ["user", "assistant"] * 6


def test_an_interrupt_stops_the_answer_or_the_question(moot: MootProcess, model: ScriptedProcess) -> None:
    with kernel(moot) as running:
        replies: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: replies.append(running.run("hang")))
        thread.start()
        while "one" not in running.shown.get(timeout=SECONDS):
            pass
        running.manager.interrupt_kernel()
        thread.join(SECONDS)
        assert replies[0]["ename"] == "Cancelled" and "one" in running.text() and running.record()["messages"][-1]["status"] == "cancelled"
        reply = running.run("%mode ask\nstop it", answers=[INTERRUPT])
        assert reply["ename"] == "Cancelled" and len(running.asked) == 1 and not (moot.work / "stopped.txt").exists()
        assert json.loads(moot.run("ps", "--json").stdout)["data"] == []
        assert running.run("hello")["status"] == "ok", "the kernel can be used after an interrupt"
    model.release()


@pytest.mark.slow
def test_a_killed_kernel_does_not_block_the_conversation(moot: MootProcess, model: ScriptedProcess) -> None:
    notebook = moot.work / "Killed.ipynb"
    save(notebook, "cell-0", [], later=-10)
    with kernel(moot, notebook) as running:
        running.run("hello")
        conversation = running.conversation()
        running.client.execute("hang")
        while len(shown(moot, conversation)) < 4 or "one" not in shown(moot, conversation)[-1][1]:
            pass
        running.manager.restart_kernel(now=True)
        running.client.wait_for_ready(timeout=SECONDS)
        assert running.run("hello again")["status"] == "ok" and running.conversation() == conversation
    model.release()
    assert [text for role, text in shown(moot, conversation) if role == "user"] == ["hello", "hang", "hello again"]


def test_running_a_cell_again_makes_a_branch(moot: MootProcess) -> None:
    with kernel(moot) as running:
        for number in (1, 2, 3):
            running.run(f"question {number}", cell=f"cell-{number}")
        conversation = running.conversation()
        running.run("question 2, again", cell="cell-2")
        assert running.conversation() == conversation
        assert [text for role, text in shown(moot, conversation) if role == "user"] == ["question 1", "question 2, again"]
        running.run("question 3", cell="cell-3")  # its first prompt is on the other branch
        assert [text for role, text in shown(moot, conversation) if role == "user"] == ["question 1", "question 2, again", "question 3"]


def save(notebook: Path, cell: str, outputs: list[dict[str, Any]], *, later: int = 0) -> None:
    """Save a notebook like JupyterLab does."""
    shows = [{"output_type": "display_data", "data": data, "metadata": {}} for data in outputs]
    cells = [{"cell_type": "code", "id": cell, "source": "hello", "metadata": {}, "execution_count": 1, "outputs": shows}]
    metadata = {"kernelspec": {"name": "moot", "display_name": "moot"}}
    notebook.write_text(json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}))
    os.utime(notebook, (time.time() + later, time.time() + later))


@pytest.mark.slow
def test_a_notebook_keeps_its_conversation(moot: MootProcess) -> None:
    notebook = moot.work / "Untitled.ipynb"
    save(notebook, "empty", [], later=-10)
    with kernel(moot, notebook) as running:
        running.run("hello", cell="cell-1")
        conversation, outputs = running.conversation(), running.outputs
        running.manager.restart_kernel(now=True)
        running.client.wait_for_ready(timeout=SECONDS)
        running.run("hello again", cell="cell-2")
        assert running.conversation() == conversation, "the notebook was not saved before the restart"
        running.run("hello", cell="cell-1")
        assert [text for role, text in shown(moot, conversation) if role == "user"] == ["hello"], "the cell is known after the restart"
        outputs = running.outputs
    save(notebook, "cell-1", [], later=10)
    with kernel(moot, notebook) as running:
        running.run("still here?")
        assert running.conversation() == conversation, "the outputs were cleared"
    renamed = moot.work / "Renamed.ipynb"
    save(renamed, "cell-1", outputs)
    notebook.unlink()
    with kernel(moot, renamed) as running:
        running.run("renamed")
        assert running.conversation() == conversation
    copy = moot.work / "Copy.ipynb"
    save(copy, "cell-1", outputs)
    with kernel(moot, copy) as running:
        running.run("copied", cell="cell-9")
        assert running.conversation() != conversation, "a copy continues in a copy of the conversation"
        assert [text for role, text in shown(moot, running.conversation()) if role == "user"] == ["hello", "copied"]
        running.run("hello once more", cell="cell-1")
        assert [text for role, text in shown(moot, running.conversation()) if role == "user"] == ["hello once more"]
    save(notebook, "cell-of-another-notebook", [], later=10)
    with kernel(moot, notebook) as running:
        running.run("hello")
        assert running.conversation() != conversation, "a new notebook has the name of an earlier one"


@pytest.mark.slow
def test_an_imported_notebook_continues_its_conversation(moot: MootProcess, model: ScriptedProcess, tmp_path: Path) -> None:
    notebook = moot.work / "Talk.ipynb"
    with kernel(moot) as running:
        running.run("hello", cell="cell-1")
        save(notebook, "cell-1", running.outputs)
    (tmp_path / "other").mkdir()
    other = make(tmp_path / "other", model.config())
    other.more |= moot.more
    with kernel(other, notebook) as running:
        running.run("alone")
        assert len(shown(other, running.conversation())) == 2, "the conversation is on another machine"
    other.close()
    (tmp_path / "third").mkdir()
    third = make(tmp_path / "third", model.config())
    third.more |= moot.more
    assert third.run("import", str(notebook)).returncode == 0
    with kernel(third, notebook) as running:
        running.run("and now?", cell="cell-2")
        conversation = running.conversation()
        assert [text for role, text in shown(third, conversation) if role == "user"] == ["hello", "and now?"]
        running.run("hello, edited", cell="cell-1")
        assert [text for role, text in shown(third, running.conversation()) if role == "user"] == ["hello, edited"]
    exported = json.loads(third.run("export", conversation, "-f", "ipynb").stdout)
    nbformat.validate(exported)
    assert exported["metadata"]["kernelspec"]["name"] == "moot" and [cell["cell_type"] for cell in exported["cells"]][-1] == "code"
    third.close()


def test_errors_are_plain_and_commands_work(moot: MootProcess, tmp_path: Path) -> None:
    with kernel(moot) as running:
        reply = running.run("refuse")
        assert reply["status"] == "error" and "wrong key" in reply["evalue"] and reply["traceback"] == [reply["evalue"]]
        assert "%help lists all commands" in running.run("%matplotlib inline")["evalue"]
        assert running.run("%model scripted@nowhere")["status"] == "error"
        running.run("%model scripted@mine\n%effort low\nhello")
        assert "Model set to scripted@mine" in running.text() and running.text().endswith("Hello *there*.")
        first = running.conversation()
        running.run("/new")
        running.run("hello")
        assert running.conversation() != first
        running.run(f"/continue {first}")
        running.run("hello")
        assert running.conversation() == first
        running.run("%mode", answers=["2"])
        assert running.asked and "Mode set to" in running.text()
        reply = running.run("/edit last")
        assert reply["payload"] == [{"source": "set_next_input", "text": "hello", "replace": False}]
        running.run("hello, edited")
        assert [text for role, text in shown(moot, first) if role == "user"][-1] == "hello, edited"
        running.run("%help")
        assert "Run a cell again" in running.text()
    (tmp_path / "none").mkdir()
    empty = make(tmp_path / "none")
    empty.more |= moot.more
    with kernel(empty) as running:
        reply = running.run("hello")
        assert reply["status"] == "error" and "moot" in reply["evalue"], reply


def test_completion_and_help(moot: MootProcess) -> None:
    (moot.work / "prices.csv").write_text("a")
    with kernel(moot) as running:

        def complete(code: str) -> list[str]:
            return running.client.complete(code, len(code), reply=True, timeout=SECONDS)["content"]["matches"]  # type: ignore[index,call-arg]

        assert complete("%mo") == ["%model", "%mode"] and "/model" in complete("/mod")
        assert complete("%model scr") == ["scripted@mine"] and "plan" in complete("%mode ")
        assert complete("%agent def") == ["default"] and complete("what is in @pri") == ["@prices.csv"]
        assert complete("some text") == [] and complete("%nonsense x") == []
        found = running.client.inspect("%mode plan", 3, reply=True, timeout=SECONDS)["content"]  # type: ignore[index,call-arg]
        assert found["found"] and found["data"]["text/plain"].startswith("/mode")
        assert found["metadata"] == {}


def test_other_commands_do_not_import_jupyter(moot: MootProcess) -> None:
    found = moot.run("kernel", "--help")
    assert found.returncode == 0 and b"install" in found.stdout
    check = "import sys, moot.cli.app, moot.cli.tree.root; sys.exit(any(name in sys.modules for name in ('ipykernel', 'zmq', 'IPython')))"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", check]) == 0
