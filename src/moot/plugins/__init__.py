"""Registries that map names to code. Only this package imports code by name.

| registry | entries | entry-point group |
|---|---|---|
| `AGENTS` | agent services by `agent_type` | `moot.agents` |
| `AGENT_DEFINITIONS` | agents defined by packages | `moot.agent_definitions` |
| `CHANNELS` | connections to chat services | `moot.channels` |
| `COMMANDS` | slash commands | `moot.commands` |
| `DELIVERIES` | ways to deliver answers of cron jobs | `moot.delivery` |
| `DIALECTS` | wire formats | `moot.convert` |
| `FACES` | entry points for users: `python -m moot`, `moot kernel`, `import moot` and `moot serve` | `moot.faces` |
| `FORMATS` | conversation files of other programs | `moot.formats` |
| `KNOWN_AGENTS` | outside agents that can be run by name | `moot.known_agents` |
| `PROMPT_PARTS` | parts of system prompts | `moot.prompt_parts` |
| `PROVIDERS` | model endpoints | `moot.providers` |
| `TOOLS` | built-in tools | `moot.tools` |
| `TRANSLATORS` | stream translators that belong to no dialect, for outside agents and recorded streams | `moot.translators` |
"""

from moot.plugins.registry import Registry

__all__ = [
    "AGENTS",
    "AGENT_DEFINITIONS",
    "CHANNELS",
    "COMMANDS",
    "DELIVERIES",
    "DIALECTS",
    "FACES",
    "FORMATS",
    "KNOWN_AGENTS",
    "PROMPT_PARTS",
    "PROVIDERS",
    "TOOLS",
    "TRANSLATORS",
    "Registry",
    "extensible",
]

AGENTS = Registry(
    "moot.agents",
    {
        "acp": "moot.agents.acp.service:Acp",
        "claude-code": "moot.agents.claude_code:ClaudeCode",
        "codex": "moot.agents.codex.service:Codex",
        "moot": "moot.agents.loop:Loop",
    },
    needs=("run",),
    families=("acp",),
)

AGENT_DEFINITIONS = Registry("moot.agent_definitions", {}, plain=True)
"""Definitions (`Agent`) of agents, by name."""


BLOCKS = {"claude-code": 300}
"""Programs whose subscription limits usage in blocks that they don't record, with the length of a block in minutes."""

CHANNELS = Registry("moot.channels", {"discord": "moot.channels.discord:Discord"}, needs=("name", "serve"))

COMMANDS = Registry(
    "moot.commands",
    {
        "agent": "moot.commands.settings:AgentCommand",
        "allow": "moot.commands.settings:AllowCommand",
        "bg": "moot.commands.conversation:BackgroundCommand",
        "commit": "moot.commands.prompts:CommitCommand",
        "compact": "moot.commands.conversation:CompactCommand",
        "context": "moot.commands.conversation:ContextCommand",
        "continue": "moot.commands.conversation:ContinueCommand",
        "copy": "moot.commands.messages:CopyCommand",
        "cost": "moot.commands.status:CostCommand",
        "cron": "moot.commands.listings:CronCommand",
        "detail": "moot.commands.settings:DetailCommand",
        "doctor": "moot.commands.listings:DoctorCommand",
        "edit": "moot.commands.messages:EditCommand",
        "effort": "moot.commands.settings:EffortCommand",
        "exit": "moot.commands.conversation:ExitCommand",
        "export": "moot.commands.conversation:ExportCommand",
        "fork": "moot.commands.conversation:ForkCommand",
        "git": "moot.commands.git:GitCommand",
        "handoff": "moot.commands.settings:HandoffCommand",
        "help": "moot.commands.status:HelpCommand",
        "init": "moot.commands.prompts:InitCommand",
        "keys": "moot.commands.status:KeysCommand",
        "mcp": "moot.commands.listings:McpCommand",
        "memory": "moot.commands.listings:MemoryCommand",
        "mode": "moot.commands.settings:ModeCommand",
        "model": "moot.commands.settings:ModelCommand",
        "new": "moot.commands.conversation:NewCommand",
        "permissions": "moot.commands.listings:PermissionsCommand",
        "plan": "moot.commands.prompts:PlanCommand",
        "redo": "moot.commands.messages:RedoCommand",
        "retry": "moot.commands.conversation:RetryCommand",
        "review": "moot.commands.prompts:ReviewCommand",
        "rewind": "moot.commands.messages:RewindCommand",
        "search": "moot.commands.conversation:SearchCommand",
        "share": "moot.commands.conversation:ShareCommand",
        "skill": "moot.commands.prompts:SkillCommand",
        "status": "moot.commands.status:StatusCommand",
        "tasks": "moot.commands.listings:TasksCommand",
        "title": "moot.commands.conversation:TitleCommand",
        "tools": "moot.commands.settings:ToolsCommand",
        "tree": "moot.commands.messages:TreeCommand",
        "undo": "moot.commands.messages:UndoCommand",
        "web": "moot.commands.settings:WebCommand",
    },
)

