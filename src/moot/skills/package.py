"""Packages of skills and plugins: a folder, an archive or a commit, read into memory. One invalid entry makes the whole
package invalid."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import IO, cast

import anyio

from moot.config.plugins.content import BYTES, DEPTH, FILES, PROGRAMS, SKIPPED, Files, entries, parents_of, read_all
from moot.errors import NotFound, Refused, UsageError
from moot.guard.processes import Output, child_environment, output
from moot.guard.urls import literal_address, public_addresses
from moot.skills.content import is_name, read_document
from moot.types.skill import SKILL_FILE

ARCHIVE_BYTES = 64 << 20
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_SECONDS = 120.0
_DRIVE = re.compile(r"[A-Za-z]:")
_URL = re.compile(r"(https|ssh)://[^\s]+|[\w.-]+@[\w.-]+:[^\s]+|/[^\s]*")
_OWN_COPY = "Clone the repository yourself, and install its folder."
_REF = re.compile(r"[\w][\w./+-]{0,200}")


def read_folder(folder: Path, skipped: Collection[str] = SKIPPED) -> Files:
    """Return the files of a folder. Raise Refused if one is a link or there are too many. Blocks."""
    return read_all(folder, entries(folder, skipped))


def read_archive(data: bytes, name: str = "The archive", skipped: Collection[str] = SKIPPED) -> Files:
    """Return the files of a zip or tar archive. Raise Refused if it can't be unpacked safely or is too large. Blocks."""
    try:
        return _zipped(data, skipped) if data.startswith(b"PK") else _tarred(data, skipped)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        lzma.LZMAError,
    ) as error:
        raise Refused(f"{name} can't be unpacked: {error}.", fix="Use a .zip, .tar.gz or .tar file.") from error


def _zipped(data: bytes, skipped: Collection[str]) -> Files:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        for info in infos:
            if info.flag_bits & 0x1:
                raise Refused(f"{info.filename!r} is encrypted.")
            _check_mode(info.orig_filename, info.external_attr >> 16)
        names = _checked([(info.orig_filename, info.is_dir()) for info in infos], skipped)
        left = BYTES
        found: dict[str, bytes] = {}
        for info, path in zip(infos, names, strict=True):
            if path and not info.is_dir():
                with archive.open(info) as file:
                    content = _limited(file, left)
                left -= len(content)
                found[path] = content
        return found


def _tarred(data: bytes, skipped: Collection[str]) -> Files:
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    plain = _limited(cast("IO[bytes]", _opened(data)), BYTES + (8 << 20))  # headers and padding
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
        for member in archive:
            if len(members) >= 2 * FILES:
                raise Refused(f"The archive has more than {2 * FILES:,} entries.")
            if not member.isreg() and not member.isdir():
                raise Refused(f"{member.name!r} is a link or a device, which can't be installed.")
            if member.issparse():
                raise Refused(f"{member.name!r} is a sparse file, which can't be installed.")
            _check_mode(member.name, member.mode)
            content = archive.extractfile(member) if member.isreg() else None
            members.append((member, content.read() if content is not None else b""))
    names = _checked([(member.name, member.isdir()) for member, _ in members], skipped)
    return {path: content for (member, content), path in zip(members, names, strict=True) if path and member.isreg()}


def _opened(data: bytes) -> object:
    """Return the uncompressed stream of a tar file."""
    openers = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
    opener = next((opener for magic, opener in openers.items() if data.startswith(magic)), None)
    return io.BytesIO(data) if opener is None else opener(io.BytesIO(data))


def _limited(file: IO[bytes], limit: int) -> bytes:
    """Return the rest of a file, ignoring the size that its archive claims. Raise Refused if it is larger than `limit`."""
    found = file.read(limit + 1)
    if len(found) > limit:
        raise Refused(f"The archive expands to more than the maximum of {BYTES >> 20} MiB.")
    return found


def _check_mode(name: str, mode: int) -> None:
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"{name!r} is a link or a device, which can't be installed.")
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise Refused(f"{name!r} has the setuid or setgid bit. Such files can't be installed.")


def _checked(names: Iterable[tuple[str, bool]], skipped: Collection[str]) -> list[str]:
    """Return a path for each entry, which is empty for skipped entries. Raise Refused if a path is unsafe or occurs twice."""
    found: list[str] = []
    seen: dict[str, bool] = {}
    for name, is_folder in names:
        path = name.removeprefix("./").rstrip("/")
        if path in ("", "."):
            found.append("")
            continue
        parts = path.split("/")
        if "\\" in name or "\0" in name or name.startswith("/") or _DRIVE.match(name) or {"..", "", "."} & {*parts}:
            raise Refused(f"{name!r} is not a safe path in an archive.")
        if any(ord(character) < 32 for character in path) or len(parts) > DEPTH:
            raise Refused(f"{name!r} is not a safe path in an archive.")
        key = path.casefold()
        if key in seen and not (is_folder and seen[key]):
            raise Refused(f"{name!r} occurs twice in the archive, possibly with different capitalization.")
        seen[key] = is_folder
        found.append("" if any(part in skipped for part in parts) else path)
    files = {key for key, is_folder in seen.items() if not is_folder}
    if len(files) > FILES:
        raise Refused(f"The archive has more than the maximum of {FILES:,} files.")
    if any(parent in files for key in seen for parent in parents_of(key)):
        raise Refused("The archive has a file and a folder with the same name.")
    return found


