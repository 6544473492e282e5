"""The commands of `moot chat`, `moot run` and `moot ps`."""

__all__: list[str] = []
