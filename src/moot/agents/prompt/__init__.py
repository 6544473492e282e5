"""The system prompt of a step, made of named parts."""
