"""Streams, session files and captures of outside agents."""
