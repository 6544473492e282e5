"""Running conversations: the Runtime, the legs of runs, approvals, and the hub that feeds watchers.

| file | contents |
|---|---|
| `runtime.py` | `Runtime`: store, providers, settings, hub and state that outlives runs |
| `drive.py` | one leg from claim to end; the border of a run |
| `serving.py` | the history that another program sent with its call |
| `leg.py` | `Leg`, the RunContext of a leg |
| `past.py` | search in earlier conversations, for tools |
| `ports.py` | `LegPorts`: blobs, time and randomness for one leg |
| `deciding.py` | decisions about calls of outside agents, while their process waits |
| `outside.py` | what a leg offers to outside agents |
| `sessions.py` | the outside agent's session for a branch |
| `deadline.py` | the time limit of a leg, paused while waiting for a person |
| `asking.py` | requests to a person: approvals of calls, questions of tools |
| `answers.py` | processing of answers: validation, storage, lasting permissions |
| `looking.py` | preview of the file that a call would write |
| `explaining.py` | a model's explanation of a pending call |
| `journal.py` | an index of a run's journal |
| `aside.py` | auxiliary model calls outside runs: titles, explanations |
| `attaching.py` | attaching files to a prompt |
| `importing/` | import of other programs' conversations |
| `exporting.py` | export of a conversation in any format |
| `copies.py` | the linked copy in which an imported conversation continues |
| `installing.py` | export of a conversation as another agent's session |
| `naming.py` | default titles |
| `filing.py` | export of conversations into a folder |
| `showing.py` | shared pages |
| `sharing.py` | redaction of conversations for sharing |
| `tape.py` | playback of a run's model answers |
| `rerun.py` | offline repetition of a run against its recording |
| `sides.py` | one side of a comparison |
| `summing.py` | summary of earlier messages for an agent that takes over |
| `replaying.py` | replay of a run's events with their original timing |
| `files.py` | completion of `@file` |
| `repository.py` | branch and commit of a folder |
| `described.py` | permissions as JSON |
| `approvals.py` | policy: which calls may run, which need approval |
| `patterns.py` | matching of rule patterns; the narrowest pattern for a call |
| `setup.py` | settings, tools and models of one step |
| `prompts.py` | the system prompt |
| `media.py` | image and transcription models for tools |
| `tooling.py` | the ToolContext of one call |
| `leftovers.py` | killing commands that outlived the process that started them |
| `hub.py` | delivery of committed events to watchers |
| `ticks.py` | a shared clock for delayed callbacks |
"""

__all__: list[str] = []
