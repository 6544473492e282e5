"""The commands for extensions and connections: `moot channels`, `commands`, `mcp`, `tokens`, `webhooks`, `skills` and `plugins`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

CHANNELS = Group(
    "List, test and run channels: chat services such as Discord where people can talk to moot.",
    {
        "list": command("commands.connections:list_channels", "List channels and the packages that provide them.", ("moot channels list",)),
        "serve": command(
            "commands.connections:serve_channel",
            "Answer messages from one channel until Ctrl+C.",
            ("moot channels serve discord",),
            details="'moot serve' does this for all configured channels.",
        ),
        "test": command("commands.connections:test_channel", "Test whether a channel can connect.", ("moot channels test discord",)),
    },
    ("moot channels list", "moot channels test discord"),
)

COMMANDS = Group(
    "List and run slash commands: built-in ones, and those that you write as Markdown files.",
    {
        "list": command(
            "commands.extensions.slash:list_commands", "List the commands that can be used in this directory.", ("moot commands list",)
        ),
        "show": command("commands.extensions.slash:show_command", "Show a command and its text.", ("moot commands show review",)),
        "run": command(
            "commands.extensions.slash:run_command",
            "Run a command, and print the answer if it sends a prompt.",
            ("moot commands run review main..HEAD", "moot commands run compact -c 1"),
        ),
    },
    ("moot commands list", "moot commands run review"),
)

MCP = Group(
    "Connect MCP servers, which provide tools for agents.",
    {
        "list": command(
            "commands.extensions.mcp:list_servers", "List the configured servers.", ("moot mcp list", "moot mcp list --connect")
        ),
        "add": command(
            "commands.extensions.mcp:add_server",
            "Add a server and show its tools.",
            (
                "moot mcp add git -- uvx mcp-server-git",
                "moot mcp add docs --url https://example.org/mcp --header 'Authorization=Bearer ${DOCS_KEY}'",
            ),
            details="Agents get all tools that the server has now. Tools that it adds or changes later must be accepted first.",
        ),
        "show": command("commands.extensions.mcp:show_server", "Show a server and its accepted tools.", ("moot mcp show git",)),
        "test": command("commands.extensions.mcp:test_server", "Connect to a server and show its tools.", ("moot mcp test git",)),
        "accept": command(
            "commands.extensions.mcp:accept_changes", "Accept the tools that a server has added or changed.", ("moot mcp accept git",)
        ),
        "call": command(
            "commands.extensions.mcp:call_tool", "Call a tool on a server.", ('moot mcp call git git_status \'{"repo_path": "."}\'',)
        ),
        "resources": command("commands.extensions.mcp:list_resources", "List the resources of a server.", ("moot mcp resources docs",)),
        "read": command(
            "commands.extensions.mcp:read_resource",
            "Print a resource from a server.",
            ("moot mcp read docs file:///guide.md",),
        ),
        "serve": command(
            "commands.extensions.mcp_serve:serve_history",
            "Let other agents search and read your conversations over MCP.",
            ("moot mcp serve", "moot mcp serve --allow-runs", "moot mcp serve --port 8600"),
            details="Agents start this command themselves. With --port, clients need a token from 'moot tokens create'.",
        ),
        "login": command(
            "commands.extensions.mcp:log_in",
            "Sign in to a remote server in the browser.",
            ("moot mcp login docs", "moot mcp login docs --no-open --port 8765"),
            details="The login is stored in moot's home directory, in a file that only you can read. It is refreshed when it expires.",
        ),
        "logout": command("commands.extensions.mcp:log_out", "Delete the stored login for a server.", ("moot mcp logout docs",)),
        "enable": command("commands.extensions.mcp:enable_server", "Let agents use a server.", ("moot mcp enable git",)),
        "disable": command(
            "commands.extensions.mcp:disable_server", "Stop using a server, but keep its configuration.", ("moot mcp disable git",)
        ),
        "remove": command("commands.extensions.mcp:remove_server", "Remove a server from the configuration.", ("moot mcp remove git",)),
    },
    ("moot mcp list", "moot mcp add git -- uvx mcp-server-git"),
)

KERNEL = Group(
    "Use moot in Jupyter notebooks.",
    {
        "install": command(
            "commands.extensions.kernel:install",
            "Install the kernel, so that Jupyter offers it for notebooks.",
            ("moot kernel install", "moot kernel install --sys-prefix"),
            details="The kernel uses the Python environment in which this command runs.",
        ),
        "list": command("commands.extensions.kernel:list_kernels", "Show where the kernel is installed.", ("moot kernel list",)),
        "uninstall": command(
            "commands.extensions.kernel:uninstall", "Remove the kernel from Jupyter. Conversations are kept.", ("moot kernel uninstall",)
        ),
    },
    ("moot kernel install", "moot kernel list"),
)

TOKENS = Group(
    "Manage access tokens for the server.",
    {
        "list": command("commands.tokens:list_tokens", "List active tokens.", ("moot tokens list", "moot tokens list --all")),
        "create": command(
            "commands.tokens:create_token",
            "Create a token and print its secret.",
            ("moot tokens create laptop", "moot tokens create ci --scopes read --user mara --expires 30d"),
            details="The secret is not stored and cannot be shown again.",
        ),
        "revoke": command("commands.tokens:revoke_token", "Revoke a token.", ("moot tokens revoke laptop",)),
    },
    ("moot tokens list", "moot tokens create laptop"),
)

WEBHOOKS = Group(
    "List and test webhooks: incoming ones start runs, outgoing ones report runs.",
    {
        "list": command("commands.connections:list_webhooks", "List the configured webhooks.", ("moot webhooks list",)),
        "history": command(
            "commands.connections:webhook_history",
            "Show the deliveries of outgoing webhooks, newest first.",
            ("moot webhooks history", "moot webhooks history chat --limit 10"),
        ),
        "test": command(
            "commands.connections:test_webhook",
            "Send a test event to an outgoing webhook.",
            ("moot webhooks test chat",),
            details="The event 'webhook.test' is sent once. 'moot webhooks history' shows the result.",
        ),
    },
    ("moot webhooks list", "moot webhooks test chat"),
)


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
            details="moot installs exactly the content shown. To apply later changes, use 'moot skills accept' or 'moot skills update'.",
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
