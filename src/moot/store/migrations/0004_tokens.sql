-- Tokens of browsers and tokens that expire; codes for signing in; answers that are given again for the same Idempotency-Key.
ALTER TABLE token ADD COLUMN kind TEXT NOT NULL DEFAULT 'token';
ALTER TABLE token ADD COLUMN expires_at INTEGER;
CREATE UNIQUE INDEX user_name ON user (name);

CREATE TABLE login_code (
    hash BLOB PRIMARY KEY,
    owner_id TEXT NOT NULL REFERENCES user (id),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    owner_id TEXT NOT NULL REFERENCES user (id),
    key TEXT NOT NULL,
    request BLOB NOT NULL,                      -- digest of method, path, query and body
    at INTEGER NOT NULL,
    worker TEXT NOT NULL,                       -- who is at it
    status INTEGER,                             -- of the answer; NULL = it is still being made
    headers BLOB,
    body BLOB,
    PRIMARY KEY (owner_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_at ON idempotency (at);
