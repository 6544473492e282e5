"""What is mutable or running: the Runtime, one leg of a run, the hub that feeds watchers.

| file | what it holds |
|---|---|
| `runtime.py` | `Runtime`: store, providers, settings, hub and what outlives a run |
| `drive.py` | one leg from claim to end: the run border |
| `serving.py` | what another program said before its call, read back |
| `leg.py` | `Leg`, the RunContext of a leg: append, journal, inbox |
| `past.py` | earlier conversations of the same owner, for a tool call |
| `ports.py` | `LegPorts`: bytes of the conversation's owner, time and chance, for one leg |
| `deciding.py` | what becomes of a call that an outside agent asks about: policy, or a person while its process waits |
| `outside.py` | what a leg offers to an outside agent beside the rest |
| `sessions.py` | which session of an outside agent holds a branch |
| `deadline.py` | how long a leg may work; its time stands still while a person is waited for |
| `asking.py` | asks a person: approvals of calls, the questions of tools |
| `answers.py` | what becomes of an answer: checked, stored, and the like allowed from then on |
| `looking.py` | what the file that a call would write holds now |
| `explaining.py` | what a pending call would do, told by a model |
| `journal.py` | the index of a run's journal: what has begun, what has ended |
| `aside.py` | one model call outside any run, recorded: titles, explanations |
| `attaching.py` | a file that a person names, as a part |
| `importing/` | conversations of other programs, brought in |
| `exporting.py` | a conversation into a file of any format |
| `copies.py` | the linked copy in which a conversation of another program is gone on with |
| `installing.py` | a conversation where another agent goes on with it |
| `naming.py` | what a conversation is called before anybody has named it |
| `filing.py` | a folder with a file for each conversation |
| `showing.py` | a page for whoever has its link |
| `sharing.py` | a conversation as others may see it |
| `tape.py` | what the model said in a run, played again |
| `rerun.py` | a run of the loop once more, offline, against its own recording |
| `sides.py` | what two conversations are compared by |
| `summing.py` | earlier messages made short for an agent that takes over |
| `replaying.py` | a run's events again, with the timing that they had |
| `files.py` | the files that a person could mean by `@file` |
| `repository.py` | the branch and commit that a folder is at |
| `described.py` | permissions as JSON |
| `approvals.py` | policy: what may run, what must ask |
| `patterns.py` | what a rule's pattern covers; the narrowest pattern for what was asked |
| `setup.py` | settings, tools and models of one step |
| `prompts.py` | the system prompt |
| `media.py` | the models that draw and listen, as tools reach them |
| `tooling.py` | the ToolContext of one call |
| `leftovers.py` | ends the commands that outlived the moot that started them |
| `hub.py` | committed events to watchers |
| `ticks.py` | one clock for all who may wait a moment |
"""

__all__: list[str] = []
