"""Weights of the models that moot runs itself: data that is downloaded, verified and stored, never imported or executed.

`pull(name, …)` tries the sources of a file in order. Before any download it shows what is downloaded, from whom and under which license,
and asks for consent. Partial downloads are kept and verified piece by piece, so that the next attempt resumes.
"""

__all__: list[str] = []