async def read_commit(url: str, commit: str, path: str = "", skipped: Collection[str] = SKIPPED, *, public: bool = False) -> Files:
    """Return the files of a Git commit, or of a folder in it. Nothing is checked out, and no hook or filter runs.

    If `public` is set, only servers on the public network are connected to. Raise NotFound if the commit has no such folder, Refused if it
    can't be read.
    """
    if not COMMIT.fullmatch(commit):
        raise UsageError(
            f"{commit!r} is not the full hash of a commit.", fix="Use 40 hexadecimal digits, as 'git rev-parse HEAD' prints them."
        )
    _check_url(url)
    if path.startswith(("/", "-")) or ".." in path.split("/"):
        raise UsageError(f"{path!r} is not a path in the repository.")
    url, limits = await _limits(url) if public else (url, ())
    with tempfile.TemporaryDirectory(prefix="moot-git-") as folder:
        await _git(folder, "init", "--quiet", "--bare")
        words = ("fetch", "--quiet", "--depth", "1", "--no-tags", "--no-recurse-submodules", "--", url, commit)
        await _git(folder, *words, settings=limits)
        if path and not (await _git(folder, "ls-tree", "-d", commit, "--", path)).stdout:
            raise NotFound(f"The commit {commit} has no folder {path!r}.")
        done = await _git(folder, "archive", "--format=tar", f"{commit}:{path}" if path else commit)
    return await anyio.to_thread.run_sync(read_archive, done.stdout, "The commit", skipped)


async def commit_of(url: str, ref: str = "HEAD", *, public: bool = False) -> str:
    """Return the hash of the commit to which a repository's branch or tag currently points.

    Raise NotFound if it does not exist, Refused if Git fails.

    If `public` is set, only servers on the public network are connected to.
    """
    _check_url(url)
    if not _REF.fullmatch(ref):
        raise UsageError(f"{ref!r} is not the name of a branch or tag.")
    url, limits = await _limits(url) if public else (url, ())
    with tempfile.TemporaryDirectory(prefix="moot-git-") as folder:
        done = await _git(folder, "ls-remote", "--", url, ref, f"{ref}^{{}}", settings=limits)
    named = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
    found = next((hash for hash, name in named if name.endswith("^{}")), named[0][0] if named else "")  # an annotated tag names two
    if not COMMIT.fullmatch(found):
        raise NotFound(f"The repository {url!r} has no branch or tag {ref!r}.")
    return found


def _check_url(url: str) -> None:
    if not _URL.fullmatch(url):
        raise UsageError(f"{url!r} is not the address of a Git repository.", fix="Use https://, ssh:// or an absolute path.")


async def _limits(url: str) -> tuple[str, Sequence[str]]:
    """Return a URL in canonical form, and the settings with which Git connects only to the addresses that were checked."""
    if not url.startswith("https://"):
        raise Refused(f"{url!r} is not an https URL.", fix=_OWN_COPY)
    try:
        found, addresses = await public_addresses(url)
    except Refused as error:
        raise Refused(error.message, fix=_OWN_COPY) from error
    only = ("protocol.allow=never", "protocol.https.allow=always", "http.followRedirects=false", "http.proxy=")
    if literal_address(found.host or "") is not None:
        return str(found), only
    pins = ",".join(f"[{address}]" if address.version == 6 else str(address) for address in addresses)
    return str(found), (*only, f"http.curloptResolve={found.raw_host}:{found.port}:{pins}")


async def _git(folder: str, *words: str, settings: Sequence[str] = ()) -> Output:
    safe = (
        "core.hooksPath=/dev/null",
        "protocol.ext.allow=never",
        "core.fsmonitor=false",
        "credential.helper=",
        "core.askPass=",
        *settings,
    )
    argv = ["git", *(word for setting in safe for word in ("-c", setting)), "-C", folder, *words]
    env = {
        **child_environment(("SSH_AUTH_SOCK",)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    done = await output(argv, cwd=Path(folder), env=env, timeout=_SECONDS, limit=BYTES + (16 << 20))
    if done.code != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Refused(f"git {words[0]} failed: {lines[-1] if lines else 'it took too long or produced too much output'}")
    return done


def skills_in(files: Files, folder: str = "") -> dict[str, Files]:
    """Return the skills of a package by name: the package itself, or all folders in it that are skills.

    `folder` is the name of the package's top folder, or empty. Raise NotFound if there is no skill.
    """
    tops = sorted({path.removesuffix(SKILL_FILE) for path in files if path == SKILL_FILE or path.endswith(f"/{SKILL_FILE}")}, key=_depth)
    outer = [top for top in tops if not any(top != other and top.startswith(other) for other in tops)]
    found: dict[str, Files] = {}
    for top in outer:
        inside = {path.removeprefix(top): file for path, file in files.items() if path.startswith(top)}
        name = top.rstrip("/").rpartition("/")[2] or folder or _declared(inside)
        if name in found:
            raise Refused(f"Two skills in the package are named {name!r}.")
        found[name] = inside
    if not found:
        raise NotFound(f"The package contains no {SKILL_FILE}.", fix="Specify the folder of a skill.")
    return found


def _depth(top: str) -> tuple[int, str]:
    return top.count("/"), top


def _declared(files: Files) -> str:
    """Return the name in the front matter of a skill whose folder has no name."""
    name = read_document(text_of(files, SKILL_FILE), "").name
    return name if is_name(name) else "skill"


def text_of(files: Files, path: str) -> str:
    """Return a file as text. Bytes that are not UTF-8 are replaced."""
    return files[path].decode("utf-8-sig", "replace")


def write_files(files: Files, folder: Path) -> None:
    """Write the files into a new folder. If an error occurs, remove the folder."""
    folder.mkdir(mode=0o700)
    try:
        for path, data in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o700 if data.startswith(PROGRAMS) else 0o600)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
