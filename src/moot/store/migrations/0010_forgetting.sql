-- Purges and redactions: what is still to be done of one, and its receipt. Files that hold what the store held when they were written.
CREATE TABLE forgetting (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,                         -- purge, redact
    begun_at INTEGER NOT NULL,
    done_at INTEGER,
    rest BLOB,                                   -- null once only the file itself is left to be cleaned: it may name what is to be forgotten
    receipt BLOB NOT NULL
) STRICT;
CREATE INDEX forgetting_open ON forgetting (no) WHERE done_at IS NULL;

CREATE TABLE written_file (
    path BLOB PRIMARY KEY,                      -- file names are bytes
    kind TEXT NOT NULL,                         -- backup, export
    made_at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    conversation TEXT                           -- null = all of the store
) STRICT;
