"""Knowledge from outside a conversation: memory in the prompt, text extraction from documents, and document search by words and meaning."""
