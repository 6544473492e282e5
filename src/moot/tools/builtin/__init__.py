"""The built-in tools. Tools with the same subject are in one file."""
