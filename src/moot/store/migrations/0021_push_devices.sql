-- Browsers that get notifications while moot's page is closed. An event for one is a row of `webhook_delivery` whose `webhook` is `device:` and its id.
CREATE TABLE push_device (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL,
    token TEXT NOT NULL,                                           -- the login that added it; revoking it removes the device
    name TEXT NOT NULL,
    endpoint TEXT NOT NULL UNIQUE,                                 -- whoever knows this URL and the keys can send to the browser
    p256dh BLOB NOT NULL,
    auth BLOB NOT NULL,
    events TEXT NOT NULL,                                          -- JSON array
    details INTEGER NOT NULL,                                      -- 1 = also send what is asked or answered
    created_at INTEGER NOT NULL,                                   -- ms
    sent_at INTEGER,                                               -- ms; the last accepted notification
    failures INTEGER NOT NULL DEFAULT 0,                           -- notifications that failed since then
    error TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX push_device_owner ON push_device (owner_id);
CREATE TRIGGER push_device_removed AFTER DELETE ON push_device BEGIN
    DELETE FROM webhook_delivery WHERE webhook = 'device:' || old.id;
END;
CREATE TRIGGER token_revoked AFTER UPDATE OF revoked_at ON token WHEN new.revoked_at IS NOT NULL BEGIN
    DELETE FROM push_device WHERE token = new.id;
END;
