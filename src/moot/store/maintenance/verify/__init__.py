"""Verifying stored data against its checksums and raw bytes. Read-only.

One pass over a conversation's log checks everything that depends on it, on the reader thread, in batches of one snapshot each:

* the seqs have no gaps, and every event matches its `check`;
* an exchange's raw bytes, fed again to the converter that made its chunks, give the same chunks and ending; if that version of the
  converter is not available, the exchange is only counted;
* a run's events fold to its message, and the usage and cost of its model calls add up to its stored sums; a live run is checked up to the
  last event in its stored message;
* rows of exchanges, runs and messages match their events, and the blobs with the pieces of model requests exist.

Then every blob is hashed. The search index is not checked, because it can be rebuilt from messages.
"""

from moot.store.maintenance.verify.verifier import StoreVerifier

__all__ = ["StoreVerifier"]
