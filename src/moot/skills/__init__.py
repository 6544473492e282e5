"""Skills: finding, checking and installing them, what a person has decided about them, and their part of the system prompt."""
