"""Pure translation between what vendors say, what moot keeps and what goes out again: no clock, no I/O, no configuration.

A vendor's raw events become chunks (`Translator`), chunks become the parts of a message (`fold`), parts become chunks again for a
client that joins late (`unfold`), and messages become the next request (`to_request`). Everything here is total: bytes that make no
sense end in an `Ending` with an error or are passed over, and never raise.

| file | what it holds |
|---|---|
| `fold.py` | chunks → parts, whole (`fold_parts`) or live (`Folder`); what of them is history (`in_history`) |
| `_tool_parts.py` | what each tool chunk makes of a tool part |
| `_partial.py` | the value of a cut JSON text: tool arguments while they stream |
| `comparing.py` | two conversations side by side |
| `rebuilding.py` | an exchange's chunks made again from its raw |
| `recorded.py` | a recording made whole: chunks, parts, ends |
| `arriving.py` | what an entry of a source is known by again, and what it took |
| `growing.py` | a message that its source has written on |
| `wire.py` | wire captures: both sides of a pipe, with direction and time |
| `cutting.py` | the end of an exchange that nobody ended |
| `closing.py` | the chunks that close what a broken stream left open |
| `contract.py` | whether an answer fits the JSON Schema that was asked for |
| `given.py`, `found.py` | conversations, messages and runs as faces give them out; hits |
| `described.py` | agents and models as JSON |
| `totals.py` | what a run took, summed over its journal |
| `events.py` | an event as faces give it out |
| `unfold.py` | a message → the fewest chunks that rebuild it |
| `translators.py` | which translator made an exchange's chunks, and the same work done again |
| `differences.py` | where two JSON values differ |
| `versions.py` | chunks as a client of version 6 or 7 takes them |
| `history.py` | trimming by whole groups, token estimates, an assistant message as its steps |
| `picture_head.py` | what the first bytes of a picture say of it |
| `scaling.py` | a picture made to fit for a model |
| `openai_chat.py` | OpenAI chat completions: the request |
| `_openai_piece.py` | the one event that nearly all of a stream consists of, read quickly |
| `openai_stream.py` | OpenAI chat completions: the way back |
| `_effort.py` | reasoning effort as endpoints behind that wire want to be asked for it |
| `google.py` | Gemini: the request |
| `google_stream.py` | Gemini: the way back |
| `_google_facts.py` | that wire's finish reasons, counts and sources, and calls in pieces |
| `_google_schema.py` | JSON Schema within the subset that it takes |
| `openai_responses.py` | OpenAI responses: the request |
| `openai_responses_stream.py` | OpenAI responses: the way back |
| `_openai_said.py` | what the items of a response say |
| `_openai_items.py` | what those items are |
| `openai_media.py` | OpenAI's endpoints for pictures and recordings |
| `ollama_chat.py` | Ollama's own chat: the request |
| `ollama_stream.py` | Ollama's own chat: the way back |
| `openai_schema.py` | the same wire, with tools called by structured output, for small models |
| `schema_arguments.py` | its answer's schema |
| `schema_prompt.py` | its short prompt |
| `schema_scan.py` | its answer, read while it streams |
| `schema_tokens.py` | its estimate of tokens |
| `schema_wishes.py` | what it is plainly told to do |
| `anthropic_messages.py` | Anthropic messages: the request |
| `anthropic_stream.py` | Anthropic messages: the way back |
| `_anthropic_facts.py` | that wire's finish reasons, counts and citations |
| `claude_code.py` | Claude Code's lines, with and without partial messages |
| `claude_session.py` | the lines of its session files: what it did for one prompt as one message |
| `_claude_calls.py` | its tool calls and their outputs |
| `_claude_facts.py` | its usage, costs, failures and notes |
| `_thinking.py` | how its models are asked to think |
| `codex_app_server.py` | Codex by its app-server |
| `codex_items.py` | the items of Codex's session files |
| `codex_rollout.py` | the lines of its session files: what it did for one prompt as one message |
| `codex_exec.py` | what people keep of `codex exec --json` |
| `_codex_line.py` | one line of either at work: steps, words, calls |
| `_codex_calls.py` | what Codex does, as tool calls |
| `_codex_facts.py` | its plans, tokens and failures |
| `_sse.py` | server-sent event streams: splitting into frames, parsing of frames |
| `_feeding.py` | the event in a frame, or what came in place of a stream |
| `_writer.py` | parts and calls as both translators write them |
| `_tools.py` | a stored call as it goes out again: id, arguments, its one output |
| `_files.py` | file parts as they go out again |
| `acp.py` | the Agent Client Protocol, both directions of its pipe |
| `_acp_wire.py` | one line of it, read |
| `_acp_calls.py` | one tool call, from its first sight to its output |
| `_acp_outputs.py` | what a call came to, as text |
| `_acp_parts.py` | contents that are no text, and the plan |
| `_acp_facts.py` | what its agents say each in its own way: names of tools, tokens, money |
| `acpx.py` | both directions on one stdout, as acpx writes them |
| `opencode_run.py` | `opencode run --format json` |
| `gemini_stream.py` | `gemini -o stream-json` |
| `_headless.py` | what such streams have in common |
| `callers/` | moot as a model for other programs: what they ask and what they are told, in their dialects |
| `_vendor.py` | what vendors say in the same ways: counts, errors, bodies that are no stream |

A translator's state is a NamedTuple of JSON values: `json.dumps` takes it as it is.
"""

__all__: list[str] = []
