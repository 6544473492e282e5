"""Streams of conversations: chunks for AI SDK clients, and stored events.

A chunk is stored before any client receives it, so a stream can start at any position of the log. A position is written `seq.k`: the
k-th chunk of the event with sequence number `seq`. A client that lost its connection sends the last position and receives the rest. A
client without a position receives the current message in as few chunks as possible, followed by new chunks.

A client that disconnects does not stop the run. A client that does not read is disconnected after a while. It never blocks a run or
fills the memory.
"""

__all__: list[str] = []
