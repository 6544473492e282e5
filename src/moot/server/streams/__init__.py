"""Streams of conversations: chunks for AI SDK clients, and stored events.

A chunk is stored before any client receives it, so a stream is a view of the log from a position `seq.k`, the k-th chunk of an event. A
client that lost its stream sends the last position and receives what follows. A client without a position receives the current message
in as few chunks as possible, and then what follows.

A client that disconnects does not stop the run. A client that does not read is disconnected after a while and never blocks a run or
fills the memory.
"""

__all__: list[str] = []
