"""The interactive browser of `moot chat list`: a list that filters as you type, with actions on the selected conversation."""

__all__: list[str] = []
