"""Weights of the models that moot runs itself. They are data that is downloaded, verified and stored, never imported or executed.

`pull(name, …)` tries the sources of a file in order. Before a download it shows the file and its origin, and asks for consent. Partial
downloads are kept, so that the next attempt resumes.
"""

__all__: list[str] = []
