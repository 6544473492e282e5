"""The commands of `moot chat`."""

__all__: list[str] = []
