import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from moot.tools.builtin import file_search
from moot.tools.builtin.file_search import MATCHES, SearchFiles, SearchFilesArguments
from moot.types.tool import ToolOutput

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["ripgrep", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setenv("PATH", "/nowhere")
    elif not shutil.which("rg"):
        pytest.skip("ripgrep is not installed")
    return request.param


async def search(context: Any, pattern: str, **more: Any) -> ToolOutput:
    return await SearchFiles().run(SearchFilesArguments(pattern=pattern, **more), context)


@pytest.fixture
def tree(folder: Path) -> Path:
    files: dict[str, bytes] = {
        "a.py": b"def parse():\n    return Parse\n",
        "b/c.py": b"x = parse()\r\nend parse\r\n",
        "b/ignored.log": b"parse\n",
        "b/kept.log": b"parse\n",
        "b/built/x.py": b"parse\n",
        "b.txt": "grün parse 漢\n".encode(),
        ".hidden": b"parse hidden\n",
        ".git/config": b"parse\n",
        "binary": b"parse\0\n",
        "late-binary": b"parse\n" + b"x\n" * 50_000 + b"\0",
        "latin": b"parse \xe9\n",
        "utf16": b"\xff\xfe" + "parse 16\r\n".encode("utf-16-le"),
        "mark": b"\xef\xbb\xbfparse mark\n",
        "long": b"x" * 1000 + b"parse" + b"\n",
        "no-end": b"one\nparse",
        "huge": b"parse\n" + b"x" * 10_485_760,
        ".gitignore": b"*.log\n!kept.log\n/b/built/\n# comment\n",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "link").symlink_to("a.py")
    return folder


FOUND = """\
.hidden:1: parse hidden
a.py:1: def parse():
b/c.py:1: x = parse()
b/c.py:2: end parse
b/kept.log:1: parse
b.txt:1: grün parse 漢
latin:1: parse \ufffd
long:1: {long}
mark:1: parse mark
no-end:2: parse
utf16:1: parse 16""".format(long="x" * 250 + " … (line cut)")


async def test_matches_come_sorted_with_file_and_line(context: Any, tree: Path, engine: str):
    assert (await search(context, "parse")).text == FOUND


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"pattern": "^def|Parse$"}, "a.py:1: def parse():\na.py:2: return Parse"),
        ({"pattern": r"parse\(\)$"}, "b/c.py:1: x = parse()"),
        ({"pattern": "PARSE HIDDEN", "ignore_case": True}, ".hidden:1: parse hidden"),
        ({"pattern": "parse", "glob": "*.py"}, "a.py:1: def parse():\nb/c.py:1: x = parse()\nb/c.py:2: end parse"),
        ({"pattern": "parse", "glob": "*.{txt,log}"}, "b/kept.log:1: parse\nb.txt:1: grün parse 漢"),
        ({"pattern": "parse", "glob": "b/*.py"}, "b/c.py:1: x = parse()\nb/c.py:2: end parse"),
        ({"pattern": "end", "path": "b"}, "b/c.py:2: end parse"),
        ({"pattern": "parse", "path": "b/c.py"}, "b/c.py:1: x = parse()\nb/c.py:2: end parse"),
        ({"pattern": "parse", "path": "b/built"}, "b/built/x.py:1: parse"),
        (
            {"pattern": "parse("},
            "a.py:1: def parse():\nb/c.py:1: x = parse()\n('parse(' is not a valid regular expression and was searched as plain text.)",
        ),
        ({"pattern": "(?<=def )parse"}, "a.py:1: def parse():"),
        ({"pattern": "--files"}, "No matches for '--files' in '.'."),
    ],
)
@pytest.mark.slow
async def test_ripgrep_and_python_give_the_same_answer(context: Any, tree: Path, engine: str, more: dict[str, Any], found: str):
    output = await search(context, **more)
    assert output.text == found
    assert not output.error


async def test_many_matches_are_truncated(context: Any, folder: Path, engine: str):
    (folder / "a").write_text("x\n" * (MATCHES + 50))
    lines = (await search(context, "x")).text.splitlines()
    assert len(lines) == MATCHES + 1
    assert "more than" in lines[-1]


@pytest.mark.parametrize("path", ["..", "/etc", "missing", "out", "pipe"])
async def test_paths_outside_the_roots_are_rejected(context: Any, folder: Path, engine: str, path: str):
    (folder / "out").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    output = await search(context, "root", path=path)
    assert "root:" not in output.text
    assert output.error or path == "pipe"


async def test_moots_own_folder_is_not_searched(context: Any, folder: Path, engine: str):
    (folder / "home" / "data").mkdir(parents=True)
    (folder / "home" / "data" / "moot.db").write_text("canary")
    (folder / "home" / "config.yaml").write_text("canary")
    assert "No matches for" in (await search(context, "canary")).text


async def test_a_malicious_pattern_is_stopped_by_the_time_limit(context: Any, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(file_search, "SECONDS", 1.0)
    (folder / "a").write_text("a" * 60 + "b\n")
    output = await search(context, "(a+)+$")
    assert "stopped after" in output.text


async def test_a_variable_does_not_choose_what_the_search_runs(context: Any, folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "evil").mkdir()
    for name in ("rg", "sitecustomize.py", "re.py", "orjson.py"):
        (folder / "evil" / name).write_text("#!/bin/sh\ntouch ran\n" if name == "rg" else "open('ran', 'w')\n")
        (folder / "evil" / name).chmod(0o755)
    monkeypatch.chdir(folder / "evil")
    monkeypatch.setenv("PATH", ".:evil::")
    monkeypatch.setenv("PYTHONPATH", str(folder / "evil"))
    assert not (await search(context, "touch")).error
    assert not list(folder.rglob("ran"))
