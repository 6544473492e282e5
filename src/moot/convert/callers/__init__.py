"""Moot as a model for other programs, in the dialects that they speak. Pure, like all of `convert/`.

A request of any dialect (OpenAI chat completions, OpenAI responses, Anthropic messages) becomes an `Asked`. The chunks of a run become
`Change`s of a few pieces (text, reasoning, calls of the caller's own tools), which each dialect writes as a stream or as a whole answer.
The joined stream equals the whole answer.
"""

__all__: list[str] = []
