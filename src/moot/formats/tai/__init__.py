"""The format `tai`: what TAI (tailored-ai) keeps in its home, `agent.db` and `config.yaml`.

| file | what it does |
|---|---|
| `format.py` | `Tai`: where it lies, what it looks like |
| `reading.py` | sessions as conversations |
| `writing.py` | a conversation as an `agent.db` |
| `configuration.py` | what it keeps besides, as pieces of a configuration of ours |
"""

__all__: list[str] = []
