"""The built-in tools and their shared code.

A tool has a name, a description, a pydantic model of its arguments and `run`. For a model's mistakes, it returns an output with `error`
instead of raising an exception. Files, URLs and processes are accessed only through `guard`.
"""

__all__: list[str] = []
