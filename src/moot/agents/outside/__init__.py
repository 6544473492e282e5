"""What agents that are programs of their own share: the process, its lines, the exchange, what is told and asked.

A run of such an agent is one process and, for each thing that a person says to it, one turn: an exchange of the log with every line of
both directions. The service of an agent brings the words of its protocol and nothing else.

| file | what it holds |
|---|---|
| `approvals.py` | the answers that agents take, by kind |
| `leg.py` | a leg: its turns, steers, what a crash cut off, how it ends |
| `options.py` | what a configuration says of such an agent, checked |
| `process.py` | `Program`: the process, lines in and out, what it complains of, its end |
| `prompts.py` | what a person said, with its files, as words and pictures |
| `rpc.py` | `Rpc`: JSON-RPC on lines, both directions |
| `servers.py` | MCP servers that are handed over: their keys out of the log, a word on those that are not there |
| `told.py` | earlier messages as text, for a session that has not seen them |
| `turn.py` | `Turn`: one exchange, recorded and translated |
"""

__all__: list[str] = []
