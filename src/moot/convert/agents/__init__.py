"""Convert external agents' streams, session files and captured output."""
