"""One of each thing that a package can add to moot; each is a file here and a line of `pyproject.toml`.

| file | what it adds |
|---|---|
| `rules.py` | the provider `rules`: answers by patterns of the configuration, without any model |
| `convert_units.py` | the tool `convert_units` |
| `pipe.py` | the agent service `pipe`: a command that reads the prompt and writes the answer |
| `role_jsonl.py` | the format `role-jsonl`: a line of JSON for each message |
| `lines.py` | the channel `lines`: a line-based chat over a Unix socket |
"""
