"""The commands of `moot skills` and `moot plugins`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

SKILLS = Group(
    "List, install, check and enable skills: folders with instructions for certain tasks.",
    {
        "list": command(
            "commands.extensions.skills:list_skills",
            "List the skills that are available in this directory.",
            ("moot skills list", "moot skills list release --tag git", "moot skills list --json"),
            details="Skills that contain hidden text are marked. The status says whether a skill is used.",
        ),
        "show": command(
            "commands.extensions.skills:show_skill",
            "Show a skill.",
            ("moot skills show release", "moot skills show release --file references/steps.md"),
        ),
        "add": command(
            "commands.extensions.skills:add_skill",
            "Install a skill, after showing its content.",
            (
                "moot skills add ./release",
                "moot skills add release.zip --yes",
                "moot skills add release --index https://example.org/index.json",
                "moot skills add https://example.org/skills.git --commit 8f3c… --path skills/release",
            ),
            details="Exactly the content that is shown is installed. Later changes need 'moot skills accept' or 'moot skills update'.",
        ),
        "install-into": command(
            "commands.extensions.skill_for_agents:install_into",
            "Teach another agent to search your conversations.",
            ("moot skills install-into claude", "moot skills install-into codex --print"),
            details="A skill named moot-history is written into the agent's skills folder.",
        ),
        "search": command(
            "commands.extensions.skills:search_indexes",
            "Search indexes of skills and agents.",
            ("moot skills search release", "moot skills search --index https://example.org/index.json"),
            details="An index is a JSON file. By default, the indexes in the setting skills.indexes are searched.",
        ),
        "new": command(
            "commands.extensions.skills:new_skill",
            "Create a skill.",
            ('moot skills new release --description "Publish a release"',),
        ),
        "check": command(
            "commands.extensions.skills:check_skills",
            "Check skills for mistakes and hidden text.",
            ("moot skills check", "moot skills check ./release"),
            details="Each problem is printed with file and line. The exit code is 1 if there are errors.",
        ),
        "enable": command(
            "commands.extensions.skills:enable_skill",
            "Put a skill's instructions into every prompt.",
            ("moot skills enable release", "moot skills enable style --priority 10"),
        ),
        "offer": command(
            "commands.extensions.skills:offer_skill",
            "Let the model activate a skill when it needs it. This is the default.",
            ("moot skills offer release",),
        ),
        "disable": command("commands.extensions.skills:disable_skill", "Stop using a skill.", ("moot skills disable release",)),
        "accept": command("commands.extensions.skills:accept_skill", "Accept a skill that has changed.", ("moot skills accept release",)),
        "update": command(
            "commands.extensions.skills:update_skill",
            "Update an installed skill from its source.",
            ("moot skills update release", "moot skills update release --commit 1b2c…"),
        ),
        "remove": command("commands.extensions.skills:remove_skill", "Delete an installed skill.", ("moot skills remove release --yes",)),
        "scripts": command(
            "commands.extensions.skills:set_policy",
            "Set whether a skill's scripts may run: never, ask or allow.",
            ("moot skills scripts release allow",),
            details="Allowed scripts run in the sandbox without approval until the skill changes. The default is ask.",
        ),
    },
    ("moot skills list", "moot skills enable release"),
    details="Without a command, list the skills.",
    options=("--json",),
    default="list",
)

PLUGINS = Group(
    "Install and manage plugins: packages of commands, agents, skills, hooks and MCP servers.",
    {
        "list": command("commands.extensions.plugins:list_plugins", "List the installed plugins.", ("moot plugins list",)),
        "show": command("commands.extensions.plugins:show_plugin", "Show an installed plugin.", ("moot plugins show formatter",)),
        "install": command(
            "commands.extensions.plugins:install_plugin",
            "Install a Claude Code plugin, after showing what it contains and runs.",
            (
                "moot plugins install ./formatter",
                "moot plugins install formatter.zip --yes",
                "moot plugins install https://example.org/all.git --plugin formatter",
                "moot plugins install https://example.org/formatter.git",
            ),
            details="Exactly the content that is shown is installed."
            " If a file in the plugin changes, the whole plugin is disabled until you accept the change.",
        ),
        "update": command(
            "commands.extensions.plugins:update_plugin",
            "Update a plugin from its source.",
            ("moot plugins update formatter", "moot plugins update formatter --commit 1b2c…"),
        ),
        "accept": command(
            "commands.extensions.plugins:accept_plugin", "Accept a plugin whose files have changed.", ("moot plugins accept formatter",)
        ),
        "enable": command("commands.extensions.plugins:enable_plugin", "Enable a disabled plugin.", ("moot plugins enable formatter",)),
        "disable": command("commands.extensions.plugins:disable_plugin", "Stop using a plugin.", ("moot plugins disable formatter",)),
        "remove": command("commands.extensions.plugins:remove_plugin", "Delete a plugin.", ("moot plugins remove formatter --yes",)),
    },
    ("moot plugins list", "moot plugins install ./formatter"),
    details="Without a command, list the plugins.",
    options=("--json",),
    default="list",
)
