"""Conversations of other programs, brought in: found, read in a thread of their own, stored in short pieces, told of.

| file | what it holds |
|---|---|
| `sources.py` | what there is to read, below paths that are named or on this machine; what was read before and stands as it was |
| `claims.py` | whose each thing below a folder is, where several programs may have kept theirs |
| `reading.py` | a source read by its format in a worker thread, in pieces behind a bounded queue |
| `apart.py` | the same in a process of its own, when there is much to read |
| `reader.py` | the program of that process |
| `pricing.py` | what model calls must have cost, where the source says tokens and no money |
| `bringing.py` | sources one after the other, whatever is wrong with some of them |
| `intake.py` | one conversation on its way from pieces to the store |
| `watching.py` | what programs write while they write it |
| `whole.py` | recordings, which come in one transaction each |
| `configuring.py` | what programs keep besides, as one file of configuration to look at |
| `reports.py` | what became of everything |
"""

from moot.runtime.importing.bringing import Wanted, bring
from moot.runtime.importing.reports import Brought, Report
from moot.runtime.importing.sources import Places, Source, format_of, places_here, sources_at, sources_here

__all__ = ["Brought", "Places", "Report", "Source", "Wanted", "bring", "format_of", "places_here", "sources_at", "sources_here"]
