"""Analysis of shell commands: their words, the options that an allow rule's wildcard may cover, and the commands that wrappers run."""
