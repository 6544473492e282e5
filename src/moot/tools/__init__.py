"""What a model may do: one file per built-in tool, and what they share.

A tool is a value with a name, a description, a pydantic model of its arguments and `run`. It never raises for what a model did wrong:
that is an output with `error`. Files, addresses and processes are reached through `guard` alone.

| file | tool |
|---|---|
| `ask_user` | questions to the person |
| `edit_file` | exact replacements in a file, all or nothing |
| `fetch_url` | a page of the web as Markdown |
| `find_files` | files by name |
| `generate_image` | a picture by a model that draws |
| `list_files` | what a folder holds |
| `read_file` | a file's lines, a picture, the rest of a long output |
| `search_files` | lines that match a pattern |
| `search_history` | what was said in earlier conversations; only for agents that name it |
| `shell` | a command, in the foreground or the background |
| `todo` | the list of what is to be done |
| `transcribe_audio` | what is said in a recording |
| `web_search` | results of a search engine |
| `write_file` | a whole file |

| file | shared |
|---|---|
| `arguments` | arguments from a model's JSON, and their schema |
| `basics` | what every tool starts from: defaults, failures, work in a thread |
| `diffs` | what an edit changes, for people |
| `given` | bytes that a call names: a file or a blob |
| `globs` | path patterns |
| `html` | a web page as Markdown |
| `ignores` | `.gitignore` rules |
| `jobs` | commands that run, in the foreground or beside the conversation |
| `matching` | lines that match, in a process of its own |
| `described` | tools as JSON |
| `offers` | which tools an agent is offered |
| `pages` | numbered lines out of a text of any size |
| `schema` | a tool's definition for models |
| `client` | tools that the run's client brings and runs |
| `spool` | what a command writes, bounded |
| `standing_in` | the built-in tools as a table, `definitions.json`, until one is called |
| `texts` | bytes of a file to text and back, exactly |
"""

__all__: list[str] = []
