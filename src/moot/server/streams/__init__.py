"""Streams: a conversation as clients of the AI SDK see it, and as it is stored.

A chunk is in the log before anybody gets it, so a stream is a view of the log from some position on: `seq.k`, the k-th chunk of an event.
Whoever lost the stream says the last position and gets what comes after; whoever has none gets the message as it stands, in as few
chunks as make it, and then what comes after that.

| goes | wins |
|---|---|
| a client that leaves | the run goes on |
| a client that does not read | it is cut after a while; it never holds up a run, nor memory |
"""

__all__: list[str] = []
