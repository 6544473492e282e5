"""The format `recording`: conversations with their runs and raw exchanges, and captures of other programs."""
