"""The commands of `moot worktrees`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

WORKTREES = Group(
    "List, compare and remove the git worktrees in which agents work.",
    {
        "list": command("commands.worktrees:list_worktrees", "List worktrees.", ("moot worktrees list",)),
        "diff": command("commands.worktrees:diff_worktree", "Print the changes in a worktree.", ("moot worktrees diff parser",)),
        "remove": command(
            "commands.worktrees:remove_worktree",
            "Remove a worktree.",
            ("moot worktrees remove parser", "moot worktrees remove parser --force"),
            details="Without '--force', a worktree with uncommitted changes is kept. Commits stay on its branch in any case.",
        ),
    },
    ("moot run --worktree=parser 'rewrite the parser'", "moot worktrees diff parser", "git merge moot/parser"),
    details="The worktrees of the current folder's repository are in its folder .worktrees.",
)
