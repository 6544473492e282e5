from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moot.config.changes import set_value
from moot.config.document import parse
from moot.config.home import write_atomically
from moot.config.tree import Place, plain
from moot.errors import ConfigError

FILE = """\
# mine
models:     # who answers
    main: "a@b"   # the best
    fallback:
        - x@y    # second

# whom to call
providers:
    openai: {api_key: "${KEY:-none}"}
"""


def test_setting_a_value_keeps_comments_order_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    set_value(path, "models.main", "new@b", {})
    set_value(path, "models.small", "s@b", {})
    set_value(path, "limits.steps", 7, {})
    expected = FILE.replace('main: "a@b"', 'main: "new@b"').replace("    fallback:", "    small: s@b\n    fallback:")
    text = path.read_text()
    assert text.replace("new@b", "a@b").startswith(FILE.splitlines()[0])
    for line in expected.splitlines():
        assert "".join(line.split()).replace('"', "") in "".join(text.split()).replace('"', "")
    assert plain(parse(text, Place("user", str(path))))["limits"] == {"steps": 7}  # type: ignore[index]


def test_a_new_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "home" / "config.yaml"
    set_value(path, "models.main", "a@b", {})
    assert path.read_text() == "models:\n  main: a@b\n"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("key", "value"), [("models.mian", "x"), ("server.port", "x"), ("providers.antropic.api_key", "x")])
def test_an_invalid_value_is_rejected_and_nothing_is_written(tmp_path: Path, key: str, value: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    with pytest.raises(ConfigError):
        set_value(path, key, value, {})
    assert path.read_text() == FILE
    assert {item.name for item in tmp_path.iterdir()} == {"config.yaml", ".config.yaml.lock"}


def test_a_failed_write_keeps_the_old_file_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    folder = tmp_path / "config.yaml"
    folder.mkdir()
    (folder / "inside").touch()
    with pytest.raises(ConfigError, match="Cannot write the file"):
        write_atomically(folder, b"x")
    assert [item.name for item in tmp_path.iterdir()] == ["config.yaml"]


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("models: {main: a@b}\n")
    (tmp_path / "config.yaml").symlink_to(tmp_path / "real.yaml")
    set_value(tmp_path / "config.yaml", "models.main", "c@d", {})
    assert (tmp_path / "config.yaml").is_symlink()
    assert "c@d" in (tmp_path / "real.yaml").read_text()


SETTER = """
import os, sys
from pathlib import Path
from moot.config.changes import add_rules
from moot.config.changes import set_value
path, which = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(15):
    if which == "rules":
        add_rules(path, [{"tool": "shell", "match": f"ls {number}", "action": "allow"}], {})
    else:
        set_value(path, f"agents.{which}{number}.description", "demo", {})
"""


@pytest.mark.slow
def test_concurrent_writers_lose_no_changes(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("# mine\n")
    writers = [
        subprocess.Popen([sys.executable, "-c", SETTER, str(path), which], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for which in ("a", "b", "rules")
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    text = path.read_text()
    assert [name for which in "ab" for name in (f"{which}{number}:" for number in range(15)) if name not in text] == []
    assert text.count("match: ls ") == 15
