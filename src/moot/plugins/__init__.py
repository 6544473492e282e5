"""Names to code: the one place that imports by name.

| registry | what it finds | entry-point group |
|---|---|---|
| `AGENTS` | agent services by `agent_type` | `moot.agents` |
| `CHANNELS` | where people talk to moot from other programs | `moot.channels` |
| `COMMANDS` | slash commands | `moot.commands` |
| `DIALECTS` | wire shapes | `moot.convert` |
| `FACES` | what `python -m moot`, `import moot` and `moot serve` show | `moot.faces` |
| `FORMATS` | other programs' files of conversations | `moot.formats` |
| `KNOWN_AGENTS` | outside agents that can be run by name alone | `moot.known_agents` |
| `PROVIDERS` | model endpoints | `moot.providers` |
| `TOOLS` | built-in tools | `moot.tools` |
| `TRANSLATORS` | converters that belong to no wire shape: those of outside agents, and of streams that people keep | `moot.translators` |

| file | what it holds |
|---|---|
| `installed.py` | what installed packages declare |
| `nearest.py` | the nearest known name |
| `registry.py` | `Registry`: a table of names to import paths, joined by what is installed |
"""

from moot.plugins.registry import Registry

__all__ = [
    "AGENTS",
    "CHANNELS",
    "COMMANDS",
    "DIALECTS",
    "FACES",
    "FORMATS",
    "KNOWN_AGENTS",
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

CHANNELS = Registry("moot.channels", {}, needs=("name", "serve"))

COMMANDS = Registry(
    "moot.commands",
    {
        "agent": "moot.commands.settings:AgentCommand",
        "continue": "moot.commands.conversation:ContinueCommand",
        "copy": "moot.commands.messages:CopyCommand",
        "cost": "moot.commands.status:CostCommand",
        "edit": "moot.commands.messages:EditCommand",
        "effort": "moot.commands.settings:EffortCommand",
        "exit": "moot.commands.conversation:ExitCommand",
        "fork": "moot.commands.conversation:ForkCommand",
        "handoff": "moot.commands.settings:HandoffCommand",
        "help": "moot.commands.status:HelpCommand",
        "keys": "moot.commands.status:KeysCommand",
        "mode": "moot.commands.settings:ModeCommand",
        "model": "moot.commands.settings:ModelCommand",
        "new": "moot.commands.conversation:NewCommand",
        "retry": "moot.commands.conversation:RetryCommand",
        "status": "moot.commands.status:StatusCommand",
        "title": "moot.commands.conversation:TitleCommand",
        "tools": "moot.commands.settings:ToolsCommand",
        "tree": "moot.commands.messages:TreeCommand",
    },
)

DIALECTS = Registry(
    "moot.convert",
    {
        "anthropic": "moot.convert.anthropic_messages:AnthropicMessages",
        "google": "moot.convert.google:Google",
        "ollama": "moot.convert.ollama_chat:OllamaChat",
        "openai-chat": "moot.convert.openai_chat:OpenAIChat",
        "openai-chat-schema": "moot.convert.openai_schema:OpenAISchema",
        "openai-responses": "moot.convert.openai_responses:OpenAIResponses",
    },
    needs=("name", "translator", "to_request"),
)

FACES = Registry("moot.faces", {"cli": "moot.cli.app:main", "library": "moot.library.names:named", "server": "moot.server.serving:run"})

FORMATS = Registry(
    "moot.formats",
    {
        "aichat": "moot.formats.aichat:Aichat",
        "anthropic": "moot.formats.anthropic:Anthropic",
        "cherry": "moot.formats.cherry.format:Cherry",
        "chatgpt": "moot.formats.chatgpt:ChatGPT",
        "clai": "moot.formats.clai.format:Clai",
        "claude": "moot.formats.claude.format:ClaudeFormat",
        "claude-ai": "moot.formats.claude_ai:ClaudeAi",
        "codex": "moot.formats.codex.format:CodexFormat",
        "gemini": "moot.formats.gemini:Gemini",
        "gptme": "moot.formats.gptme:Gptme",
        "html": "moot.formats.html.format:Html",
        "ipynb": "moot.formats.ipynb:Ipynb",
        "json": "moot.formats.json_:JsonDocument",
        "jsonl": "moot.formats.jsonl:JsonLines",
        "llm": "moot.formats.llm:Llm",
        "lmstudio": "moot.formats.lmstudio:LmStudio",
        "md": "moot.formats.md:Markdown",
        "mtm": "moot.formats.mtm.format:Mtm",
        "mtm-1": "moot.formats.mtm.format:MtmOne",
        "ollama": "moot.formats.ollama:Ollama",
        "open-webui": "moot.formats.open_webui:OpenWebUi",
        "openai": "moot.formats.openai:OpenAI",
        "opencode": "moot.formats.opencode:OpenCode",
        "pi": "moot.formats.pi:Pi",
        "qwen": "moot.formats.qwen:Qwen",
        "recording": "moot.formats.recording:RecordingFormat",
        "tai": "moot.formats.tai.format:Tai",
        "talkcody": "moot.formats.talkcody.format:TalkCody",
        "ui": "moot.formats.ui:Ui",
        "vibe": "moot.formats.vibe:Vibe",
    },
    needs=("name", "version", "suffix", "sniff", "read", "write"),
)

KNOWN_AGENTS = Registry(
    "moot.known_agents",
    {
        "acp": "moot.agents.known.acp:KNOWN",
        "claude-code": "moot.agents.known.claude_code:KNOWN",
        "codex": "moot.agents.known.codex:KNOWN",
    },
)
"""Agent service → its table; what is in it are facts, and nothing is made of them."""

PROVIDERS = Registry(
    "moot.providers",
    {
        "anthropic": "moot.providers.anthropic:Anthropic",
        "custom": "moot.providers.custom:Custom",
        "deepseek": "moot.providers.deepseek:DeepSeek",
        "demo": "moot.providers.demo:Demo",
        "google": "moot.providers.google:Google",
        "groq": "moot.providers.groq:Groq",
        "llama-cpp": "moot.providers.llama_cpp:LlamaCpp",
        "lm-studio": "moot.providers.lm_studio:LMStudio",
        "local": "moot.providers.local:Local",
        "minimax": "moot.providers.minimax:MiniMax",
        "mistral": "moot.providers.mistral:Mistral",
        "moonshot": "moot.providers.moonshot:Moonshot",
        "ollama": "moot.providers.ollama:Ollama",
        "openai": "moot.providers.openai:OpenAI",
        "openrouter": "moot.providers.openrouter:OpenRouter",
        "vercel": "moot.providers.vercel:Vercel",
        "xai": "moot.providers.xai:XAI",
        "zhipu": "moot.providers.zhipu:Zhipu",
    },
    needs=("name", "dialect", "quirks", "stream", "models", "close"),
)

TOOLS = Registry(
    "moot.tools",
    {
        "ask_user": "moot.tools.ask_user:AskUser",
        "edit_file": "moot.tools.edit_file:EditFile",
        "fetch_url": "moot.tools.fetch_url:FetchUrl",
        "find_files": "moot.tools.find_files:FindFiles",
        "generate_image": "moot.tools.generate_image:GenerateImage",
        "list_files": "moot.tools.list_files:ListFiles",
        "read_file": "moot.tools.read_file:ReadFile",
        "search_files": "moot.tools.search_files:SearchFiles",
        "search_history": "moot.tools.search_history:SearchHistory",
        "shell": "moot.tools.shell:Shell",
        "todo": "moot.tools.todo:Todo",
        "transcribe_audio": "moot.tools.transcribe_audio:TranscribeAudio",
        "web_search": "moot.tools.web_search:WebSearch",
        "write_file": "moot.tools.write_file:WriteFile",
    },
    needs=(
        *("name", "description", "arguments", "concurrent", "idempotent", "effects", "hidden", "beta", "badge", "examples"),
        *("run", "doing", "done"),
    ),
)

TRANSLATORS = Registry(
    "moot.translators",
    {
        "acp-wire": "moot.convert.wire:AcpWire",
        "acp": "moot.convert.acp:Acp",
        "acpx": "moot.convert.acpx:Acpx",
        "claude-code": "moot.convert.claude_code:ClaudeCode",
        "claude-code-wire": "moot.convert.wire:ClaudeWire",
        "claude-stream-json": "moot.convert.claude_code:ClaudeStreamJson",
        "codex-app-server": "moot.convert.codex_app_server:CodexAppServer",
        "codex-app-server-wire": "moot.convert.wire:CodexWire",
        "codex-exec": "moot.convert.codex_exec:CodexExec",
        "openai-media": "moot.convert.openai_media:OpenAiMedia",
        "gemini-stream-json": "moot.convert.gemini_stream:GeminiStream",
        "opencode-run": "moot.convert.opencode_run:OpencodeRun",
    },
    needs=("name", "version", "open", "feed", "close"),
)


def extensible() -> tuple[Registry, ...]:
    """The registries that installed packages may add to; a face is moot's own."""
    return AGENTS, CHANNELS, COMMANDS, DIALECTS, FORMATS, PROVIDERS, TOOLS, TRANSLATORS
