"""Runs and stored messages drawn for a terminal. `run.Transcript` turns events into lines, without I/O or a clock."""
