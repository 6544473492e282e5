"""What goes over the wire: a model for each thing, made from our frozen values by one function each.

| file | what |
|---|---|
| `base.py` | what all models have in common |
| `chat.py` | the body of the AI SDK's transport |
| `health.py` | whether the server works |
| `tokens.py` | tokens, and signing in |
"""

__all__: list[str] = []
