"""Embeddings for semantic search: multilingual-e5-small, computed from weights stored as data (docs/search.md).

Nothing here is imported before the user searches by meaning or has the weights. `e5` needs numpy, which the extra `semantic` installs.
"""

__all__: list[str] = []
