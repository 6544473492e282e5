"""The command line: commands, terminal output and the interactive conversation.

Only data is written to stdout; messages go to stderr. `tree` declares the commands, which are imported only when they run. `arguments`
parses command lines, prints help and completes words, all from the commands' signatures.
"""

__all__: list[str] = []
