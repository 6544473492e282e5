"""Notebooks as conversations, in and out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from conformance.format_content import again
from moot.errors import UsageError
from moot.formats.notebook.format import Ipynb
from moot.formats.notebook.outputs import RECORD, outputs_of, record_of, safe_markdown
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, WholeConversation
from moot.types.message import Message, Part, text_of, text_part

CALL: Part = {
    "type": "tool-shell",
    "toolCallId": "c1",
    "state": "output-available",
    "input": {"command": "echo '<script>'"},
    "output": "<script>alert(1)</script>",
}
THOUGHT: Part = {"type": "reasoning", "text": "hm <b>", "state": "done", "providerMetadata": {"mine": {"signature": "c2ln"}}}
TALK = [
    Message("u1", "user", (text_part("first"),), created_at=1, client_id="cell:one:x"),
    Message("a1", "assistant", (THOUGHT, CALL, text_part("Answer *one*.")), {"model": "m"}, parent="u1", created_at=2),
    Message("u2", "user", (text_part("second"),), parent="a1", created_at=3),
    Message("a2", "assistant", (text_part("Answer two."),), {"model": "m"}, parent="u2", created_at=4),
]
CONVERSATION = Conversation("conversation-1", title="A talk", created_at=1)
PLOT = {"output_type": "display_data", "data": {"image/png": "AAAA", "application/x-unknown+json": {"a": [1]}}, "metadata": {"x": {"y": 1}}}


def kernel_notebook() -> dict[str, Any]:
    """A notebook that was used with the kernel, with everything that other programs may have added."""

    def shown(at: int) -> list[dict[str, Any]]:
        bundles: list[Any] = outputs_of(TALK[at + 1].parts)
        bundles[-1] = {**bundles[-1], RECORD: record_of(CONVERSATION, TALK[at : at + 2])}
        return [{"output_type": "display_data", "data": bundle, "metadata": {}} for bundle in bundles]

    def code(id: str, source: Any, outputs: list[Any], **metadata: Any) -> dict[str, Any]:
        return {"cell_type": "code", "id": id, "metadata": metadata, "execution_count": 1, "source": source, "outputs": outputs}

    return {
        "cells": [
            {
                "cell_type": "markdown",
                "id": "note",
                "metadata": {"tags": ["intro"]},
                "source": ["# My notes\n", "read me"],
                "attachments": {},
            },
            code("one", ["fir", "st"], [*shown(0), PLOT], collapsed=True, vendor={"unknown": [1, {"deep": None}]}),
            code("settings", "%mode plan", [{"output_type": "stream", "name": "stdout", "text": ["set"]}]),
            code("two", "second", shown(2)),
            {"cell_type": "raw", "id": "end", "metadata": {"format": "text/x-rst"}, "source": "the end"},
        ],
        "metadata": {"kernelspec": {"name": "moot", "display_name": "moot", "language": "moot"}, "vendor": {"theme": "dark"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def read(path: Path, document: Any) -> WholeConversation:
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document, sort_keys=True, indent=1).encode())
    assert Ipynb().sniff(path, path.read_bytes()[: 1 << 16])
    [found] = [one.whole() for one in Ipynb().read(path)]
    return found


def without_ours(document: Any) -> Any:
    """Return the notebook without moot's own metadata and records."""
    for cell in document["cells"]:
        cell["metadata"].pop("moot", None)
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(RECORD, None)
    document["metadata"].pop("moot", None)
    return document


def test_a_notebook_of_the_kernel_comes_back_with_nothing_lost(tmp_path: Path) -> None:
    original = kernel_notebook()
    path = tmp_path / "talk.ipynb"
    for _ in range(3):  # the file that was written is imported again
        found = read(path, original if not path.exists() else path.read_bytes())
        assert found.conversation.source_id == "conversation-1" and found.facts.title == "A talk"
        assert [(one.role, list(one.parts), one.parent) for one in found.messages] == [
            (one.role, list(one.parts), one.parent) for one in TALK
        ]
        written = Ipynb().write(again([found]))
        assert not written.fidelity.lost and not written.fidelity.approximated
        path.write_bytes(written.data)
        nbformat.validate(json.loads(written.data))
        assert without_ours(json.loads(written.data)) == without_ours(kernel_notebook())


