"""Permanent deletion from every place that stores text, with a receipt.

A purge deletes whole conversations; a redaction removes strings everywhere. Both are stored jobs with repeatable steps: after a crash, the
next process resumes them. The receipt is stored in the same transaction as the changes that it reports. At the end the file itself is
cleaned: indexes are merged, every page is rewritten, and the write-ahead log is emptied. Only one process at a time does this.
"""

from moot.store.maintenance.purge.eraser import Eraser

__all__ = ["Eraser"]
