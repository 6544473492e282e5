"""The REPL: `moot` without a command.

`conversing` opens the engine and chooses the screen (`desk`) or plain lines (`plain`). Both share the conversation (`talk`), which knows
no terminal, and the handling of typed lines (`doing`).
"""

__all__: list[str] = []
