"""The nouns and seams of moot, told in the order of a prompt's life.

A `conversation` holds `message`s made of `part`s. A prompt becomes a `run`; the run makes `step`s, each an `exchange` with a
vendor, whose own bytes (raw) and the `chunk`s they stand for are stored together as an `event` under one seq. What is needed from
above is a Protocol: `provider` (Provider, Dialect, Translator), `tool`, `agent` (AgentService), `context` (RunContext),
`store` (Log, Records, Conversations, Tree, Projects, Search, Blobs), `engine` (Runs, Tail),
`format` (Format) and `channel` (Channel, ChannelRuntime).

| file | what it holds |
|---|---|
| `conversation.py`, `message.py`, `part.py` | the record: conversation and project, an entry with a role, a finished piece |
| `run.py`, `exchange.py`, `event.py`, `chunk.py` | one prompt to its end, one talk with a vendor, what is stored of it, a streamed piece |
| `agent.py`, `model.py`, `usage.py`, `limits.py`, `approval.py` | who answers, with which weights, what it took, may take, and may do |
| `outside.py`, `effect.py` | what passes between moot and an agent that is a program of its own; what a call may do to the world |
| `provider.py`, `facts.py`, `tool.py`, `context.py`, `format.py`, `channel.py` | the seams to what is added |
| `store.py`, `conversations.py`, `tree.py`, `projects.py`, `search.py`, `meaning.py`, `stats.py`, `blob.py` | the seams to what keeps |
| `verify.py`, `upkeep.py` | the seams to what looks after what is kept |
| `forgetting.py`, `backup.py` | the seams to what takes away for good, and to what makes a copy of all |
| `retention.py` | how long conversations stay |
| `recording.py` | a conversation with its runs, as a file holds it |
| `installing.py` | the seam of formats whose program goes on with what we write |
| `imports.py` | what was brought in from other programs, piece by piece |
| `media.py` | pictures and sound, and the seam to the models that make or hear them |
| `engine.py` | the seams to what runs |
| `share.py` | pages for whoever has their link |
| `page.py` | a stretch of a list |
| `token.py`, `idempotency.py` | who may ask a server for what; what is not to be done twice |
| `canonical.py`, `ids.py` | JSON and ids as moot writes them |
| `mcp.py` | servers of the Model Context Protocol |
| `served.py` | what a run serves another program that uses moot as a model |
| `crash.py` | named instants at which a test may kill the process |

Values are frozen; JSON that belongs to somebody else (chunks, parts, metadata) stays plain JSON so that unknown fields live on.
"""

__all__: list[str] = []
