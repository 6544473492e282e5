"""Command-line arguments: the declarations in command signatures, and the parser, help and completion derived from them.

| module | contents |
|---|---|
| `parameters.py` | `Parameter`, which commands use in `Annotated` to declare an argument |
| `signatures.py` | a command's signature as a list of arguments, and parsed values as its call |
| `parser.py` | command lines as calls |
| `help.py` | help pages |
"""

__all__: list[str] = []
