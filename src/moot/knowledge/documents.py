"""The text of documents such as PDF, read by a worker process in the sandbox, with limits on time, memory and size."""

from __future__ import annotations

import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import anyio
from anyio import to_thread

from moot.config.settings import Settings
from moot.errors import LimitReached, Refused, UsageError
from moot.guard.processes import Child, spawn
from moot.plugins.registry import attribute
from moot.types.canonical import loads_object
from moot.types.knowledge import Section
from moot.types.sandbox import Confinement, Mechanism

SECONDS = 60.0
MAX_BYTES = 64 << 20
"""Maximum size of a document."""
PROMPT_CHARACTERS = 200_000
"""Maximum length of a document in a prompt."""

_PACKAGES = {"pdf": "pypdf", "docx": "docx", "xlsx": "openpyxl", "pptx": "pptx", "epub": "defusedxml"}
_ANSWER_BYTES = 64 << 20
_KEPT_CHARACTERS = 16_000_000
_AT_ONCE = 2
# add the package's folder to the path, because the sandbox hides PYTHONPATH and -I excludes the working directory
_SOURCE = Path(__file__).parents[2]
_PROGRAM = f"import sys; sys.path.append({str(_SOURCE)!r}); from moot.knowledge.readers.worker import main; main()"


class DocumentReader:
    """Reader of documents. It caches recent texts, because every request of a conversation repeats its attachments."""

    def __init__(
        self, settings: Callable[[], Settings], mechanisms: Callable[[], Sequence[Mechanism]], *, seconds: float = SECONDS
    ) -> None:
        self._settings = settings
        self._mechanisms = mechanisms
        self._seconds = seconds
        self._texts: OrderedDict[bytes, str] = OrderedDict()
        self._limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def text(self, name: str, data: bytes, kind: str) -> str:
        """Return the text for a prompt, with places such as `[page 3]`. Raise the same errors as `sections`."""
        key = kind.encode() + await to_thread.run_sync(digest_of, data)
        if (known := self._texts.get(key)) is None:
            sections, is_cut = await self.sections(name, data, kind)
            known = "\n\n".join(
                f"[{section.place}]\n{section.text.strip()}" if section.place else section.text.strip() for section in sections
            )
            self._texts[key] = f"{known}\n(The rest of the document was left out.)" if is_cut else known
            known = self._texts[key]
            while sum(map(len, self._texts.values())) > _KEPT_CHARACTERS and len(self._texts) > 1:
                self._texts.popitem(last=False)
        return (
            known if len(known) <= PROMPT_CHARACTERS else f"{known[:PROMPT_CHARACTERS]}\n(cut: the document has {len(known):,} characters)"
        )

    async def sections(self, name: str, data: bytes, kind: str) -> tuple[list[Section], bool]:
        """Return the text in pieces, each with its place, and True if the end is missing because the text is too long.

        Raise Refused, LimitReached or UsageError, which say why the document can't be read.
        """
        package = _PACKAGES.get(kind)
        if package is not None and find_spec(package) is None:
            raise UsageError(
                f"{name!r}: reading {kind.upper()} needs the package {package!r}, which is not installed.",
                fix="pip install 'moot[documents]'",
            )
        if len(data) > MAX_BYTES:
            raise LimitReached(f"{name!r} is larger than {MAX_BYTES >> 20} MiB.")
        async with self._limiter:
            with tempfile.TemporaryDirectory(prefix="moot-") as folder:
                answer = await self._read(name, data, kind, Path(folder))
        if isinstance(problem := answer.get("problem"), str):
            raise Refused(f"{name!r} can't be read: {problem}.")
        found = [Section(str(place), str(text)) for place, text in cast("list[tuple[str, str]]", answer["sections"])]
        if not found:
            raise Refused(
                f"{name!r} contains no text. Its pages may be scanned images.", fix="Recognize the text with an OCR program first."
            )
        return found, answer.get("cut") is True

    async def _read(self, name: str, data: bytes, kind: str, scratch: Path) -> dict[str, Any]:
        sandbox = await self._confinement(scratch)
        child = await spawn([sys.executable, "-I", "-c", _PROGRAM, kind], cwd=scratch, stdin="pipe", stderr="null", sandbox=sandbox)
        try:
            with anyio.fail_after(self._seconds):
                answer = await _answer(child, data)
                code = await child.wait()
        except TimeoutError:
            raise LimitReached(f"{name!r}: reading it took longer than {self._seconds:g} seconds.") from None
        finally:
            await child.kill(0)
        if not answer:
            raise Refused(
                f"{name!r} can't be read: the process that reads it ended {f'by signal {-code}' if code < 0 else f'with code {code}'}."
            )
        if len(answer) > _ANSWER_BYTES:
            raise LimitReached(f"{name!r} has more than {_ANSWER_BYTES >> 20} MiB of text.")
        try:
            return await to_thread.run_sync(loads_object, answer)
        except ValueError:
            raise Refused(f"{name!r} can't be read: the process that reads it returned no valid answer.") from None

    async def _confinement(self, scratch: Path) -> Confinement | None:
        """Return the sandbox of the worker. Raise Refused if the configuration requires a sandbox and none works."""
        settings = self._settings()
        found = await attribute("moot.guard.sandbox.mechanisms:find")(self._mechanisms())
        if found.mechanism is None:
            if settings.sandbox.required:
                raise Refused(
                    "Reading the document requires a sandbox, but none is available on this machine.",
                    fix="Install bubblewrap, or unset sandbox.required.",
                )
            return None
        work = scratch / "work"
        work.mkdir()
        return Confinement(found.mechanism, work, (work,), scratch, hidden=(settings.home,), readable=(_SOURCE / "moot",))


async def _answer(child: Child, data: bytes) -> bytes:
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(ConnectionError):  # the process has died, which its exit code will show
        child.stdin.write(data)
        await child.stdin.drain()
    child.stdin.close()
    answer = bytearray()
    while len(answer) <= _ANSWER_BYTES and (piece := await child.stdout.read(1 << 18)):
        answer += piece
    return bytes(answer)


def digest_of(data: bytes) -> bytes:
    """Return the SHA-256 of a document. Blocks if it is large."""
    return sha256(data).digest()


async def decoded(data: bytes) -> str | None:
    """Return the text of a file, or None if it is binary."""
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    return await to_thread.run_sync(_decode, data)


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return data.decode(encoding, "replace")
