"""The context of a command: configuration, store, and the conversations that the user refers to."""
