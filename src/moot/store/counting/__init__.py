"""Usage records of finished answers: created in the background, and updated when an answer changes."""

__all__: list[str] = []
