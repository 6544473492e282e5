"""The agent service `acp:NAME`: any program that speaks the Agent Client Protocol on its stdin and stdout.

A run of it is a process: it is started, told what we can do, given its session, asked, and ended. What it says goes into the log line by
line before anything else happens with it; what it wants of us meanwhile (a permission, a file, a terminal) is answered beside.

The JSON-RPC is ours (`agents/outside/rpc.py`): the protocol's Python library reads the pipe itself, validates each message into a model and
drops what does not fit, while here every line must be in the log first, whatever is wrong with it, and an agent that writes a field
wrongly should still be understood. The tests hold what we send to that library's schema.

| file | what it holds |
|---|---|
| `service.py` | `Acp`: the service, and one of its turns |
| `link.py` | `Link`: the process and its pipe, requests of ours, the agent's requests handed out |
| `opening.py` | initialize, the session that is gone on with or begun, its mode and model |
| `asking.py` | what an agent's request is about, in the terms of moot's permissions; a permission that it asks for |
| `serving.py` | the agent's other requests: files and terminals |
| `files.py` | files that are read and written for the agent |
| `terminals.py` | commands that are run for it |
| `prompts.py` | a prompt as content blocks |
| `servers.py` | MCP servers that it is handed |
| `words.py` | what went wrong, in words for a person |
"""

__all__: list[str] = []