DELIVERIES = Registry("moot.delivery", {"log": "moot.engine.cron:LogDelivery"}, needs=("deliver",))

DIALECTS = Registry(
    "moot.convert",
    {
        "anthropic": "moot.convert.dialects.anthropic:AnthropicMessages",
        "google": "moot.convert.dialects.google:Google",
        "ollama": "moot.convert.dialects.ollama:OllamaChat",
        "openai-chat": "moot.convert.dialects.openai_chat:OpenAIChat",
        "openai-chat-schema": "moot.convert.dialects.small_model:OpenAISchema",
        "openai-responses": "moot.convert.dialects.openai_responses:OpenAIResponses",
    },
    needs=("name", "translator", "to_request"),
)

FACES = Registry(
    "moot.faces",
    {
        "cli": "moot.cli.app:main",
        "kernel": "moot.kernel.install:KernelSpecification",
        "library": "moot.library.names:named",
        "server": "moot.server.processes.lifecycle:run",
    },
)

FORMATS = Registry(
    "moot.formats",
    {
        "aichat": "moot.formats.apps.aichat:Aichat",
        "aider": "moot.formats.agents.aider:Aider",
        "amp": "moot.formats.editors.amp:Amp",
        "anthropic": "moot.formats.anthropic:Anthropic",
        "chatgpt": "moot.formats.apps.chatgpt:ChatGPT",
        "cherry": "moot.formats.apps.cherry.format:Cherry",
        "clai": "moot.formats.apps.clai.format:Clai",
        "claude": "moot.formats.agents.claude.format:ClaudeFormat",
        "claude-ai": "moot.formats.apps.claude_ai:ClaudeAi",
        "cline": "moot.formats.editors.cline.format:Cline",
        "cline-cli": "moot.formats.editors.cline.sessions:ClineCli",
        "codex": "moot.formats.agents.codex.format:CodexFormat",
        "copilot-cli": "moot.formats.agents.copilot_cli:CopilotCli",
        "crush": "moot.formats.agents.databases.crush:Crush",
        "cursor": "moot.formats.editors.cursor:Cursor",
        "cursor-ide": "moot.formats.editors.cursor_ide:CursorIde",
        "droid": "moot.formats.agents.droid:Droid",
        "gemini": "moot.formats.agents.gemini.format:Gemini",
        "goose": "moot.formats.agents.databases.goose:Goose",
        "gptme": "moot.formats.agents.gptme:Gptme",
        "grok": "moot.formats.agents.grok:Grok",
        "hermes": "moot.formats.agents.databases.hermes:Hermes",
        "html": "moot.formats.html.format:Html",
        "iflow": "moot.formats.agents.iflow:IFlow",
        "ipynb": "moot.formats.notebook.format:Ipynb",
        "json": "moot.formats.portable:JsonDocument",
        "jsonl": "moot.formats.portable:JsonLines",
        "kilo-legacy": "moot.formats.editors.cline.format:KiloLegacy",
        "kimi": "moot.formats.agents.kimi:Kimi",
        "kimi-code": "moot.formats.agents.kimi:KimiCode",
        "kiro-cli": "moot.formats.editors.kiro_cli:KiroCli",
        "kiro-ide": "moot.formats.editors.kiro_ide:KiroIde",
        "llm": "moot.formats.apps.llm:Llm",
        "lmstudio": "moot.formats.apps.lmstudio:LmStudio",
        "md": "moot.formats.md:Markdown",
        "mtm": "moot.formats.apps.mtm.format:Mtm",
        "mtm-1": "moot.formats.apps.mtm.format:MtmOne",
        "ollama": "moot.formats.apps.ollama:Ollama",
        "open-webui": "moot.formats.apps.open_webui:OpenWebUi",
        "openai": "moot.formats.openai:OpenAI",
        "opencode": "moot.formats.agents.opencode.format:OpenCode",
        "openhands": "moot.formats.agents.openhands:OpenHands",
        "pi": "moot.formats.agents.pi:Pi",
        "qwen": "moot.formats.agents.qwen:Qwen",
        "recording": "moot.formats.recording.format:RecordingFormat",
        "roo": "moot.formats.editors.cline.format:Roo",
        "tai": "moot.formats.apps.tai.format:Tai",
        "takeout": "moot.formats.apps.takeout:Takeout",
        "talkcody": "moot.formats.apps.talkcody.format:TalkCody",
        "ui": "moot.formats.ui:Ui",
        "vibe": "moot.formats.agents.vibe.format:Vibe",
        "vibe-old": "moot.formats.agents.vibe.older:VibeOld",
        "vscode-copilot": "moot.formats.editors.vscode:VSCodeCopilot",
        "workbuddy": "moot.formats.agents.workbuddy:WorkBuddy",
        "zed": "moot.formats.editors.zed:Zed",
    },
    needs=("name", "version", "suffix", "sniff", "read", "write"),
)

