from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.types.chunk import problems

Moot = Callable[..., Any]
DEMO = ("-m", "demo", "--no-tools")


def test_an_answer_goes_to_stdout_and_everything_else_to_stderr(moot: Moot) -> None:
    ended = moot("run", *DEMO, "hello there")
    assert ended.code == 0
    assert "You said: hello there" in ended.out
    assert ended.out.endswith("\n")
    assert "note: demo provider" in ended.err
    assert "note:" not in ended.out
    assert "\x1b" not in ended.out + ended.err


def test_stdin_is_appended_to_the_prompt(moot: Moot) -> None:
    assert "You said: look:\n\nfrom stdin" in moot("run", *DEMO, "look:", stdin=b"from stdin").out
    assert "You said: alone" in moot("run", *DEMO, stdin=b"alone").out
    ended = moot("run", *DEMO, stdin=b"caf\xe9 \xff")
    assert (ended.code, "caf\ufffd \ufffd" in ended.out) == (0, True)
    assert "stdin is not valid UTF-8 from byte 3 on" in ended.err


def test_words_after_two_dashes_are_not_options(moot: Moot) -> None:
    assert "You said: --help -c" in moot("run", *DEMO, "--", "--help -c").out
    assert "You said: what is --this?" in moot("run", "what", *DEMO, "is", "--", "--this?").out
    assert "You said: @file\n" in moot("run", *DEMO, "@file\n\0{x}[bold]").out.replace("\0", "")


def test_json_is_one_document_with_the_whole_result(moot: Moot) -> None:
    ended = moot("run", *DEMO, "--json", "hi")
    assert (ended.json["ok"], ended.json["status"], ended.json["model"], ended.json["error"]) == (True, "finished", "demo@demo", None)
    assert "You said: hi" in ended.json["text"]
    assert ended.json["note"].startswith("demo provider")


