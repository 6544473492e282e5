"""Embeddings for semantic search: multilingual-e5-small, computed from weights stored as data (docs/search.md).

Nothing here is imported before the user searches by meaning or has the weights. `e5` needs numpy, which the extra `semantic` installs.

| file | contents |
|---|---|
| `packed.py` | the weights file: header, vocabulary, 4-bit tensors |
| `pieces.py` | the tokenizer |
| `e5.py` | the model, an `Embedder` |
| `having.py` | checks for the extra and the weights, without heavy imports |
"""

__all__: list[str] = []
