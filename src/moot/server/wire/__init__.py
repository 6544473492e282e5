"""What goes over the wire: a model for each thing, made from our frozen values by one function each.

| file | what |
|---|---|
| `base.py` | what all models have in common |
| `chat.py` | the body of the AI SDK's transport |
| `health.py`, `store.py` | whether the server works; what takes how much |
| `conversations.py`, `runs.py`, `approvals.py` | conversations with their messages and prompts; runs; what is asked and answered |
| `projects.py`, `blobs.py`, `finding.py` | projects with their files; blobs; what was found and counted |
| `forgetting.py` | receipts of what was forgotten for good |
| `imports.py` | what to bring in, what is found, how far it is |
| `comparing.py` | two conversations side by side |
| `deciding.py` | agents, models, providers, tools, commands |
| `permissions.py` | rules, grants, rulings |
| `config.py` | the configuration |
| `shares.py` | formats, and pages that are shared |
| `tokens.py` | tokens, and signing in |
"""

__all__: list[str] = []
