"""moot for programs: the face that `import moot` shows, over the same runtime and the same store as the command line.

| file | what it holds |
|---|---|
| `names.py` | what stands for `moot.NAME`: the only list of the public names |
| `opening.py` | `open`: a moot for as long as an `async with` lasts |
| `moot.py` | `Moot`: run, resume, attach, search, models, tools |
| `options.py` | what a run may be told |
| `live.py` | `LiveRun`: a run that is iterated for its events, or awaited for its result |
| `asking.py` | `Asked`, and the functions that answer for a person |
| `failures.py` | a failed run as the exception that it is |
| `conversations.py` | `Conversations`: list, read, rename, delete |
| `blocking.py` | `run_sync`, for scripts and notebooks |
"""

__all__: list[str] = []
