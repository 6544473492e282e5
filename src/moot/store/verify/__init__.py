"""Is what is stored what it was, and does it follow from the raw bytes? Everything here only reads.

One pass over a conversation's log judges all that hangs on it, in stretches of one snapshot each, on the thread that reads:

* every seq is there, every event fits its own `check`;
* an exchange's raw bytes, given once more to the converter that made its chunks, give the same chunks and the same end, as long as that
  converter is here in that version; else it is counted by the converter that made it;
* a run's events fold to its message, and its calls add up to its sums; a live one is judged as far as its message is folded;
* rows of exchanges, runs and messages say what their events say; a request's pieces are there.

Then every blob is hashed. The search index is not judged: it is made from messages, and made again when it is lost.

| file | what it holds |
|---|---|
| `verifier.py` | the stretches, over one conversation or all of the store |
| `conversations.py` | the pass over one conversation's log |
| `exchanges.py` | an exchange translated again |
| `runs.py` | a run folded again |
| `growing.py` | messages that came in pieces |
| `blobs.py` | blobs hashed again |
| `rows.py` | the rows of the log as they are stored |
| `findings.py` | where what is found goes |
"""

from moot.store.verify.verifier import StoreVerifier

__all__ = ["StoreVerifier"]
