"""One example of everything a package can add to moot. Each is one file and one line of `pyproject.toml`.

| file | what it adds |
|---|---|
| `rules.py` | the provider `rules`: answers by patterns from the configuration, without a model |
| `convert_units.py` | the tool `convert_units` |
| `pipe.py` | the agent service `pipe`: a command that reads the prompt and writes the answer |
| `role_jsonl.py` | the format `role-jsonl`: one line of JSON per message |
| `lines.py` | the channel `lines`: a line-based chat over a Unix socket |
"""
