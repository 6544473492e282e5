"""Code shared by agents that run as separate programs: process, lines, exchange, prompts and approvals.

A run of such an agent is one process and one turn per user message. A turn is an exchange in the log with every line of both directions.
The service of an agent adds only the agent's protocol.
"""

__all__: list[str] = []
