"""The Python library behind `import moot`, on the same runtime and store as the command line."""

__all__: list[str] = []
