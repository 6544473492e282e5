"""Weights of the models that moot runs itself: data that is fetched, checked and kept, never imported or executed.

`pull(name, …)` tries the sources of a file in order. It says what it is about to fetch, from whom and under which licence, and asks,
before any byte moves; what has come stays, checked piece by piece, so that a second try goes on from there.

| file | what it holds |
|---|---|
| `manifest.py` | the files we know: size, hash, licence, sources |
| `here.py` | which of them lie here |
| `hub.py` | a source: one file by HTTP from a model hub |
| `wheels.py` | a source: the same bytes inside registry wheels, fetched by the package client of this environment |
| `partial.py` | what of a file has come so far, and its checks |
| `pull.py` | offers, consent, progress, resume, check, and the place where files lie |
"""

__all__: list[str] = []
