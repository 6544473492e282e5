"""The Python library behind `import moot`. It uses the same configuration and stored conversations as the command line."""

__all__: list[str] = []
