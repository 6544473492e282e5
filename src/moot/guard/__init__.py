"""Security checks at the borders between moot and what it does not trust: files, network, processes, terminal text, secrets.

Models, tools, projects and the web are untrusted. All their access to files, URLs, child processes, logs and screens goes through
functions of this room.

| file | protects |
|---|---|
| `addresses` | private networks, by a table of public addresses |
| `commands` | analysis of one shell command: which others it may run, what a rule must spell out |
| `descent` | resolution of paths, safe against links and races |
| `environment` | environment variables of child processes |
| `paths` | files outside of the allowed folders |
| `processes` | child processes: starting and killing them as groups |
| `roots` | the allowed folders, and moot's own folder |
| `secrets` | keys and passwords in errors and logs |
| `sharing` | personal data in shared texts: secrets, home folders, names, addresses |
| `shell` | shell lines, by splitting them into commands |
| `terminal` | the terminal, from control sequences |
| `tokens` | access to a server, with tokens |
| `urls` | the network, from fetches by tools |
"""

__all__: list[str] = []
