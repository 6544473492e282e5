import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from moot.guard.paths import Paths
from moot.tools.builtin.file_search import FILES, FindFiles, FindFilesArguments
from moot.tools.walk import Glob, walk
from moot.types.tool import ToolOutput


async def find(context: Any, pattern: str, path: str = ".") -> ToolOutput:
    return await FindFiles().run(FindFilesArguments(pattern=pattern, path=path), context)


@pytest.fixture
def tree(folder: Path) -> Path:
    for name in ("a.py", "b/c.py", "b/d/e.py", "b/d/e.txt", "node_modules/x.py", "b/x.log", ".git/config.py", ".github/w.yml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / ".gitignore").write_text("node_modules/\n*.log\n")
    (folder / "link.py").symlink_to("/etc/passwd")
    return folder


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", "a.py\nb/c.py\nb/d/e.py\nlink.py"),
        ("**/*.py", ".", "a.py\nb/c.py\nb/d/e.py\nlink.py"),
        ("b/**/*.py", ".", "b/c.py\nb/d/e.py"),
        ("./b/*.py", ".", "b/c.py"),
        ("*.{py,txt}", "b/d", "b/d/e.py\nb/d/e.txt"),
        ("*.yml", ".", ".github/w.yml"),
        ("x.py", "node_modules", "node_modules/x.py"),
        ("*.rs", ".", "No file matches '*.rs' in '.'."),
    ],
)
async def test_files_are_found_by_name(context: Any, tree: Path, pattern: str, path: str, found: str):
    assert (await find(context, pattern, path)).text == found


@pytest.mark.anyio
async def test_many_files_are_truncated(context: Any, folder: Path):
    for number in range(FILES + 3):
        (folder / f"{number:04}").touch()
    assert (await find(context, "*")).text.splitlines()[-1].startswith(f"(There are more than {FILES} files")


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["..", "/", "missing", "a.py"])
async def test_paths_outside_the_roots_are_rejected(context: Any, tree: Path, path: str):
    assert (await find(context, "*", path)).error


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a/b.py", True),
        ("/*.py", "a/b.py", False),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("**/c", "c", True),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/x/y/c", True),
        ("a/**/**/c", "a/c", True),
        ("[ab].x", "a.x", True),
        ("[!ab].x", "a.x", False),
        ("[^ab].x", "c.x", True),
        ("[]].x", "].x", True),
        ("[z-a]", "m", False),
        ("[", "[", True),
        ("[a", "[a", True),
        (r"\*.x", "*.x", True),
        (r"\*.x", "a.x", False),
        ("?.x", "ab.x", False),
        ("{a,b{c,d}}", "bd", True),
        ("{a", "{a", True),
        ("a*b*c", "axbxbxc", True),
        ("a*b*bc", "abc", False),
        ("**", "a/b", True),
    ],
)
def test_globs_match_as_documented(pattern: str, path: str, fits: bool):
    assert Glob(pattern)(path) is fits


@given(st.text("ab*?", max_size=8), st.text("ab", min_size=1, max_size=8))
def test_stars_are_the_same_as_in_a_regular_expression(pattern: str, name: str):
    if "**" not in pattern and pattern:
        assert Glob(pattern)(name) is bool(re.fullmatch(pattern.replace("?", ".").replace("*", ".*"), name))


@given(st.text(max_size=30), st.text(max_size=30))
def test_arbitrary_patterns_never_raise(pattern: str, path: str):
    Glob(pattern)(path)


def test_a_malicious_pattern_is_matched_quickly():
    begun = time.process_time()
    assert not Glob("*a" * 50 + "b")("a" * 250)
    assert not Glob("**/a/" * 100 + "b")("a/" * 100 + "c")
    assert Glob("{a,b}" * 100)("{a,b}" * 100)
    assert time.process_time() - begun < 30


LINES = [
    "a",
    "b/",
    "/a",
    "*.x",
    "!a",
    "!*.x",
    "a/b",
    "**/b",
    "a/**",
    "a/**/b",
    "!b/a",
    "[ab].x",
    r"\!a",
    "# no",
    " ",
    "a ",
    "?",
    "b/*",
    "/*",
    "a/b/",
    "**",
    "!a/b",
    "!a/b/",
    "[!a]",
    "[!a]b",
    "*/b",
    "*/",
    "!*/",
    "a/**/",
    "/a/*",
    "!/a/b",
    "**/a/**/b/**",
    "*a*.*x*",
    "[",
    "a\\\\",
]
RULES = st.lists(st.sampled_from(LINES), max_size=5)
NAMES = ["a", "b", "a.x", "b.x", "c"]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=RULES, below=RULES)
@example(top=["a/", "!a"], below=[])
@example(top=["a/**/", "!a"], below=[])
@example(top=["a/**/"], below=["/**/", "**/"])
def test_the_same_files_are_ignored_as_by_git(tmp_path: Path, top: list[str], below: list[str]):
    base = tmp_path / "tree"
    shutil.rmtree(base, ignore_errors=True)
    (base / "a").mkdir(parents=True)
    for folder in ("a/b", "b/a", "c/b"):
        (base / folder).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            if not (base / folder / name).exists():
                (base / folder / name).touch()
    (base / ".gitignore").write_text("\n".join(top))
    (base / "c" / ".gitignore").write_text("\n".join(below))
    subprocess.run(["git", "init", "-q", base], check=True, capture_output=True)
    listing = ["git", "-C", str(base), "-c", "core.excludesFile=/dev/null", "ls-files", "--others", "--exclude-standard", "-z"]
    theirs = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
    ours = [path for path, entry in walk(Paths([base], base), ".") if entry.kind == "file"]
    assert sorted(ours) == sorted(theirs)


def test_a_malicious_ignore_pattern_does_not_slow_the_walk(tmp_path: Path) -> None:
    folder = tmp_path / "/".join(["a"] * 60)
    folder.mkdir(parents=True)
    (folder / ("a" * 250)).touch()
    (tmp_path / ".gitignore").write_text("*a" * 60 + "*b\n" + "**/a/" * 30 + "**/b\n" + "**/*a*a/" * 10 + "b\n")
    started = time.process_time()
    assert [path for path, entry in walk(Paths([tmp_path], tmp_path), ".") if entry.kind == "file"] == [
        ".gitignore",
        f"{'a/' * 60}{'a' * 250}",
    ]
    assert time.process_time() - started < 30
