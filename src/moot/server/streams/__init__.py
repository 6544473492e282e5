"""Streams: a conversation as clients of the AI SDK see it, and as it is stored.

A chunk is in the log before anybody gets it, so a stream is a view of the log from some position on: `seq.k`, the k-th chunk of an event.
Whoever lost the stream says the last position and gets what comes after; whoever has none gets the message as it stands, in as few
chunks as make it, and then what comes after that.

| file | what |
|---|---|
| `chat.py` | what a request of the AI SDK's transport asks for |
| `answering.py` | answers that come inside a message: to approvals, and outputs of the client's own tools |
| `parts.py` | what a client says, as it is stored |
| `resume.py` | where a stream begins |
| `replay.py` | a message from its beginning |
| `paced.py` | a run's stream again, with the timing that it had |
| `scribes.py` | what one client sees: a message as chunks, or every event |
| `frames.py` | server-sent events as bytes; deltas joined |
| `view.py` | chunks and parts as a version of the AI SDK takes them |
| `excerpt.py` | large outputs: beginning, end, size and a link |
| `response.py` | the response: one write for what has come, heartbeats, slow readers |

| goes | wins |
|---|---|
| a client that leaves | the run goes on |
| a client that does not read | it is cut after a while; it never holds up a run, nor memory |
"""

__all__: list[str] = []
