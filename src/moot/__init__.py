"""moot: one home for every AI agent's conversations.

`moot.open`, `moot.run_sync` and the other public names are loaded from `moot.library` on first use; `import moot` alone loads nothing.
"""

from importlib import import_module

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # the machinery of imports asks for submodules here, too, and those are all of small letters
    if name not in ("open", "run_sync") and not name[:1].isupper():
        raise AttributeError(f"module 'moot' has no attribute {name!r}")
    return import_module("moot.plugins").FACES.load("library")(name)
