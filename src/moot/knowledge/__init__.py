"""Knowledge beyond a conversation: memory in the prompt, the text of documents, and searching documents by words and meaning."""
