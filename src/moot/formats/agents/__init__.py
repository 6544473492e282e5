"""Session files of coding agents and command-line tools."""
