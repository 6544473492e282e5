"""Conversion for other programs that call moot as a model provider, in the dialect of their client. No I/O, as in all of `convert/`.

A request in any dialect (OpenAI Chat Completions, OpenAI Responses, Anthropic Messages) becomes a `CallerRequest`. The chunks of a run
become `Change`s of a few pieces (text, reasoning, calls of the caller's own tools), which each dialect writes as a stream or as a complete
answer. The joined stream equals the complete answer.
"""

__all__: list[str] = []
