"""The format `cherry`: Cherry Studio's databases of chats and agents, and the configuration that they contain."""
