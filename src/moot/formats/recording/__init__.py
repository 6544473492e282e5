"""The format `recording`: conversations with their runs and the raw data of their model calls, and captured output of other agents."""
