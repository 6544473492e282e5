"""The tree of commands. Commands are imported when they are called."""

from __future__ import annotations

from moot.cli.tree.extensions import CHANNELS, COMMANDS, KERNEL, MCP, PLUGINS, SKILLS, TOKENS, WEBHOOKS
from moot.cli.tree.nodes import Group, command
from moot.cli.tree.work import CHAT, CRON, KNOWLEDGE, MEMORY, TASKS, WORKTREES

PROJECTS = Group(
    "Manage projects: folders of conversations with shared context and rules.",
    {
        "list": command("commands.history.projects:list_", "List projects by name.", ("moot projects list",)),
        "show": command("commands.history.projects:show", "Show a project.", ("moot projects show default",)),
        "add": command(
            "commands.history.projects:add",
            "Create a project.",
            ("moot projects add shop --root ~/shop", 'moot projects add thesis --context "About bees." --rules "Cite every claim."'),
        ),
        "edit": command(
            "commands.history.projects:edit",
            "Change a project. Settings that you don't specify stay unchanged.",
            ('moot projects edit shop --rules "No new tables."',),
        ),
        "move": command(
            "commands.history.projects:move",
            "Tell moot that a folder was renamed or moved.",
            ("moot projects move ~/old ~/new", "moot projects move ~/old ~/new --dry-run"),
            details="Conversations and projects in the old folder then belong to the new one. No files are moved.",
        ),
        "remove": command(
            "commands.history.projects:remove",
            "Remove a project. Its conversations move to the default project.",
            ("moot projects remove shop", "moot projects remove shop --yes"),
        ),
    },
    ("moot projects list", "moot projects add shop --root ~/shop"),
)

CONFIG = Group(
    "Show and change the configuration.",
    {
        "show": command(
            "commands.maintenance.config:show", "Show the effective settings, with secrets masked.", ("moot config show --origin",)
        ),
        "get": command("commands.maintenance.config:get", "Show one effective setting.", ("moot config get models.main",)),
        "set": command(
            "commands.maintenance.config:set_",
            "Set a value in your configuration file.",
            ("moot config set models.main small@ollama", "moot config set limits.steps 20"),
            details="Comments in the file are kept.",
        ),
        "edit": command("commands.maintenance.config:edit", "Edit and check your configuration file.", ("moot config edit",)),
        "check": command(
            "commands.maintenance.config:check",
            "Check the configuration and the slash commands.",
            ("moot config check",),
            details="Errors are printed with file, line and column.",
        ),
    },
    ("moot config show --origin", "moot config set models.main small@ollama"),
)

MODELS = Group(
    "List, download, choose and test models.",
    {
        "list": command(
            "commands.agents:list_models",
            "List the models of all available providers.",
            ("moot models list", "moot models list ollama --json"),
            details="Embedded models are listed even before their download, with size and memory, and whether this machine can run them.",
        ),
        "pull": command(
            "commands.agents:pull_model",
            "Download the weights of an embedded model, which runs inside moot.",
            ("moot models pull", "moot models pull qwen2.5-coder-1.5b"),
            details="The size and the publisher are shown before the download starts. --verbose also shows the license and the source. "
            "'moot models list local' shows all names.",
        ),
        "choose": command(
            "commands.agents:choose_main_model",
            "Choose the main model.",
            ("moot models choose", "moot models choose --yes"),
            details="The available models are listed, and your choice is tested before it is saved.",
        ),
        "prices": command(
            "commands.history.prices:prices",
            "Show the prices of models, or update the price list.",
            ("moot models prices", "moot models prices gpt-5 claude-sonnet-4-5", "moot models prices --update"),
            details="Prices in your configuration (`providers.NAME.models.MODEL.price`) take precedence over the list.",
        ),
        "test": command(
            "commands.agents:test_model", "Test a model with a short prompt.", ("moot models test claude-sonnet-4-5@anthropic",)
        ),
    },
    ("moot models list", "moot models choose"),
)

PROVIDERS = Group(
    "List and test model providers.",
    {
        "list": command(
            "commands.agents:list_providers",
            "List providers and what is missing to use each one.",
            ("moot providers list",),
            details="For a model name without a provider, moot searches the providers in this order.",
        ),
        "test": command("commands.agents:test_provider", "Test a provider with a short prompt.", ("moot providers test ollama",)),
    },
    ("moot providers list", "moot providers test ollama"),
)

TOOLS = Group(
    "List and show tools.",
    {
        "list": command("commands.tools:list_tools", "List tools and whether they are available.", ("moot tools list",)),
        "show": command("commands.tools:show_tool", "Show a tool's description and schema.", ("moot tools show read_file",)),
    },
    ("moot tools list", "moot tools show read_file"),
)

