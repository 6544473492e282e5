"""The command line: what a person or a script types, and what they see.

stdout carries data only, stderr is for people. `tree` lists the commands; `reading` takes a plain command line straight from the
signature of its command, `parsing` judges all others; each family of commands has its file; `opening` opens the engine;
`following` watches a run to its end and turns it into an exit code, `showing` draws it.

| file | what it does |
|---|---|
| `app.py` | `main`: runs the command that was typed, turns errors into exit codes |
| `agent_trial.py` | `moot agents test` |
| `agents.py` | the other commands of `moot agents` |
| `arguments.py` | what must be settled before parsing: `-c [ID]`, nearest commands |
| `approving/` | approvals and questions on a terminal |
| `asking.py` | a line from the person, and a plain yes or no |
| `browsing/` | `moot chat list` for a person at a terminal |
| `channels.py` | `moot channels` |
| `chat/` | the commands of `moot chat` |
| `completing/` | what a shell offers behind `moot` |
| `config.py` `config_editing.py` `doctor.py` `models.py` `providers.py` `run.py` `tools.py` `version.py` | the other commands |
| `search.py` `seeking.py` | `search`; where only the whole store can say |
| `storing.py` | what takes how much, and making the database smaller |
| `verifying.py` `upgrading.py` `progress.py` | whether what is stored is what it was, and what newer converters make of it |
| `serving.py` `tokens.py` | the server: started, opened, and who is let in |
| `permissions.py` | `moot permissions` |
| `edited.py` | calls that ran with other arguments than the model's |
| `editor.py` | a text in the person's own editor |
| `errors.py` | an exception as words on stderr and an exit code |
| `configured.py` | the configuration for a command |
| `fetching.py` | an embedded model's weights brought here: the offer, progress |
| `following.py` | a run from its submission to its exit code |
| `backing.py` | `moot backup`, `moot restore` |
| `forgetting.py` | `moot purge`, `moot redact`, and receipts in words |
| `importing.py` `exporting.py` | `moot import`, `moot export` |
| `installing.py` | `moot export --install` |
| `import_report.py` `import_watching.py` | what an import shows while it works, and at its end; what it follows |
| `things.py` | what reports count, in words |
| `import_besides.py` | what programs keep besides, as an import tells of it |
| `replaying.py` `rerunning.py` `comparing.py` | `moot replay`, with `--rerun`; `moot chat compare` |
| `inline.py` | what small applications below the terminal's text share |
| `sharing.py` | `moot share` |
| `left_out.py` | what was left out of what others are to see |
| `lines.py` | stdout and stderr, without an event loop |
| `log_file.py` `log_showing.py` | the log of the home; `moot logs` |
| `logs.py` | where what the rooms log goes |
| `messages.py` | messages as a person reads them again |
| `numbers.py` | what a number means: the list that was printed last |
| `opening.py` | the engine for a command |
| `picking/` | one of many, from a list that filters as you type |
| `options.py` | the flags that commands share |
| `output.py` | stdout and stderr on the event loop |
| `paging.py` | lists that are whole in memory, page by page |
| `parameters.py` | what a command says of its arguments |
| `parsing.py` | help, mistakes, and every command line that is not plain (cyclopts) |
| `performing.py` | a command carried out, on the event loop |
| `prompts.py` | prompt, stdin and files as parts of a message |
| `projects.py` | the commands of `moot projects` |
| `ps.py` `stats.py` | what runs now; what runs took |
| `reading.py` | a plain command line, read without the parser |
| `revising/` | `moot chat edit`: messages in the editor |
| `screen/` | runs and messages drawn for a terminal |
| `repl/` | bare `moot`: a conversation in a terminal |
| `references.py` | conversations and runs by id, prefix, title or list index |
| `showing.py` | a run's events: text, `--json`, `--jsonl`, `--ui` |
| `slots.py` | a command's signature as what may be typed |
| `surroundings.py` | what `moot doctor` looks at around moot: terminal, clock, keys, other processes |
| `tables.py` | lists as columns |
| `times.py` | times as people read them |
| `tree.py` `command.py` | the commands: where each is, its help; what a command is |
| `trying.py` | one small call to a model, and how it went |
| `weights.py` | which model is taken, and whether its weights are here |
| `welcome/` | where no model was ever chosen: what can be had, and the question |
"""

__all__: list[str] = []
