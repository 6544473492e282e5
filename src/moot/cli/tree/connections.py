"""The commands for extensions and other programs: `moot channels`, `moot commands`, `moot mcp`, `moot tokens` and `moot webhooks`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

CHANNELS = Group(
    "List, test and run channels: chat programs such as Discord in which people talk to moot.",
    {
        "list": command("commands.channels:list_", "List channels and the packages that provide them.", ("moot channels list",)),
        "serve": command(
            "commands.channels:serve_channel",
            "Answer messages from one channel until Ctrl+C.",
            ("moot channels serve discord",),
            details="'moot serve' does this for all configured channels.",
        ),
        "test": command("commands.channels:test", "Test whether a channel can connect.", ("moot channels test discord",)),
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
        "list": command("commands.webhooks:list_", "List the configured webhooks.", ("moot webhooks list",)),
        "history": command(
            "commands.webhooks:history",
            "Show the deliveries of outgoing webhooks, newest first.",
            ("moot webhooks history", "moot webhooks history chat --limit 10"),
        ),
        "test": command(
            "commands.webhooks:test",
            "Send a test event to an outgoing webhook.",
            ("moot webhooks test chat",),
            details="The event 'webhook.test' is sent once. 'moot webhooks history' shows the result.",
        ),
    },
    ("moot webhooks list", "moot webhooks test chat"),
)
