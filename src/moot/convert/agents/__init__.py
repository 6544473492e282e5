"""Convert outside agents' streams, session files and captured output."""
