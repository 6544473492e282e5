"""What may be touched, sent and shown: every border between moot and what it does not trust.

Models, tools, projects and the web are untrusted. Whatever of them reaches a file, an address, a child process, a log or a screen
passes one function of this room, and nothing else in moot does these things by itself.

| file | border |
|---|---|
| `addresses` | which addresses belong to the public network |
| `commands` | one command of a shell line: which others it may run, what a rule must spell out |
| `descent` | the walk to a path that no link and no race leads astray |
| `environment` | the variables that a child process gets |
| `paths` | files: confined to the allowed folders, no link leads out of them |
| `processes` | child processes: started, fed and killed as whole groups |
| `roots` | which folders may be touched, and moot's own that may not |
| `secrets` | keys and passwords in errors and logs |
| `sharing` | what of a text others need not know: secrets, home folders, names, addresses |
| `shell` | a shell line: every command in it, or that it is not understood |
| `terminal` | control sequences in text for a screen |
| `tokens` | secrets that let somebody into a server |
| `urls` | addresses on the network that a tool may fetch |
"""

__all__: list[str] = []