AGENTS = Group(
    "List, create, edit and test agents.",
    {
        "list": command("commands.agents:list_agents", "List the available agents.", ("moot agents list", "moot agents list --all")),
        "show": command(
            "commands.agents:show_agent",
            "Show an agent or its system prompt.",
            ("moot agents show default", "moot agents show local --prompt"),
        ),
        "tree": command(
            "commands.chat.runs:agent_tree",
            "Show the sub-agents of a conversation with their status, cost, changed files and first prompt.",
            ("moot agents tree", "moot agents tree 01a2"),
            remote=True,
        ),
        "new": command("commands.agent_files:new_agent", "Create an agent in a Markdown file.", ("moot agents new tester",)),
        "edit": command("commands.agent_files:edit_agent", "Edit an agent's file.", ("moot agents edit tester --model small",)),
        "copy": command("commands.agent_files:copy_agent_file", "Copy an agent to a new file.", ("moot agents copy reviewer strict",)),
        "install": command(
            "commands.agent_files:install_agent",
            "Install an agent from an index, after showing it.",
            ("moot agents install reviewer --index https://example.org/index.json",),
        ),
        "remove": command("commands.agent_files:remove_agent", "Delete an agent's file.", ("moot agents remove tester",)),
        "test": command("commands.agents:test_agent", "Test an agent with a short prompt. Nothing is stored.", ("moot agents test codex",)),
        "add": command(
            "commands.agents:add_agent",
            "Add an agent to your configuration.",
            ('moot agents add reviewer --model small --instructions "Review what I show you."', "moot agents add mine -- my-agent --acp"),
        ),
    },
    ("moot agents list", "moot agents new tester", "moot agents test codex"),
)

COMPLETION = Group(
    "Set up shell completion.",
    {
        "install": command(
            "commands.maintenance.completion:install",
            "Install the completion script for your shell.",
            ("moot completion install", "moot completion install zsh"),
            bare=True,
            remote=True,
        ),
        "show": command(
            "commands.maintenance.completion:show",
            "Print the completion script for a shell.",
            ("moot completion show bash",),
            bare=True,
            remote=True,
        ),
        "words": command(
            "commands.maintenance.completion:words",
            "Print the completions for a command line. Used by the completion scripts.",
            ('moot completion words bash "moot chat "',),
            bare=True,
            remote=True,
        ),
    },
    ("moot completion install", "moot completion show bash"),
)

PERMISSIONS = Group(
    "List, test, suggest, add and remove permission rules.",
    {
        "list": command(
            "commands.tools:list_rules",
            "List permission rules and where each one is defined.",
            ("moot permissions list", "moot permissions list --conversation 1"),
        ),
        "test": command(
            "commands.tools:test_rule",
            "Show whether a tool call would be allowed, and by which rule.",
            ('moot permissions test shell "git push; ls"',),
        ),
        "suggest": command(
            "commands.tools:suggest_rules",
            "Suggest rules for commands that you have allowed repeatedly.",
            ("moot permissions suggest",),
            details="Nothing is changed: each suggestion comes with the command that adds it.",
        ),
        "allow": command(
            "commands.tools:allow_rule",
            "Add an allow rule to your configuration.",
            ('moot permissions allow shell "git status *"',),
        ),
        "remove": command(
            "commands.tools:remove_rule",
            "Remove a rule from your configuration, or a permission granted in a conversation.",
            ('moot permissions remove shell "git status *"',),
        ),
    },
    ("moot permissions list", 'moot permissions test shell "git push; ls"'),
)

STORE = Group(
    "Show the size of the database and compact it.",
    {
        "stats": command(
            "commands.maintenance.store:store_stats",
            "Show disk usage by table and conversation.",
            ("moot store stats", "moot store stats --limit 3", "moot store stats --json"),
        ),
        "compact": command(
            "commands.maintenance.store:compact",
            "Compress finished conversations and shrink the database file.",
            ("moot store compact", "moot store compact --dry-run", "moot store compact --all"),
        ),
    },
    ("moot store stats", "moot store compact --dry-run"),
)

APPROVALS = Group(
    "List and answer open approval requests and questions in all conversations.",
    {
        "list": command(
            "commands.approvals:list_", "List open approval requests and questions, oldest first.", ("moot approvals list",), remote=True
        ),
        "show": command(
            "commands.approvals:show",
            "Show a tool call or question in full, and what each answer would allow.",
            ("moot approvals show 1",),
            remote=True,
        ),
        "allow": command(
            "commands.approvals:allow",
            "Allow a tool call, or answer the questions of an agent.",
            (
                "moot approvals allow 1",
                "moot approvals allow 1 --for conversation",
                'moot approvals allow 1 --for always --pattern "git push *"',
                "moot approvals allow 2 --answer Python --follow",
            ),
            details="Only the first answer counts. The run then continues in the process that is waiting for the answer,"
            " or in this process with --follow.",
            remote=True,
        ),
        "deny": command(
            "commands.approvals:deny",
            "Deny a tool call, or refuse to answer the questions of an agent.",
            ('moot approvals deny 1 --reason "wrong folder"',),
            remote=True,
        ),
    },
    ("moot approvals list", "moot approvals show 1", "moot approvals allow 1"),
)


