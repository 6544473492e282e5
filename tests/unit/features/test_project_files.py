from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from moot.errors import Busy, MootError, NotFound, Refused, UsageError
from moot.features.projects.files import FILE_BYTES, Files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "shop"
    (place / "src").mkdir(parents=True)
    (place / "src" / "app.py").write_text("print(1)\n")
    return place


@pytest.fixture
def files(root: Path, tmp_path: Path) -> Files:
    return Files(root, tmp_path / "moot-home")


def anything(_: str | None) -> None:
    """Accept any current content."""


def test_a_folder_lists_folders_first_marks_ignored_files_and_counts_the_rest(files: Files, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("out/\n*.log\n")
    (root / "src" / ".gitignore").write_text("!kept.log\n")
    for name in ("out/deep/x.txt", "b.txt", "A.txt", "src/kept.log", "src/lost.log"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / "to-src").symlink_to("src")
    (root / "to-etc").symlink_to("/etc")
    top = files.folder("", 100)
    assert [(entry.name, entry.type, entry.ignored) for entry in top.entries] == [
        ("out", "directory", True),
        ("src", "directory", False),
        ("to-src", "directory", False),
        (".gitignore", "file", False),
        ("A.txt", "file", False),
        ("b.txt", "file", False),
        ("to-etc", "link", False),
    ]
    assert [(entry.path, entry.ignored) for entry in files.folder("src", 3).entries] == [
        ("src/.gitignore", False),
        ("src/app.py", False),
        ("src/kept.log", False),
    ]
    assert files.folder("src", 3).rest == 1
    assert files.folder(str(root / "out" / "deep"), 9).entries[0].ignored


OUTSIDE = ("../secret.txt", "/etc/passwd", "src/../../secret.txt", "way-out", "out-folder/secret.txt", "~/x", "a\0b")
PROTECTED = (".git/config", ".git/hooks/pre-commit", "src/.moot/config.yaml", "AGENTS.md", ".envrc", "to-git/config", "home/agents/x.md")


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_of_the_folder_is_listed_read_or_written(files: Files, root: Path, path: str) -> None:
    secret = root.parent / "secret.txt"
    secret.write_text("secret")
    (root / "way-out").symlink_to(secret)
    (root / "out-folder").symlink_to(root.parent)
    for act in (files.read, lambda name: files.folder(name, 9), lambda name: files.write(name, "x", check=anything)):
        with pytest.raises(Refused):
            act(path)
    assert secret.read_text() == "secret"


@pytest.mark.parametrize("path", PROTECTED)
def test_protected_files_are_read_but_never_written(root: Path, path: str) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    (root / "to-git").symlink_to(".git")
    files = Files(root, root / "home")
    with pytest.raises(Refused, match="protected"):
        files.write(path, "x", check=anything)
    assert not (root / "home").exists()
    assert files.read(".git/config").protected == ".git"


def test_saving_keeps_encoding_mode_and_line_endings(files: Files, root: Path) -> None:
    script = root / "run.sh"
    script.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    script.chmod(0o750)
    seen = files.read("run.sh")
    assert (seen.text, seen.kind, seen.protected) == ("one\r\ntwo\n", "text", "")
    assert seen.sha256 == sha256(script.read_bytes()).hexdigest()
    files.write("run.sh", "eins\r\nzwei\n", check=anything)
    assert (script.read_bytes(), script.stat().st_mode & 0o777) == (b"\xef\xbb\xbfeins\r\nzwei\n", 0o750)
    (root / "old.txt").write_bytes(b"caf\xe9")
    assert files.write("old.txt", "th\xe9", check=anything).encoding == "latin-1"
    assert (root / "old.txt").read_bytes() == b"th\xe9"
    with pytest.raises(UsageError, match=r"U\+20AC"):
        files.write("old.txt", "\u20ac", check=anything)
    assert files.write("new/deep.txt", "x", check=anything).path == "new/deep.txt"


def test_binary_and_large_files_have_no_text_and_are_not_replaced(files: Files, root: Path) -> None:
    (root / "data.bin").write_bytes(b"a\0b")
    (root / "large.txt").write_bytes(b"x" * (FILE_BYTES + 1))
    os.mkfifo(root / "pipe")
    assert (files.read("data.bin").kind, files.read("large.txt").kind) == ("binary", "large")
    assert (files.read("large.txt").text, files.read("large.txt").size) == (None, FILE_BYTES + 1)
    for name in ("data.bin", "large.txt", "pipe", "src"):
        with pytest.raises(MootError):
            files.write(name, "x", check=anything)
    with pytest.raises(UsageError, match="maximum"):
        files.write("new.txt", "x" * (FILE_BYTES + 1), check=anything)
    with pytest.raises(NotFound):
        files.read("missing.txt")


def test_a_change_between_check_and_write_is_not_overwritten(files: Files, root: Path) -> None:
    def change(_: str | None) -> None:
        (root / "src" / "app.py").write_text("theirs")
        (root / "new.txt").write_text("theirs")

    for name in ("src/app.py", "new.txt"):
        with pytest.raises(Busy):
            files.write(name, "mine", check=change)
        assert (root / name).read_text() == "theirs"
        (root / "new.txt").unlink(missing_ok=True)