KNOWN_AGENTS = Registry(
    "moot.known_agents",
    {
        "acp": "moot.agents.known:ACP",
        "claude-code": "moot.agents.known:CLAUDE_CODE",
        "codex": "moot.agents.known:CODEX",
    },
)
"""Tables of known agents, by agent service. The entries are data, not classes."""

PROMPT_PARTS = Registry(
    "moot.prompt_parts",
    {
        "agents_md": "moot.agents.prompt:agents_md",
        "environment": "moot.agents.prompt:environment",
        "instructions": "moot.agents.prompt:instructions",
        "memory": "moot.knowledge.prompt:prompt_part",
        "output_format": "moot.agents.prompt:output_format",
        "project": "moot.agents.prompt:project",
        "skills": "moot.skills.prompt:prompt_part",
        "sub_agents": "moot.agents.prompt:sub_agents",
    },
    plain=True,
)
"""Functions that return the text of a system prompt part (`PromptPartProvider` in `types/prompt.py`), by name."""

PROVIDERS = Registry(
    "moot.providers",
    {
        "anthropic": "moot.providers.endpoints.vendors:Anthropic",
        "custom": "moot.providers.endpoints.servers:Custom",
        "deepseek": "moot.providers.endpoints.vendors:DeepSeek",
        "demo": "moot.providers.endpoints.demo:Demo",
        "google": "moot.providers.endpoints.vendors:Google",
        "groq": "moot.providers.endpoints.vendors:Groq",
        "llama-cpp": "moot.providers.endpoints.servers:LlamaCpp",
        "lm-studio": "moot.providers.endpoints.servers:LMStudio",
        "local": "moot.providers.endpoints.local:Local",
        "minimax": "moot.providers.endpoints.vendors:MiniMax",
        "mistral": "moot.providers.endpoints.vendors:Mistral",
        "moonshot": "moot.providers.endpoints.vendors:Moonshot",
        "ollama": "moot.providers.endpoints.servers:Ollama",
        "openai": "moot.providers.endpoints.vendors:OpenAI",
        "openrouter": "moot.providers.endpoints.vendors:OpenRouter",
        "vercel": "moot.providers.endpoints.vendors:Vercel",
        "xai": "moot.providers.endpoints.vendors:XAI",
        "zhipu": "moot.providers.endpoints.vendors:Zhipu",
    },
    needs=("name", "dialect", "quirks", "stream", "models", "close"),
)