TREE = Group(
    "One home for every AI agent's conversations.",
    {
        "run": command(
            "run:run",
            "Run one prompt and print the answer.",
            (
                'moot run "what does README.md say?"',
                'git diff | moot run "write a commit message" -m small',
                'moot run -c "and now the tests" --json',
                'moot run --reply "shorter, please"',
                'moot run --schema answer.json -f photo.png "what is on it?"',
            ),
            remote=True,
        ),
        "chat": CHAT,
        "ps": command(
            "commands.chat.runs:ps",
            "List the active runs of all moot processes.",
            ("moot ps", "moot ps --once", "moot ps --watch", "moot ps --json"),
            details=(
                "In a terminal, the list stays up to date and also shows runs that ended within a day. You can open, answer and stop runs "
                "in it."
            ),
            stays=True,
            remote=True,
        ),
        "stats": command(
            "commands.history.stats:stats",
            "Show token usage and cost.",
            (
                "moot stats",
                "moot stats --by model --days 7",
                "moot stats --by hour --days 1 --tz UTC",
                "moot stats --by window",
                "moot stats -c 1 --sub-agents",
                "moot stats --statusline",
            ),
            bare=True,
        ),
        "budgets": command(
            "commands.history.usage:budgets",
            "Show budgets and how much of each has been spent.",
            ("moot budgets", "moot budgets --json"),
        ),
        "search": command(
            "commands.history.search:search",
            "Search the messages of all conversations.",
            (
                "moot search exit code",
                "moot search '\"exit code\" role:user after:7d'",
                "moot search pantry -c 1",
                "moot search 'migration -draft agent:codex' --best",
                "moot search --meaning what was that about the container that kept restarting",
            ),
            details='A query can contain words, "phrases", excluded -words, and filters: role: agent: model: project: in: has: after: '
            "before: cost: status:",
            bare=True,
            remote=True,
        ),
        "verify": command(
            "commands.maintenance.verify:verify",
            "Verify stored conversations against their checksums and raw data.",
            ("moot verify", "moot verify 1", "moot verify --all --json", "moot verify --upgrade --all --dry-run"),
            details="The exit code is 1 if anything differs.",
        ),
        "backup": command(
            "commands.maintenance.store:backup",
            "Back up all data to one file.",
            ("moot backup", "moot backup /mnt/disk/moot.backup", "moot backup --check moot.backup"),
            details="You can use moot during the backup. The backup file is verified after it is written.",
        ),
        "restore": command(
            "commands.maintenance.store:restore",
            "Restore all data from a backup.",
            ("moot restore moot.backup", "moot restore moot.backup --into ~/another", "moot restore moot.backup --replace"),
            details="Nothing is changed if the restore fails. Existing data is replaced only with --replace.",
        ),
        "purge": command(
            "commands.maintenance.purge:purge",
            "Permanently delete conversations and print a receipt.",
            ("moot purge 0193a4", "moot purge --deleted --dry-run", "moot purge --before 2025-01-31 --yes", "moot purge --expired"),
        ),
        "scan": command(
            "commands.maintenance.purge:scan",
            "Search all stored data for secrets such as API keys and passwords.",
            ("moot scan", "moot scan 1 --places", "moot scan --agent codex --since 30d", "moot scan --all --json"),
            details="Secrets are printed masked. The exit code is 1 if any are found. Remove them with 'moot redact --finding'.",
        ),
        "redact": command(
            "commands.maintenance.purge:redact",
            "Permanently remove strings from all stored data.",
            (
                "moot redact",
                "moot redact --from secrets.txt --yes",
                "moot redact --finding 3f9c1a20b7d84e65",
                "moot redact --finding all --dry-run",
                "moot redact -c 1 --regex 'sk-[A-Za-z0-9]{20,64}' --dry-run",
            ),
        ),
        "import": command(
            "commands.history.import_:import_",
            "Import conversations from other agents and programs.",
            (
                "moot import --all",
                "moot import --all --watch",
                "moot import ~/backup/claude export.zip",
                "moot import ~/.tailored-ai --configuration found.yaml",
                "moot import capture.jsonl -f recording --agent-type codex",
            ),
            details="Importing again adds only what is new.",
        ),
        "sync": command(
            "commands.history.sync:sync",
            "Import conversations from other machines over ssh.",
            ("moot sync", "moot sync laptop server", "moot sync --dry-run", "moot sync laptop --json"),
            details="The machines are listed in the configuration section 'hosts'. Nothing is written or installed on them.\n"
            "Syncing again fetches and adds only what is new. The exit code is 1 if a machine failed.",
        ),
        "replay": command(
            "commands.history.replay:replay",
            "Replay a conversation with its original timing.",
            ("moot replay 1", "moot replay 1 --speed 4", "moot replay 1 --rerun", "moot replay 1 --rerun --model small@ollama"),
        ),
        "share": command(
            "commands.history.export:share",
            "Share a conversation as a read-only page on your server.",
            ("moot share 1", "moot share 1 --expires 12h --preview page.html", "moot share --list", "moot share --revoke 019a"),
            details="Secrets, home directories, names and e-mail addresses are removed from the page.",
        ),
        "export": command(
            "commands.history.export:export",
            "Export conversations to a file.",
            (
                "moot export 1 -f md",
                "moot export 1 -f html --share -o talk.html",
                "moot export 1 -f claude --install",
                "moot export --all -f md -o backup",
            ),
        ),
        "models": MODELS,
        "providers": PROVIDERS,
        "tools": TOOLS,
        "channels": CHANNELS,
        "commands": COMMANDS,
        "mcp": MCP,
        "skills": SKILLS,
        "plugins": PLUGINS,
        "webhooks": WEBHOOKS,
        "approvals": APPROVALS,
        "agents": AGENTS,
        "projects": PROJECTS,
        "worktrees": WORKTREES,
        "tasks": TASKS,
        "memory": MEMORY,
        "knowledge": KNOWLEDGE,
        "permissions": PERMISSIONS,
        "serve": command(
            "commands.server:serve",
            "Start the server for the web page and the HTTP API.",
            ("moot serve", "moot serve --port 4748", "moot serve --host 0.0.0.0 --allow-remote"),
        ),
        "web": command(
            "commands.server:web",
            "Open the web page in your browser.",
            ("moot web", "moot web --no-open"),
            details="If no server is running, this command starts one, which runs until Ctrl+C.",
        ),
        "acp": command(
            "commands.connections:serve_editor",
            "Run moot as an agent in an editor.",
            ("moot acp",),
            details="Editors that support the Agent Client Protocol, such as Zed, start this command themselves. See docs/editors.md.",
        ),
        "kernel": KERNEL,
        "tokens": TOKENS,
        "cron": CRON,
        "store": STORE,
        "config": CONFIG,
        "logs": command("commands.maintenance.logs:logs", "Show moot's log.", ("moot logs -n 20", "moot logs --follow"), bare=True),
        "completion": COMPLETION,
        "doctor": command(
            "commands.maintenance.doctor:doctor",
            "Check the installation and configuration.",
            ("moot doctor", "moot doctor --json"),
            details="The exit code is 1 if a check fails.",
        ),
        "trust": command(
            "commands.maintenance.trust:trust",
            "Trust a project's configuration file, agents, commands and skills.",
            ("moot trust", "moot trust ~/work/app", "moot trust --revoke", "moot trust --list"),
            details="These files are ignored until you trust them, and again whenever they change.",
        ),
        "upgrade-check": command(
            "commands.maintenance.upgrade:upgrade_check",
            "Show what this version of moot would change in your data.",
            ("moot upgrade-check", "moot upgrade-check --json"),
            bare=True,
            details=(
                "Nothing is changed. The exit code is 0 if this version can be used as it is, 1 if something needs your attention, "
                "and 2 if this version can't use the data."
            ),
        ),
        "version": command(
            "commands.maintenance.version:version", "Show the version.", ("moot version", "moot version --json"), bare=True, remote=True
        ),
    },
    ("moot", 'moot "what does README.md say?"', "moot -c", "moot -r 3 and now the tests", "moot -m small -f photo.png what is on it"),
    details="Without a command, start a conversation in this terminal. `moot chat new --help` lists the other options. "
    "With --url URL, or the environment variable MOOT_URL, moot uses a server on another machine: see docs/remote.md.",
    sections={
        "Chat": ("run", "chat", "ps", "approvals"),
        "History": ("search", "stats", "budgets", "import", "sync", "export", "share", "replay", "projects", "tasks", "worktrees"),
        "Agents and models": (
            *("agents", "models", "providers", "tools", "commands", "mcp", "skills", "plugins"),
            *("permissions", "memory", "knowledge", "channels"),
        ),
        "Server": ("serve", "web", "acp", "kernel", "tokens", "cron", "webhooks"),
        "Maintenance": (
            *("config", "doctor", "logs", "verify", "backup", "restore", "purge", "scan", "redact", "store"),
            *("completion", "trust", "upgrade-check", "version"),
        ),
    },
    prompt=command("commands.chat.start:start", "Start a conversation in this terminal.", ("moot",), bare=True, remote=True),
    options=("--continue", "--resume", "--model", "--agent", "--mode", "--file", "--allow", "--print", "--yes"),
)
