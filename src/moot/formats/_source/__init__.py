"""Sources of other programs, read without harm: nothing is written, nothing outside them is followed, and what is wrong is said in words.

| file | what it does |
|---|---|
| `lines.py` | JSON lines of any size, one at a time |
| `plain.py` | a regular file, opened; how it begins |
| `folders.py` | the regular files below a folder |
| `database.py` | a SQLite file of another program, as it stood at one moment |
| `archives.py` | the files in a zip, within limits |
| `pieces.py` | JSON that is somebody else's: arrays of any size one element at a time, the bytes that a value stands in, values in texts |
| `fields.py` | fields of somebody else's JSON, and its times and sums of money, however they are written |
| `drafts.py` | messages of a file that grows, while records may still belong to them |
| `tree.py` | parents before children, whatever the source says |
| `documents.py` | a JSON object that may be cut off, by its members |
| `turns.py` | records in a row to messages |
| `tally.py` | counts of what is kept, approximated and lost |
| `beside.py` | files that a source names |
| `configuring.py` | another program's configuration as pieces of ours |
"""

__all__: list[str] = []
