import os
import socket
import stat
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moot.errors import Busy, MootError, NotFound, Refused, UsageError
from moot.guard.paths import Entry, Paths, stamp
from moot.guard.roots import folders

CANARY = "the canary of the folder outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret.txt").write_text(CANARY)
    return path


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    path = tmp_path / "root"
    (path / "sub" / "deep").mkdir(parents=True)
    (path / "file.txt").write_text("inside")
    (path / "sub" / "file.txt").write_text("below")
    (path / "out").symlink_to(outside)
    (path / "sub" / "out").symlink_to("../../outside")
    (path / "secret").symlink_to(outside / "secret.txt")
    (path / "dangling").symlink_to("nowhere.txt")
    (path / "dangling-out").symlink_to(outside / "new.txt")
    (path / "dangling-folder").symlink_to("nowhere")
    (path / "loop").symlink_to("loop")
    (path / "in").symlink_to("sub")
    (path / "in-file").symlink_to(path / "sub" / "file.txt")
    (path / "proc").symlink_to("/proc/self/root")
    os.mkfifo(path / "pipe")
    return path


@pytest.fixture
def paths(root: Path) -> Paths:
    return Paths([root], root)


def read(paths: Paths, path: str) -> str:
    with paths.open_read(path) as stream:
        return stream.read().decode()


def write(paths: Paths, path: str, text: str = "written") -> None:
    with paths.open_write(path) as stream:
        stream.write(text.encode())


ESCAPES = [
    "..",
    "../outside/secret.txt",
    "sub/../../outside/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/../../etc/passwd",
    "/dev/stdin",
    "/dev/null",
    "/dev/fd/0",
    "~",
    "~/secret",
    "~root/secret",
    "out/secret.txt",
    "sub/out/secret.txt",
    "in/out/secret.txt",
    "out/../outside/secret.txt",
    "secret",
    "dangling",
    "dangling-out",
    "dangling-folder/x.txt",
    "loop",
    "loop/x",
    "proc/etc/passwd",
    "pipe",
    "nul\0.txt",
    "\ud800",
    "x" * 300,
    "/".join(["x" * 200] * 40),
    "file.txt/x",
    "sub",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_spelling_reads_or_writes_outside_the_folder(paths: Paths, outside: Path, path: str):
    for attempt in (read, write):
        with pytest.raises(MootError):
            attempt(paths, path)
    assert [(item.name, item.read_text()) for item in outside.iterdir()] == [("secret.txt", CANARY)]


@pytest.mark.parametrize("path", ["out", "sub/out", "..", "/", "proc", "/proc/self/root", "pipe", "file.txt", "dangling-folder"])
def test_no_path_spelling_lists_files_outside_the_folder(paths: Paths, path: str):
    with pytest.raises(MootError):
        paths.listdir(path)
    with pytest.raises(MootError):
        list(paths.walk(path, lambda _: True))


@pytest.mark.parametrize(("path", "kind"), [("pipe", "named pipe"), ("file.txt", "file")])
def test_only_folders_are_listed(paths: Paths, path: str, kind: str):
    for listed in (lambda: paths.listdir(path), lambda: list(paths.walk(path, lambda _: True))):
        with pytest.raises(Refused, match=f"is a {kind}, not a folder"):
            listed()


def test_every_absolute_spelling_of_the_root_is_the_root(root: Path, paths: Paths, tmp_path: Path):
    (tmp_path / "alias").symlink_to(root)
    for spelled in (f"{root}/file.txt", f"{root}/./sub/../file.txt", f"//{root}/file.txt", f"{tmp_path}/x/../root/file.txt"):
        assert read(paths, spelled) == "inside"
    assert read(Paths([tmp_path / "alias"], tmp_path / "alias"), f"{tmp_path}/alias/file.txt") == "inside"
    with pytest.raises(Refused):
        read(paths, f"{root}2/file.txt")


def test_a_neighbour_with_the_same_beginning_is_outside(root: Path, paths: Paths):
    (root.parent / "root-evil").mkdir()
    (root.parent / "root-evil" / "x").write_text(CANARY)
    for path in ("../root-evil/x", f"{root}-evil/x"):
        with pytest.raises(Refused, match="outside the allowed folders"):
            read(paths, path)


def test_links_inside_the_folder_are_followed(paths: Paths):
    assert read(paths, "in/file.txt") == "below"
    assert read(paths, "in-file") == "below"
    assert read(paths, "in/../file.txt") == "inside"
    write(paths, "in/new.txt")
    assert read(paths, "sub/new.txt") == "written"
    write(paths, "in-file", "changed")
    assert read(paths, "sub/file.txt") == "changed"


def test_links_and_parents_resolve_as_in_the_kernel(root: Path, paths: Paths):
    (root / "deep-link").symlink_to("sub/deep")
    assert read(paths, "deep-link/../file.txt") == "below"


def test_other_allowed_folders_can_be_reached(root: Path, outside: Path):
    both = Paths([root, outside], root)
    assert read(both, "../outside/secret.txt") == read(both, "secret") == read(both, "sub/out/secret.txt") == CANARY


def test_a_refusal_names_path_folders_and_way_out(root: Path, paths: Paths):
    with pytest.raises(Refused) as caught:
        read(paths, "../outside/secret.txt")
    assert "'../outside/secret.txt'" in caught.value.message
    assert str(root) in caught.value.message
    assert "/allow DIR" in caught.value.fix and "--allow DIR" in caught.value.fix


def test_a_missing_file_is_not_found(paths: Paths):
    for path in ("missing.txt", "missing/x.txt", "sub/missing"):
        with pytest.raises(NotFound):
            read(paths, path)


def test_a_fifo_is_never_opened(root: Path, paths: Paths):
    with pytest.raises(Refused, match="named pipe"):
        read(paths, "pipe")
    with pytest.raises(Refused, match="named pipe"):
        write(paths, "pipe")
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)


