"""Execution of runs: the Runtime, the legs of runs, approvals, and the hub that delivers events to watchers."""

__all__: list[str] = []
