"""Running conversations: the Runtime, the legs of runs, approvals, and the hub that feeds watchers."""

__all__: list[str] = []
