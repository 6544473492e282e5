"""The REPL: `moot` without a command.

`loop` opens the engine and chooses the screen (`screen`) or plain lines (`plain`). Both share the conversation (`conversation`), which
is independent of the terminal, and the handling of typed lines (`input`).
"""

__all__: list[str] = []
