"""Texts of like meaning near each other: multilingual-e5-small, computed here out of weights that are data (docs/search.md).

Nothing of it is imported before somebody searches by meaning or has the weights: `e5` needs numpy, of the extra `semantic`.

| file | what it holds |
|---|---|
| `packed.py` | the file of the weights: header, vocabulary, tensors of four bits |
| `pieces.py` | a text as numbers of the vocabulary |
| `e5.py` | the model: `Embedder` |
| `having.py` | whether extra and weights are here, and what to do when they are not; imports nothing heavy |
"""

__all__: list[str] = []
