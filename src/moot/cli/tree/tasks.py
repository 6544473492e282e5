"""The commands of `moot tasks` and `moot worktrees`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

_PROJECT = "Without --project, this applies to the current directory's project."

TASKS = Group(
    "List, add and change tasks: work items in projects.",
    {
        "list": command(
            "commands.tasks:list_tasks",
            "List tasks by status.",
            ("moot tasks list", "moot tasks list --status in_review --tag ui", "moot tasks list login --project shop --json"),
            details="Archived tasks are listed only with --status archived.",
        ),
        "add": command(
            "commands.tasks:add_task",
            "Add a task.",
            ('moot tasks add "Fix the login"', 'moot tasks add "Write the docs" --tag docs --due 2026-12-24 --assignee writer'),
            details=_PROJECT,
        ),
        "show": command(
            "commands.tasks:show_task",
            "Show a task with its comments and history.",
            ("moot tasks show 12", "moot tasks show 12 --project shop --json"),
            details=_PROJECT,
        ),
        "edit": command(
            "commands.tasks:edit_task",
            "Change a task.",
            ('moot tasks edit 12 --title "Fix the sign-in"', 'moot tasks edit 12 --tag ui --tag bug --due ""'),
            details=_PROJECT,
        ),
        "move": command(
            "commands.tasks:move_task",
            "Change the status of tasks.",
            ("moot tasks move 12 in_review", "moot tasks move 12 13 14 done"),
            details=_PROJECT,
        ),
        "comment": command(
            "commands.tasks:comment_on_task",
            "Comment on a task.",
            ('moot tasks comment 12 "It fails on Tuesdays."',),
            details=_PROJECT,
        ),
        "remove": command(
            "commands.tasks:remove_task",
            "Permanently remove a task with its comments.",
            ("moot tasks remove 12", "moot tasks remove 12 --yes"),
            details=_PROJECT,
        ),
    },
    ("moot tasks", 'moot tasks add "Fix the login"', "moot tasks move 12 done"),
    details="Without a command, list the tasks of the current directory's project.",
    options=("--json",),
    default="list",
)

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
    details="Worktrees are stored in the repository's .worktrees folder.",
)
