"""Cherry Studio: its databases of chats and agents, and the configuration in them."""
