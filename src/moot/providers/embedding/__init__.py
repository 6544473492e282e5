"""Embeddings for semantic search, computed with the model multilingual-e5-small (docs/search.md).

Modules of this package are imported only if the user searches by meaning or has installed the weights. `e5` needs numpy, which the extra
`semantic` installs.
"""

__all__: list[str] = []
