"""Moot as a model for other programs: what they ask, in their words, and what they are told, in theirs. Pure, as all of `convert/`.

A request of a foreign dialect (OpenAI chat completions, OpenAI responses,
Anthropic messages) becomes an `Asked`, which is the same for all of them; the chunks of a run become `Change`s of a few
pieces (text, reasoning, calls of the caller's own tools), and each dialect writes those, streamed or whole. The stream joined is the
whole answer.

| file | what it holds |
|---|---|
| `asked.py` | `Asked`: what another program wants of a model |
| `fields.py` | the fields of somebody else's JSON, read with words for what is wrong |
| `drafts.py` | a caller's messages on their way to ours |
| `chat_request.py`, `responses_request.py`, `messages_request.py` | a request of each dialect |
| `telling.py` | chunks, or stored parts, as the pieces that a caller is told |
| `chat_answer.py`, `responses_answer.py`, `messages_answer.py` | the pieces in each dialect, streamed and whole |
| `refusals.py` | errors as each vendor's clients know them |
| `digests.py` | which earlier answer a caller goes on from, by what it sends back |
"""

__all__: list[str] = []
