"""TAI: its database of conversations, and its configuration."""
