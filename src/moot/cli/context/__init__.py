"""What a command works with: its configuration, the store, and the conversations that the user refers to."""
