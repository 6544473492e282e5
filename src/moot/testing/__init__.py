"""Test doubles for model endpoints, over real HTTP, and for agents. They serve our own tests and those of people who test their agents.

Production code never imports this room.
"""

__all__: list[str] = []
