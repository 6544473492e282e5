"""Skills: finding, checking and installing them, the user's decisions about them, and their part of the system prompt."""
