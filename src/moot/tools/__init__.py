"""The built-in tools and their shared code.

A tool has a name, a description, a pydantic model of its arguments and `run`. It raises no exception for a model's mistakes but returns an
output with `error`. Files, URLs and processes are accessed only through `guard`.
"""

__all__: list[str] = []