def test_the_shown_branch_ends_with_the_latest_answer(tmp_path: Path) -> None:
    document = kernel_notebook()
    edited = [
        Message("u1b", "user", (text_part("first, edited"),), created_at=8),
        Message("a1b", "assistant", (text_part("Another answer."),), parent="u1b", created_at=9),
    ]
    document["cells"][1]["outputs"][2]["data"][RECORD] = record_of(CONVERSATION, edited)
    found = read(tmp_path / "a.ipynb", document)
    assert found.facts.head == "a1b"
    back = json.loads(Ipynb().write(again([found])).data)
    assert without_ours(back) == without_ours(document), "cells of the other branch are kept"


def test_a_prompt_whose_record_was_removed_is_still_a_prompt(tmp_path: Path) -> None:
    document = without_ours(kernel_notebook())
    found = read(tmp_path / "a.ipynb", document)
    assert [(one.role, text_of(one.parts)) for one in found.messages][::2] == [("user", "first"), ("user", "second")]
    assert "Answer two." in text_of(found.messages[-1].parts)
    back = json.loads(Ipynb().write(again([found])).data)
    assert without_ours(back) == without_ours(kernel_notebook())


def test_a_python_notebook_keeps_cells_that_were_run_and_added(tmp_path: Path) -> None:
    answer = Message("a1", "assistant", (text_part("Run this:\n\n```python\nprint(1)\n```\n\nDone."),), parent="u1", created_at=2)
    exported = ExportedConversation(CONVERSATION, (Message("u1", "user", (text_part("print"),), created_at=1), answer))
    document = json.loads(Ipynb().write(exported).data)
    nbformat.validate(document)
    assert document["metadata"]["kernelspec"]["name"] == "python3"
    unchanged = read(tmp_path / "a.ipynb", document)
    assert not any("notebook" in one.metadata for one in unchanged.messages)
    assert unchanged.messages[1].parts == answer.parts
    named = read(tmp_path / "c.ipynb", {**document, "metadata": {**document["metadata"], "vendor": 1}})
    assert json.loads(Ipynb().write(again([named])).data)["metadata"]["vendor"] == 1
    code = next(cell for cell in document["cells"] if cell["cell_type"] == "code")
    code |= {"execution_count": 3, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]}
    document["cells"].append({"cell_type": "markdown", "id": "mine", "metadata": {"a": 1}, "source": "my own words"})
    document["metadata"]["vendor"] = 1
    back = json.loads(Ipynb().write(again([read(tmp_path / "b.ipynb", document)])).data)
    assert without_ours(back) == without_ours(document)


def test_notebooks_of_other_kernels_are_refused(tmp_path: Path) -> None:
    document = {**kernel_notebook(), "metadata": {"kernelspec": {"name": "python3"}}}
    document["cells"] = [{"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "outputs": [], "execution_count": None}]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(document))
    assert not Ipynb().sniff(path, path.read_bytes())
    with pytest.raises(UsageError, match="is not a notebook of moot"):
        list(Ipynb().read(path))


def test_a_large_notebook_is_recognized_by_its_end(tmp_path: Path) -> None:
    document = kernel_notebook()
    document["cells"] = [{"cell_type": "markdown", "id": "long", "metadata": {}, "source": "x" * 100_000}]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(document))
    assert Ipynb().sniff(path, path.read_bytes()[: 1 << 16])


def test_outputs_escape_what_the_model_and_its_tools_wrote() -> None:
    thought, call, said = outputs_of([THOUGHT, CALL, text_part("<img src=x onerror=y>")])
    assert "<script>" not in str(call["text/html"]) and "&lt;script&gt;" in str(call["text/html"])
    assert "<b>" not in str(thought["text/html"]) and str(call["text/plain"]).startswith("shell: echo")
    assert said["text/markdown"] == "\\<img src=x onerror=y>"


@pytest.mark.parametrize(
    ("source", "safe"),
    [
        ("a < b and 1<2", "a < b and 1<2"),
        ("`<b>` <b>", "`<b>` \\<b>"),
        ("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n\\<b>"),
        ("    <b>\n\ntext <!-- no -->", "    <b>\n\ntext \\<!-- no -->"),
        ("![x](http://a.example/?q)", "\\![x](http://a.example/?q)"),
        ("<https://a.example>", "<https://a.example>"),
    ],
)
def test_html_and_pictures_are_text_outside_of_code(source: str, safe: str) -> None:
    assert safe_markdown(source) == safe