def test_a_socket_and_a_device_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        with pytest.raises(Refused, match="socket"):
            read(Paths([root], root), "sock")
    with pytest.raises(Refused, match="device"):
        read(Paths([Path("/dev")], Path("/dev")), "null")
    with pytest.raises(Refused, match="device"):
        write(Paths([Path("/dev")], Path("/dev")), "null")


def test_writing_through_a_hard_link_leaves_the_other_name_alone(root: Path, outside: Path, paths: Paths):
    os.link(outside / "secret.txt", root / "hard")
    write(paths, "hard")
    assert (outside / "secret.txt").read_text() == CANARY
    assert read(paths, "hard") == "written"


def test_names_of_other_case_and_normal_form_are_other_names(root: Path, paths: Paths):
    (root / unicodedata.normalize("NFC", "é.txt")).write_text("composed")
    for path in ("FILE.TXT", unicodedata.normalize("NFD", "é.txt"), "file.txt.", "file.txt "):
        with pytest.raises(NotFound):
            read(paths, path)


def test_moots_own_folder_is_rejected_by_any_path(root: Path, paths: Paths):
    home = root / "home"
    (home / "data").mkdir(parents=True)
    (home / "config.yaml").write_text(CANARY)
    (home / "data" / "moot.db").write_text(CANARY)
    (root / "way").symlink_to("home/data")
    for path in ("home/config.yaml", "home/data/moot.db", "way/moot.db", "home/data/../config.yaml", "home/data/moot.db-wal"):
        for attempt in (read, write):
            with pytest.raises(Refused, match="own data folder"):
                attempt(paths, path)
    with pytest.raises(Refused):
        paths.listdir("home")
    assert "home/config.yaml" not in {name for name, _ in paths.walk(".", lambda _: True)}
    for inner in (home, home / "data"):
        with pytest.raises(Refused):
            read(Paths([inner], inner), "config.yaml")


def test_writing_keeps_permissions_and_creates_folders(root: Path, paths: Paths):
    (root / "run.sh").write_text("x")
    (root / "run.sh").chmod(0o776)
    write(paths, "run.sh", "y")
    write(paths, "new/er/file.txt")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o776
    assert (root / "run.sh").read_text() == "y"
    assert (root / "new" / "er" / "file.txt").read_text() == "written"


def test_writing_is_all_or_nothing(root: Path, paths: Paths):
    before = sorted(root.iterdir())
    with pytest.raises(RuntimeError), paths.open_write("file.txt") as stream:
        stream.write(b"half")
        stream.flush()
        assert read(paths, "file.txt") == "inside"
        raise RuntimeError
    assert read(paths, "file.txt") == "inside"
    assert sorted(root.iterdir()) == before


def test_a_concurrently_changed_file_is_not_overwritten(root: Path, paths: Paths):
    seen = stamp(paths.stat("file.txt"))
    with pytest.raises(Busy, match="changed by another program"), paths.open_write("file.txt", expect=seen) as stream:
        stream.write(b"mine")
        (root / "file.txt").write_text("theirs")
    assert read(paths, "file.txt") == "theirs"


def test_a_concurrently_deleted_file_is_not_recreated(root: Path, paths: Paths):
    seen = stamp(paths.stat("file.txt"))
    with pytest.raises(MootError), paths.open_write("file.txt", expect=seen):
        (root / "file.txt").unlink()
    assert not (root / "file.txt").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_not_replaced(root: Path, paths: Paths):
    (root / "file.txt").chmod(0o444)
    with pytest.raises(Refused, match="read-only"):
        write(paths, "file.txt")


def test_a_folder_is_listed_and_walked_sorted_and_links_are_not_followed(paths: Paths):
    assert paths.listdir("sub") == [Entry("deep", "directory"), Entry("file.txt", "file", 5), Entry("out", "link")]
    assert [name for name, _ in paths.walk("sub", lambda _: True)] == ["deep", "file.txt", "out"]
    walked = [name for name, _ in paths.walk(".", lambda name: name != "sub")]
    assert "sub" in walked
    assert not [name for name in walked if "/" in name]


