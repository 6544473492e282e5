"""Safe access to files of other programs."""

__all__: list[str] = []
