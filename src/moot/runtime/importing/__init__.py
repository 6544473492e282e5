"""Import of other programs' conversations: find sources, read them outside the event loop, store them in short transactions, report."""

from moot.runtime.importing.bringing import Wanted, bring
from moot.runtime.importing.reports import Brought, Report
from moot.runtime.importing.sources import Places, Source, format_of, places_here, sources_at, sources_here

__all__ = ["Brought", "Places", "Report", "Source", "Wanted", "bring", "format_of", "places_here", "sources_at", "sources_here"]
