"""The picker: a list below the prompt that filters as you type and disappears when something is picked.

`pick` is the entry point. Everything up to the drawing is pure. Only `application` imports prompt-toolkit; it is loaded when a person is
there to pick. A terminal that cannot move its cursor gets a numbered list and a question.
"""

__all__: list[str] = []
