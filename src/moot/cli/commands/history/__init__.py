"""The commands for stored conversations: search, statistics, import, export and sharing."""
