"""The agent service `acp:NAME`: any program that speaks the Agent Client Protocol on its stdin and stdout.

A run is one process: start, handshake, session, prompt, exit. Each line from the agent is recorded in the log before it is handled. The
agent's requests (permissions, files, terminals) are served while it answers.

The JSON-RPC code is moot's own (`agents/outside/rpc.py`). The protocol's Python library reads the pipe itself, validates each message and
drops what does not fit. Here every line must reach the log first, valid or not, and an agent with an invalid field should still work. The
tests validate moot's messages against that library's schema.
"""

__all__: list[str] = []