def test_jsonl_prints_every_event_in_order_and_the_result_last(moot: Moot) -> None:
    lines = [json.loads(line) for line in moot("run", *DEMO, "--jsonl", "hi").out.splitlines()]
    *events, last = lines
    assert last["kind"] == "result"
    seqs = [event["seq"] for event in events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert {"seq", "at", "run", "kind", "exchange", "chunks"} <= events[0].keys()
    assert "raw" not in events[0]
    text = "".join(chunk["delta"] for event in events for chunk in event["chunks"] if chunk["type"] == "text-delta")
    assert text == last["text"]


def test_ui_prints_chunks_for_clients(moot: Moot) -> None:
    chunks = [json.loads(line) for line in moot("run", *DEMO, "--ui", "hi").out.splitlines()]
    assert (chunks[0]["type"], chunks[-1]["type"]) == ("start", "finish")
    assert [problems(chunk, 6) for chunk in chunks if problems(chunk, 6)] == []


def test_files_are_attached_to_the_prompt(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("file text")
    assert "file text" in moot("run", *DEMO, "-f", "a.txt", "what?", "--json").json["text"] + moot("chat", "show", "1").out
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n....")
    moot("run", *DEMO, "-f", "p.png", "what?")
    part = moot("chat", "show", "1", "--json").json["data"][0]["parts"][0]
    assert (part["type"], part["mediaType"], part["filename"]) == ("file", "image/png", "p.png")
    assert part["url"].startswith(("data:image/png;base64,", "blob:"))


def test_attached_code_stays_a_file_that_models_read_as_text(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text("print('zebra')\n")
    moot("run", *DEMO, "-f", "b.py", "what?")
    file, prompt = moot("chat", "show", "1", "--json").json["data"][0]["parts"]
    assert (file["type"], file["mediaType"], file["filename"]) == ("file", "text/x-python", "b.py")
    assert file["providerMetadata"] == {"moot": {"path": "b.py", "size": 15}}
    assert prompt["text"] == "what?"
    shown = moot("chat", "show", "1").out
    assert "[b.py, text/x-python, 15 bytes]" in shown
    assert moot("search", "zebra", "--json").json["data"]


# ── conversations ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_is_continued_by_number_prefix_and_title(moot: Moot) -> None:
    moot("chat", "new", *DEMO, "first thing")
    moot("chat", "new", *DEMO, "second thing")
    listed = moot("chat", "list", "--json").json["data"]
    assert [item["title"] for item in listed] == ["second thing", "first thing"]
    assert listed[0].keys() >= {"id", "no", "title", "model", "status", "message_count", "updated_at"}
    first = listed[1]["id"]
    for reference in ("2", first, first[:16], "first thing"):
        assert moot("chat", "show", reference, "--json").json["conversation"]["id"] == first
    assert moot("chat", "continue", "2", "--no-tools", "--json", "more").json["conversation"] == first
    assert len(moot("chat", "show", "1", "--json").json["data"]) == 4
    assert moot("run", "--no-tools", "-c", "--json", "again").json["conversation"] == first
    assert moot("run", "--no-tools", "-c", "2", "--json", "again").json["conversation"] == listed[0]["id"]


def test_a_list_has_pages_and_columns(moot: Moot) -> None:
    for text in ("one", "two", "three"):
        moot("chat", "new", *DEMO, text)
    page = moot("chat", "list", "--limit", "2", "--json").json
    assert [item["title"] for item in page["data"]] == ["three", "two"]
    rest = moot("chat", "list", "--cursor", page["next_cursor"], "--json").json
    assert [item["title"] for item in rest["data"]] == ["one"]
    assert rest["next_cursor"] is None
    head, first, *_ = moot("chat", "list").out.splitlines()
    assert head.split() == ["NO", "ID", "MODEL", "AGE", "MESSAGES", "STATUS", "TITLE"]
    assert first.split()[0] == "1"
    assert moot("chat", "list", "--limit", "201").code == 2


def test_show_delete_stop_and_search(moot: Moot) -> None:
    moot("chat", "new", *DEMO, "a needle in the hay")
    shown = moot("chat", "show", "1")
    assert "── user" in shown.out
    assert "a needle in the hay" in shown.out
    found = moot("search", "needle", "--json").json
    assert {hit["role"] for hit in found["data"]} == {"user", "assistant"}
    assert found["index"]["done"] == found["index"]["total"]
    assert "needle" in moot("search", "needle").out
    assert moot("search", "nowhere").code == 0
    assert "no active run" in moot("chat", "stop", "1").err
    assert moot("chat", "resume", "1").code == 2
    id = moot("chat", "list", "--json").json["data"][0]["id"]
    assert moot("chat", "delete", "1").code == 0
    assert moot("chat", "list", "--json").json["data"] == []
    assert moot("chat", "restore", id[:13]).code == 0
    assert moot("chat", "list", "--json").json["data"][0]["id"] == id
    assert moot("chat", "restore", id).code == 2
    assert moot("chat", "delete", "1").code == 0
    assert moot("chat", "list", "--json").json["data"] == []


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

MINE = "models: {main: big@mine}\nproviders: {mine: {base_url: 'http://127.0.0.1:9/v1', models: {big: {}}}}\n"

BAD = [
    (["runn"], "", 2, "Did you mean 'run'?"),
    (["chat", "shew"], "", 2, "Did you mean 'show'?"),
    (["run", "--modell", "x", "hi"], "", 2, "Did you mean '--model'?"),
    (["run", "-m", "big@mien", "hi"], MINE, 2, "Did you mean 'mine'?"),
    (["run", "-m", "nope", "hi"], MINE, 2, "No available provider has a model 'nope'"),
    (["run", "-a", "reviewr", "hi"], MINE + "agents: {reviewer: {}}", 2, "Agent 'reviewr' not found"),
    (["run", "--tools=reed_file", "hi"], MINE, 2, "Did you mean 'read_file'?"),
    (["run", "--tools", "reed_file", "hi"], MINE, 2, "Did you mean 'read_file'?"),
    (["search", "hi", "-c", "7"], "", 2, "There is no conversation number 7"),
    (["search", " "], "", 2, "The query is empty"),
    (
        ["config", "check"],
        "models: {main: x@opena}",
        2,
        "config.yaml:1:16: models.main: Provider 'opena' not found. Did you mean 'openai'?",
    ),
    (["tools", "show", "reed_file"], "", 2, "Did you mean 'read_file'?"),
    (["providers", "test", "opena"], "", 2, "Did you mean 'openai'?"),
    (["models", "pull", "qwen"], "", 2, "Weights 'qwen' not found"),
    (["chat", "show", "no such thing"], "", 2, "no such thing"),
    (["chat", "show", "7"], "", 2, "There is no conversation number 7"),
    (["run", "-c", "hi"], MINE, 2, "No conversation in"),
    (["run", "-m", "claude-sonnet-4-5@anthropic", "hi"], "", 2, "ANTHROPIC_API_KEY"),
    (["run", "hi"], "mdels: {}", 2, "config.yaml:1:1: Unknown key 'mdels'. Did you mean 'models'?"),
    (["run", "hi"], "models: {main: x", 2, "config.yaml:1:"),
    (["run", "hi"], "providers: {openai: {api_key: '${NOT_SET_X}'}}", 2, "'NOT_SET_X' is not set"),
    (["run"], MINE, 2, "No prompt given"),
    (["run", "-f", "gone.txt", "hi"], MINE, 2, "Cannot read 'gone.txt'"),
    (["run", "-f", ".", "hi"], MINE, 2, "Cannot read '.'"),
    (["run", "-f", "binary", "hi"], MINE, 2, "it is not text, an image"),
    (["run", "--json", "--ui", "hi"], MINE, 2, "cannot be used together"),
    (["run", "--tools=shell", "--no-tools", "hi"], MINE, 2, "cannot be used together"),
    (["run", "--timeout", "soon", "hi"], MINE, 2, "90s"),
    (["run", "--max-cost=-1", "hi"], MINE, 2, "--max-cost"),
    (["run", "--max-steps", "0", "hi"], MINE, 2, "--max-steps"),
    (["run", "--mode", "plam", "hi"], MINE, 2, "Did you mean 'plan'?"),
    (["run", "--schema", "binary", "hi"], MINE, 2, "is not a JSON Schema"),
    (["chat", "list", "--cursor", "invalid"], "", 2, "cursor"),
]


@pytest.mark.parametrize(("arguments", "config", "code", "words"), BAD, ids=[" ".join(row[0]) for row in BAD])
def test_bad_input_is_reported_with_its_exit_code(
    moot: Moot, home: Path, tmp_path: Path, arguments: list[str], config: str, code: int, words: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    (home / "config.yaml").write_text(config)
    ended = moot(*arguments)
    assert words in ended.err
    assert ended.code == code
    assert bool(ended.out) == ("--json" in arguments)
    assert "Traceback" not in ended.err


def test_errors_are_json_documents_with_json(moot: Moot) -> None:
    ended = moot("run", "--json", "-m", "x@nope", "hi")
    assert ended.code == 2
    assert ended.json["ok"] is False
    assert ended.json["error"].keys() == {"code", "message", "fix", "retryable"}
    assert ended.json["error"]["code"] == "usage"


def test_a_corrupt_database_is_reported_and_the_doctor_still_runs(moot: Moot, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert moot("doctor", "--json").json["ok"] is True
    moot("chat", "list")
    (state,) = [row["state"] for row in moot("doctor", "--json").json["data"] if row["name"] == "database"]
    assert state == "ok"
    database = home / "data" / "moot.db"
    sound = database.read_bytes()
    database.write_bytes(b"rubbish" * 1000)
    ended = moot("chat", "list")
    assert (ended.code, "not a valid moot database" in ended.err, "Traceback" in ended.err) == (1, True, False)
    sick = moot("doctor", "--json")
    assert (sick.code, sick.json["ok"]) == (1, False)
    database.write_bytes(sound)
    for path in database.parent.glob("moot.db-*"):
        path.unlink()
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version = 9999")
    connection.close()
    newer = moot("chat", "list")
    assert (newer.code, "newer" in newer.err) == (2, True)
    assert moot("doctor").code == 1
    (home.parent / "file").touch()
    monkeypatch.setenv("MOOT_HOME", str(home.parent / "file"))
    assert (moot("chat", "list").code, moot("doctor").code) == (2, 1)


def test_setting_a_model_of_an_unknown_provider_warns_but_succeeds(moot: Moot) -> None:
    ended = moot("config", "set", "models.main", "x@opena")
    assert ended.code == 0
    assert "models.main: Provider 'opena' not found. Did you mean 'openai'?" in ended.err
    assert "not found" not in moot("config", "set", "limits.steps", "9").err


def test_lists_mappings_and_quoted_text_are_set_as_in_yaml(moot: Moot, home: Path) -> None:
    for key, value, stored in (
        ("agents.a.tools", "[read_file, shell]", ["read_file", "shell"]),
        ("agents.a.reasoning", "{effort: low}", {"effort": "low", "show": True}),
        ("agents.a.description", "'[draft] agent'", "[draft] agent"),
        ("models.fallback", '["a@groq"]', ["a@groq"]),
    ):
        assert moot("config", "set", key, value).code == 0
        assert moot("config", "get", key, "--json").json["value"] == stored
    before = (home / "config.yaml").read_text()
    refused = moot("config", "set", "agents.a.tools", "[read_file")
    assert (refused.code, (home / "config.yaml").read_text()) == (2, before)


def test_the_settings_of_a_conversation_are_shown_and_changed(moot: Moot) -> None:
    moot("run", *DEMO, "hi")
    changed = moot("chat", "settings", "1", "mode=plan", "tools=[read_file]", "--json")
    assert changed.json["settings"] == {"mode": "plan", "tools": ["read_file"], "model": "demo"}
    assert "effort: not set" in moot("chat", "settings", "1", "tools=").out
    assert moot("chat", "settings", "1", "--json").json["settings"] == {"mode": "plan", "model": "demo"}
    for wrong in ("mode=nonsense", "colour=red", "mode", "tools=[nothing]"):
        assert moot("chat", "settings", "1", wrong).code == 2


def test_the_configuration_is_shown_with_its_layers_and_without_secrets(
    moot: Moot, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (home / "config.yaml").write_text(
        "models: {main: a@groq}\nproviders: {openai: {api_key: key-canary-0001}}\nagents: {x: {options: {a: b}}}\n"
    )
    (tmp_path / ".moot").mkdir()
    (tmp_path / ".moot" / "config.yaml").write_text("models: {main: evil@x}")
    monkeypatch.setenv("MOOT_SERVER__PORT", "4748")
    shown = moot("config", "show", "--origin")
    assert f'models.main: "a@groq"  (user {home / "config.yaml"}:1:16)' in shown.out
    assert "server.port: 4748  (environment MOOT_SERVER__PORT)" in shown.out
    assert "limits.steps: 50  (default)" in shown.out
    assert "canary" not in shown.out
    assert "is not trusted" in shown.err
    assert shown.err.count("agents.x.options: This key has no effect") == 1
    value = moot("config", "show", "--json")
    assert "canary" not in value.out
    assert (value.json["config"]["server"]["port"], value.json["generation"], value.json["error"]) == (4748, 1, None)
    checked = moot("config", "check")
    assert (checked.code, f"{home / 'config.yaml'}:3:14: agents.x.options: This key has no effect" in checked.err) == (2, True)
    (home / "config.yaml").write_text("models: {main: a@groq}")
    assert moot("config", "check").code == 0
    (home / "config.yaml").write_text("models: {mian: x}")
    assert moot("config", "check").code == 2


def test_tools_models_providers_and_version_are_listed(moot: Moot) -> None:
    tools = moot("tools", "list", "--json").json["data"]
    assert {"read_file", "shell"} <= {tool["name"] for tool in tools}
    assert moot("tools", "show", "read_file", "--json").json["schema"]["type"] == "object"
    assert "read_file" in moot("tools", "list").out
    providers = {row["name"]: row["state"] for row in moot("providers", "list", "--json").json["data"]}
    assert (providers["openai"], providers["demo"]) == ("needs a key", "available")
    runs = {row["name"]: row["state"] for row in moot("doctor", "--json").json["data"]}["embedded model"] == "ok"
    assert providers["local"] == ("available" if runs else "can't run here")
    assert moot("providers", "test", "demo").code == 0
    assert moot("models", "list", "local", "--json").json["data"][0]["provider"] == "local"
    assert "moot 0" in moot("version").out
    assert "version" in moot("version", "--json").json


def test_an_agent_with_an_unknown_model_is_refused_like_a_run(moot: Moot, home: Path) -> None:
    (home / "config.yaml").write_text(MINE)
    for model in ("nosuch", "nosuch@demmo"):
        refused = moot("agents", "add", "mine", "--model", model)
        assert (refused.code, refused.err) == (2, moot("run", "-m", model, "hi").err)
    assert "mine:" not in (home / "config.yaml").read_text().partition("agents")[2]
    for name, model in (("silent", "big@mine"), ("keyless", "claude-sonnet-4-5@anthropic"), ("typed", "small"), ("named", "demo@demo")):
        assert (moot("agents", "add", name, "-m", model).code, model) == (0, model)
    assert moot("agents", "add", "outside", "-m", "nosuch", "--type", "acp:outside", "--", "cat").code == 0


def test_a_token_name_in_use_is_refused(moot: Moot) -> None:
    assert moot("tokens", "create", "laptop").code == 0
    refused = moot("tokens", "create", "laptop", "--user", "mara")
    assert (refused.code, refused.out) == (2, "")
    assert "An active token named 'laptop' already exists." in refused.err and "moot tokens revoke laptop" in refused.err
    assert moot("tokens", "revoke", "laptop").code == moot("tokens", "create", "laptop").code == 0


def test_a_deleted_conversation_is_shown_with_a_notice(moot: Moot) -> None:
    moot("chat", "new", *DEMO, "kept words")
    id = moot("chat", "list", "--json").json["data"][0]["id"]
    assert "deleted" not in moot("chat", "show", id).err
    moot("chat", "delete", id)
    for options in ((), ("--json",), ("--raw",), ("--at", "1"), ("--at", "1", "--json")):
        shown = moot("chat", "show", id, *options)
        assert f"moot: this conversation is deleted; restore it with: moot chat restore {id[:13]}" in shown.err
        assert (shown.code, bool(shown.out), "deleted; restore" in shown.out) == (0, True, False)


def test_a_time_is_a_date_or_a_duration(moot: Moot) -> None:
    moot("chat", "new", *DEMO, "a recent prompt")
    assert "purged: 1 conversation" in moot("purge", "--before", "2100-01-31", "--dry-run").out
    assert moot("purge", "--before", "12h", "--dry-run").err == "moot: nothing to do\n"
    for wrong in ("soon", ""):
        assert "for '--before': expected a date such as 2026-01-31, or a duration" in moot("purge", "--before", wrong).err


def test_weights_are_not_downloaded_without_consent(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "w.gguf").write_bytes(b"x")
    ended = moot("models", "pull", "smollm2-135m", "--from", "w.gguf")
    assert "Model SmolLM2-135M-Instruct, Q4_1: 98 MB, a copy that moot checks to be identical to the publisher's file." in ended.err
    assert "License" not in ended.err
    ended = moot("models", "pull", "smollm2-135m", "--from", "w.gguf", "--verbose")
    assert ended.code == 2
    assert "moot models pull smollm2-135m --from w.gguf --yes-download" in ended.err
    for words in ("Model SmolLM2", "98 MB", "License: Apache-2.0", "Source: "):
        assert words in ended.err


def test_a_missing_weights_file_is_reported_before_the_offer(moot: Moot) -> None:
    ended = moot("models", "pull", "smollm2-135m", "--from", "gone.gguf", "--yes-download")
    assert (ended.code, "Cannot read 'gone.gguf': No such file" in ended.err, " MB" in ended.err) == (2, True, False)


def test_weights_that_cannot_run_are_not_offered(moot: Moot, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    ended = moot("run", "--yes-download", "-m", "smollm2-135m@local", "hi")
    assert (ended.code, ended.out) == (5, "")
    assert "the package xllamacpp is not installed" in ended.err
    assert " MB," not in ended.err
    assert not (home / "data" / "models").exists()
    (said,) = [row["detail"] for row in moot("doctor", "--json").json["data"] if row["name"] == "providers"]
    assert said.endswith("always available: demo")


def test_a_local_server_that_does_not_listen_is_listed_as_not_running(moot: Moot, home: Path) -> None:
    (home / "config.yaml").write_text("providers: {ollama: {base_url: 'http://127.0.0.1:9'}}")
    providers = {row["name"]: row["state"] for row in moot("providers", "list", "--json").json["data"]}
    assert (providers["ollama"], providers["demo"]) == ("not running", "available")
    assert "not running" in moot("providers", "list").out


def test_every_command_has_help_with_an_example(moot: Moot) -> None:
    commands = [
        "run",
        "chat new",
        "chat continue",
        "chat list",
        "chat show",
        "chat resume",
        "chat stop",
        "chat delete",
        "chat restore",
        "search",
    ]
    commands += ["models list", "models pull", "models test", "providers list", "providers test", "tools list", "tools show"]
    commands += ["config show", "config check", "doctor", "version", ""]
    for command in commands:
        ended = moot(*command.split(), "--help")
        assert (command, ended.code, "Examples:" in ended.out, f"moot {command}".strip() in ended.out) == (command, 0, True, True)


def test_embedded_models_are_listed_with_size_and_memory_before_their_download(moot: Moot) -> None:
    found = {model["name"]: model for model in moot("models", "list", "local", "--json").json["embedded"]}
    assert found["smollm2-135m"]["size"] == 98_362_432 < found["smollm2-135m"]["memory"]
    assert found["qwen3-4b"]["license"] == "Apache-2.0" and not found["qwen3-4b"]["installed"]
    table = moot("models", "list", "local").out
    assert "moot models pull NAME" in table and "qwen3-4b" in table and "2.5 GB" in table
    assert moot("models", "list", "demo", "--json").json["embedded"] == []


def test_a_deleted_working_directory_is_reported(moot: Moot, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    ended = moot("run", *DEMO, "hi")
    assert (ended.code, "no longer exists" in ended.err) == (2, True)


def test_trusting_a_project_shows_the_commands_of_its_hooks(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / ".moot").mkdir()
    (tmp_path / ".moot" / "config.yaml").write_text('hooks: {Stop: [{hooks: [{command: "sh x.sh \\e[2J"}]}]}')
    shown = moot("trust")
    assert (
        "the project's hooks run outside the sandbox, with your permissions" in shown.err
        and "  Stop: sh x.sh " in shown.err
        and "\x1b" not in shown.err
    )
    assert "hooks" not in moot("trust", "--json").out


def test_a_project_is_trusted_listed_and_revoked(moot: Moot, tmp_path: Path) -> None:
    file = tmp_path / ".moot" / "config.yaml"
    assert moot("trust").code == 2
    file.parent.mkdir()
    file.write_text("limits: {stepz: 1}")
    assert (moot("trust").code, moot("trust", "--list").out) == (2, "")
    file.write_text("limits: {steps: 7}")
    assert "moot trust" in moot("config", "show").err
    assert moot("trust", "--json").json == {"file": str(file), "files": [str(file)], "trusted": True}
    assert (moot("trust", "--list").out.strip(), moot("config", "get", "limits.steps").out.strip()) == (str(file), "7")
    assert (moot("trust", "--revoke").code, moot("trust", "--revoke").code) == (0, 2)
    assert moot("config", "get", "limits.steps").out.strip() == "50"


def test_trust_warns_of_hidden_characters(moot: Moot, tmp_path: Path) -> None:
    file = tmp_path / ".moot" / "agents" / "mine.md"
    file.parent.mkdir(parents=True)
    file.write_text("Be kind.\u200b\U000e0041")
    ended = moot("trust")
    assert ended.code == 0 and "contains 2 hidden characters (U+200B, U+E0041) on line 1" in ended.err


def test_an_invalid_agent_file_can_be_removed_although_nothing_else_works(moot: Moot, tmp_path: Path) -> None:
    moot("agents", "new", "good", "--instructions", "Be kind.")
    good = Path(moot("agents", "show", "good", "--json").json["origin"])
    bad = good.with_name("bad.md")
    bad.write_text("---\nrole: owner\n---\nx")
    for arguments in (("agents", "list"), ("agents", "remove", "good"), ("agents", "edit", "bad", "--model", "small")):
        ended = moot(*arguments)
        assert ended.code == 2 and "bad.md:2:7" in ended.err
    assert moot("agents", "remove", "bad", "--json").json["removed"] is True
    assert not bad.exists() and moot("agents", "list").code == 0
