"""The nouns and seams of moot, told in the order of a prompt's life.

A `conversation` holds `message`s made of `part`s. A prompt becomes a `run`; the run makes `step`s, each an `exchange` with a
vendor, whose own bytes (raw) and the `chunk`s they stand for are stored together as an `event` under one seq. What is needed from
above is a Protocol: `provider` (Provider, Dialect, Translator), `tool`, `agent` (AgentService), `context` (RunContext), `store`
(Log, Records, Conversations, Search, Blobs) and `engine` (Runs, Tail).

Values are frozen; JSON that belongs to somebody else (chunks, parts, metadata) stays plain JSON so that unknown fields live on.
"""

__all__: list[str] = []
