-- Pages that somebody with a link may read: as they were when they were made, without what was left out.
CREATE TABLE share (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    hash BLOB NOT NULL UNIQUE,                  -- of the secret in the link
    title TEXT NOT NULL,
    page BLOB NOT NULL,                         -- empty once it was revoked or has expired
    size INTEGER NOT NULL,
    policy TEXT NOT NULL,
    left_out BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX share_conversation ON share (conversation);