def test_a_folder_without_end_is_walked_only_so_deep(root: Path, paths: Paths):
    (root / "deepest").mkdir()
    folder = os.open(root / "deepest", os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    assert 90 < len(list(paths.walk("deepest", lambda _: True))) <= 110


def test_no_descriptor_is_left_open(paths: Paths):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ESCAPES:
        for attempt in (read, write):
            with pytest.raises(MootError):
                attempt(paths, path)
    read(paths, "in-file")
    next(iter(paths.walk(".", lambda _: True)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@contextmanager
def replaced_before_open(monkeypatch: pytest.MonkeyPatch, path: Path, replace: Callable[[], object]) -> Generator[None]:
    """Replace a file after it was checked and just before it is opened by its name."""
    opened = os.open

    def replacing(name: str, *arguments: object, **options: object) -> int:
        if name == path.name:
            path.rename(path.with_name("checked"))
            replace()
            monkeypatch.setattr(os, "open", opened)
        return opened(name, *arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context():
        monkeypatch.setattr(os, "open", replacing)
        yield
    assert (path.parent / "checked").exists()


def test_a_file_that_becomes_a_link_or_a_pipe_after_its_check_is_not_read(
    root: Path, outside: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    file = root / "file.txt"
    with replaced_before_open(monkeypatch, file, lambda: file.symlink_to(outside / "secret.txt")), pytest.raises(Refused):
        read(paths, "file.txt")
    file.unlink()
    file.write_text("inside")
    with replaced_before_open(monkeypatch, file, lambda: os.mkfifo(file)), pytest.raises(Refused, match="named pipe"):
        read(paths, "file.txt")


def test_a_folder_that_becomes_a_link_after_its_check_is_not_entered(
    root: Path, outside: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
):
    uses: list[Callable[[], object]] = [lambda: read(paths, "sub/secret.txt"), lambda: paths.listdir("sub")]
    uses += [lambda: write(paths, "sub/new.txt"), lambda: list(paths.walk("sub", lambda _: True))]
    for use in uses:
        with replaced_before_open(monkeypatch, root / "sub", lambda: (root / "sub").symlink_to(outside)), pytest.raises(Refused):
            use()
        (root / "sub").unlink()
        (root / "checked").rename(root / "sub")
    assert [(item.name, item.read_text()) for item in outside.iterdir()] == [("secret.txt", CANARY)]


SWAPPER = """
import ctypes, os, sys
one, other = (os.fsencode(name) for name in sys.argv[1:])
libc = ctypes.CDLL(None)
print(flush=True)
while True:
    for _ in range(7):  # odd, so that it rests now on the one, now on the other
        libc.renameat2(-100, one, -100, other, 2)  # AT_FDCWD, RENAME_EXCHANGE
"""


@contextmanager
def swapping(one: Path, other: Path) -> Generator[None]:
    """Meanwhile another process swaps two names atomically as fast as it can."""
    with subprocess.Popen([sys.executable, "-c", SWAPPER, one, other], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


@pytest.mark.parametrize("what", ["folder", "file"])
@pytest.mark.slow
def test_a_swap_between_check_and_use_never_reaches_outside(root: Path, outside: Path, paths: Paths, what: str):
    target = root / "sub" if what == "folder" else root / "sub" / "secret.txt"
    (root / "sub" / "secret.txt").write_text("harmless")
    link = root / "link"
    link.symlink_to(outside if what == "folder" else outside / "secret.txt")
    reached = rounds = 0
    end = time.monotonic() + 1.5
    uses: list[Callable[[], object]] = [
        lambda: read(paths, "sub/secret.txt"),
        lambda: write(paths, "sub/secret.txt", "harmless"),
        lambda: paths.listdir("sub"),
        lambda: list(paths.walk(".", lambda _: True)),
    ]
    with swapping(target, link):
        while rounds < 600 or (time.monotonic() < end and rounds < 20_000):
            rounds += 1
            try:
                found = uses[rounds % 40 if rounds % 40 < 4 else 0]()
            except MootError:
                continue
            reached += CANARY in str(found)
    assert reached == 0
    assert [(item.name, item.read_text()) for item in outside.iterdir()] == [("secret.txt", CANARY)]


@pytest.mark.parametrize(
    ("uri", "folder"),
    [("/a/b", "/a/b"), ("/a/../b/", "/b"), ("file:///a/b%20c", "/a/b c"), ("file://localhost/a", "/a"), ("FILE:/a", "/a"), ("//a", "/a")],
)
def test_allowed_uris_name_folders(uri: str, folder: str):
    assert folders([uri]) == (Path(folder),)


@pytest.mark.parametrize("uri", ["relative", "", "~", "file://host/a", "http://host/a", "file:relative", "/nul\0", "file:///nul%00"])
def test_an_invalid_folder_is_an_error(uri: str):
    with pytest.raises(UsageError, match="allowed_uris"):
        folders([uri])
