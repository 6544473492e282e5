"""Output to stdout and stderr: data, messages, tables, progress and errors."""
