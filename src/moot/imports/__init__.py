"""Import of other programs' conversations: find sources, read them outside the event loop, store them in short transactions, report."""
