"""The formats `mtm` and `mtm-1`: notebooks of Mutsumi and of its fork with versioned files."""

__all__: list[str] = []
