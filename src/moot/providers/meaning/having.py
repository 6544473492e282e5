"""Whether texts can be put by their meaning here; heavy packages are looked for by name and imported by nobody who has no weights."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.providers.weights.here import path_of
from moot.providers.weights.manifest import MEANING, find_any
from moot.types.meaning import Embedder

__all__ = ["can_mean", "load"]

_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_INSTALL = "pip install 'moot[semantic]'"


def can_mean(home: Path) -> bool:
    """Whether `load` would succeed, as far as a look at the disk can tell."""
    return find_spec("numpy") is not None and path_of(MEANING, home) is not None


def load(home: Path) -> Embedder:
    """The model, half a second and 150 MB from now. Raises UsageError saying what is missing, ProviderError for damaged weights."""
    if find_spec("numpy") is None:
        raise UsageError("searching by meaning needs the package 'numpy', which is not installed", fix=_INSTALL)
    path = path_of(MEANING, home)
    if path is None:
        weights = find_any(MEANING)
        raise UsageError(
            f"searching by meaning needs {weights.title.partition(',')[0]} ({weights.size / 1e6:,.0f} MB), which is not here",
            fix=f"moot models pull {MEANING}",
        )
    with _one_thread():
        model = attribute("moot.providers.meaning.e5:E5")
    embedder: Embedder = model(path)
    return embedder


@contextmanager
def _one_thread() -> Generator[None]:
    """What is imported meanwhile computes in one thread, unless the person set it otherwise: several wait for each other where others
    use the processor too, and one text is then slower by five times. The libraries read it once, when they are loaded."""
    unset = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]
