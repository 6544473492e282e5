"""The tree of commands, from which the parser, help pages and completion are generated."""

from moot.cli.tree.nodes import Command, Group
from moot.cli.tree.root import TREE

__all__ = ["TREE", "Command", "Group"]
