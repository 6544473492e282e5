"""The formats `mtm` and `mtm-1`: notebooks of Mutsumi, and notebooks of Mutsumi's fork, which have a version number."""

__all__: list[str] = []
