"""The format `gemini`: chats of Gemini CLI, a log of changes in JSON Lines."""

__all__: list[str] = []
