"""Test doubles for model endpoints, over real HTTP, and for agents. They are for moot's own tests and for users who test their agents.
Production code never imports this package.
"""

__all__: list[str] = []
