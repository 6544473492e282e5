"""The database file: its library, schema, locks, threads and transactions."""