TOOLS = Registry(
    "moot.tools",
    {
        "activate_skill": "moot.tools.builtin.skills:ActivateSkill",
        "ask_user": "moot.tools.builtin.questions:AskUser",
        "change_setting": "moot.tools.builtin.admin:ChangeSetting",
        "create_agent": "moot.tools.builtin.admin:CreateAgent",
        "cron": "moot.tools.builtin.cron:Cron",
        "delegate": "moot.tools.builtin.delegate:Delegate",
        "deliver": "moot.tools.builtin.cron:Deliver",
        "diagnostics": "moot.tools.builtin.diagnostics:Diagnostics",
        "edit_file": "moot.tools.builtin.file_changes:EditFile",
        "exit_plan": "moot.tools.builtin.questions:ExitPlan",
        "fetch_url": "moot.tools.builtin.fetch_url:FetchUrl",
        "find_files": "moot.tools.builtin.file_search:FindFiles",
        "finish_task": "moot.tools.builtin.delegate:FinishTask",
        "generate_image": "moot.tools.builtin.media:GenerateImage",
        "knowledge_search": "moot.tools.builtin.knowledge:KnowledgeSearchTool",
        "list_files": "moot.tools.builtin.file_search:ListFiles",
        "memory": "moot.tools.builtin.knowledge:MemoryTool",
        "read_file": "moot.tools.builtin.read_file:ReadFile",
        "read_setting": "moot.tools.builtin.admin:ReadSetting",
        "run_status": "moot.tools.builtin.delegate:RunStatus",
        "run_skill_script": "moot.tools.builtin.skills:RunSkillScript",
        "search_files": "moot.tools.builtin.file_search:SearchFiles",
        "search_history": "moot.tools.builtin.knowledge:SearchHistory",
        "shell": "moot.tools.builtin.shell:Shell",
        "tasks": "moot.tools.builtin.tasks:Tasks",
        "todo": "moot.tools.builtin.tasks:Todo",
        "transcribe_audio": "moot.tools.builtin.media:TranscribeAudio",
        "web_search": "moot.tools.builtin.web_search:WebSearch",
        "write_file": "moot.tools.builtin.file_changes:WriteFile",
    },
    needs=(
        *("name", "description", "arguments", "concurrent", "idempotent", "effects", "hidden", "beta", "badge", "examples"),
        *("run", "doing", "done"),
    ),
)

TRANSLATORS = Registry(
    "moot.translators",
    {
        "acp-wire": "moot.convert.agents.captures:AcpWire",
        "acp": "moot.convert.agents.acp:Acp",
        "acpx": "moot.convert.agents.captures:Acpx",
        "claude-code": "moot.convert.agents.claude_code:ClaudeCode",
        "claude-code-wire": "moot.convert.agents.captures:ClaudeWire",
        "claude-stream-json": "moot.convert.agents.claude_code:ClaudeStreamJson",
        "codex-app-server": "moot.convert.agents.codex:CodexAppServer",
        "codex-app-server-wire": "moot.convert.agents.captures:CodexWire",
        "codex-exec": "moot.convert.agents.headless:CodexExec",
        "openai-media": "moot.convert.dialects.openai_media:OpenAiMedia",
        "gemini-stream-json": "moot.convert.agents.headless:GeminiStream",
        "opencode-run": "moot.convert.agents.headless:OpencodeRun",
    },
    needs=("name", "version", "open", "feed", "close"),
)


def extensible() -> tuple[Registry, ...]:
    """Return the registries that installed packages can extend."""
    return AGENTS, AGENT_DEFINITIONS, CHANNELS, COMMANDS, DIALECTS, FORMATS, PROMPT_PARTS, PROVIDERS, TOOLS, TRANSLATORS
