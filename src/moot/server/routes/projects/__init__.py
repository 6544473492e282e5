"""Projects and what is in them."""
