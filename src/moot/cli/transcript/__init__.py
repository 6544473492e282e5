"""Runs and stored messages drawn for a terminal. `run.Transcript` converts events to lines, without I/O or a clock."""
