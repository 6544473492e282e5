"""Code shared by agents that are programs of their own: process, lines, exchange, prompts and approvals.

A run of such an agent is one process and one turn per user message. A turn is an exchange in the log with every line of both directions.
An agent's service adds only its protocol.
"""

__all__: list[str] = []
