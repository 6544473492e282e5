from __future__ import annotations

import json
from pathlib import Path

from e2e.cli_process import make
from format_samples.apps import tai_database as sample

CONFIG = """
providers: {openai: {apiKey: sk-abcdefghijklmnopqrstuvwx123456, defaultModel: gpt-4o}}
agents: {reader: {instructions: "\\e[31mRead\\e[0m", tools: [read, "gm\\e[2Jail"]}}
cron: {jobs: [{name: nightly, schedule: "0 3 * * *", prompt: tidy}]}
permissions: {tools: {exec: {mode: auto}}}
"""


def test_configuration_is_shown_and_written_but_never_applied(tmp_path: Path, cache: Path) -> None:
    moot = make(tmp_path, cache)
    tai = moot.work / "tai"
    tai.mkdir()
    (tai / "agent.db").write_bytes(sample())
    (tai / "config.yaml").write_text(CONFIG)
    live = (moot.home / "config.yaml").read_text()
    shown = moot.run("import", str(tai), "--dry-run", "--json")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)["configuration"]
    assert told["pieces"]["agents"]["reader"]["tools"] == ["read_file"] and "nightly" in json.dumps(told["unsupported"])
    written = moot.run("import", str(tai), "--configuration", "found.yaml")
    assert written.returncode == 0, written.stderr
    assert b"\x1b[2J" not in written.stderr and b"found.yaml" in written.stderr
    file = moot.work / "found.yaml"
    assert "nightly" in file.read_text() and "sk-abcdef" not in file.read_text() and file.stat().st_mode & 0o077 == 0
    assert (moot.home / "config.yaml").read_text() == live
    assert b"reader" not in moot.run("agents", "list", "--json").stdout
    again = moot.run("import", str(tai), "--configuration", "found.yaml")
    assert again.returncode == 2 and b"already exists" in again.stderr
    onto = moot.run("import", str(tai), "--configuration", str(moot.home / "config.yaml"))
    assert onto.returncode == 2 and (moot.home / "config.yaml").read_text() == live
