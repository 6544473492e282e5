"""Other programs' files of conversations, and our own: one file for each format, behind the seam `moot.types.format`.

Pure and synchronous: a source is read and never changed, no clock, no network; whoever calls does it off the event loop.

| file | what it does |
|---|---|
| `claude/` | `claude`: sessions of Claude Code |
| `codex/` | `codex`: sessions of Codex |
| `html/` | `html`: one page that needs nothing else; only written |
| `ipynb.py` | `ipynb`: a notebook; only written |
| `json_.py` | `json`: all that the messages hold, as one document |
| `jsonl.py` | `jsonl`: the same in lines |
| `anthropic.py` | `anthropic`: messages as Anthropic's API takes them |
| `md.py` | `md`: a conversation written down in Markdown |
| `openai.py` | `openai`: messages as OpenAI's chat completions take them |
| `recording.py` | `recording`: conversations with their runs and what vendors sent; captures of other programs |
| `_lines.py` | its lines, written and read |
| `_facts.py` | its values as JSON |
| `_captures.py` | whose a capture is, and the runs in it |
| `_portable.py` | the values of `json` and `jsonl` |
| `_source/` | sources of other programs, read without harm |
| `_md_writing.py` `openai_writing.py` `anthropic_writing.py` | what `md`, `openai` and `anthropic` write |
| `_writing.py` | what a conversation holds, counted, and what a format's table makes of it |
| `cherry/` | `cherry`: the sessions and chats of Cherry Studio |
| `clai/` | `clai`: the chats of clai |
| `mtm/` | `mtm`, `mtm-1`: the notebooks of Mutsumi and of its fork |
| `tai/` | `tai`: TAI, its sessions and its configuration |
| `talkcody/` | `talkcody`: the tasks of TalkCody |
| `_steps.py` | a message as the model calls it is made of, for those that are written |
| `ui.py` | `ui`: messages as the AI SDK's user interfaces keep them |
| `_documents.py` | what the plain ones share: messages in an array, an object, or lines |
| `_saying.py` | what people and agents said, record by record, made into messages |
| `gemini.py` | `gemini`: chats of Gemini CLI |
| `qwen.py` | `qwen`: sessions of Qwen Code |
| `pi.py` | `pi`: sessions of pi |
| `gptme.py` | `gptme`: conversations of gptme |
| `opencode.py` | `opencode`: OpenCode's database and exports |
| `vibe.py` | `vibe`: sessions of Mistral Vibe |
| `_sessions.py` | what readers of other programs' sessions share |
| `_parts_of_google.py` | content in Google's shape, as Gemini CLI and Qwen Code keep it |
| `chatgpt.py` | `chatgpt`: the data export of ChatGPT |
| `claude_ai.py` | `claude-ai`: the data export of Claude.ai |
| `open_webui.py` | `open-webui`: Open WebUI's database and exports |
| `_answers_of_open_webui.py` | an answer there: items, or text with thoughts and calls in it |
| `lmstudio.py` | `lmstudio`: conversations of LM Studio |
| `ollama.py` | `ollama`: the database of Ollama's app |
| `llm.py` | `llm`: the database of llm |
| `aichat.py` | `aichat`: sessions and log of aichat |
| `_exports.py` | what data exports of web services share: a JSON array, alone, in a folder or a zip, with files beside it |
"""

__all__: list[str] = []
