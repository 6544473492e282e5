"""Approvals in the terminal: ask whether a tool call may run, and ask the user a tool's questions.

`decide` is the entry point. It shows a small application below the terminal's content, or asks for typed lines if the terminal cannot move
its cursor. Nothing is selected by default, text typed before the question never answers it, and control characters in the call are visible.
"""

__all__: list[str] = []
