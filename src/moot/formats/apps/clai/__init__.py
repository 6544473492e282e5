"""The format `clai`: conversations of the command-line tool clai."""

__all__: list[str] = []
