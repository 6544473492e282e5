"""The format `talkcody`: the database of TalkCody and its shared snapshots."""

__all__: list[str] = []
