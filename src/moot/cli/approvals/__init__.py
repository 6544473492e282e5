"""Approvals at a terminal: ask whether a call may run, and put a tool's questions to the user.

`decide` is the entry point. It shows a small application below what the terminal shows, or typed lines on a terminal that cannot move its
cursor. Nothing is selected by default, text typed before the question never answers it, and every control character of the call is shown.
"""

__all__: list[str] = []
