-- Pinned and tagged conversations.
ALTER TABLE conversation ADD COLUMN pinned_at INTEGER;             -- ms; null = not pinned
CREATE INDEX conversation_pinned ON conversation (updated_at) WHERE pinned_at IS NOT NULL;

CREATE TABLE conversation_tag (
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    active_at INTEGER NOT NULL                                     -- always `updated_at` of the conversation, for the order of the list
) STRICT;
CREATE INDEX conversation_tag_conversation ON conversation_tag (conversation, tag);
CREATE INDEX conversation_tag_recent ON conversation_tag (tag, active_at, conversation);
CREATE TRIGGER conversation_active AFTER UPDATE OF updated_at ON conversation WHEN new.updated_at <> old.updated_at BEGIN
    UPDATE conversation_tag SET active_at = new.updated_at WHERE conversation = new.no;
END;

-- Temporary conversations. They are not listed or searched, and are purged after this time.
ALTER TABLE conversation ADD COLUMN expires_at INTEGER;            -- ms; null = not temporary
CREATE INDEX conversation_expires ON conversation (expires_at) WHERE expires_at IS NOT NULL;
