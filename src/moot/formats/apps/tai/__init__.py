"""The format `tai`: TAI's database of conversations, and its configuration."""
