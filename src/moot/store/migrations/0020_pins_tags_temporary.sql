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

-- A purged temporary conversation still counts in the sums of usage, because its answers were paid for. (A purge deletes it first.)
DROP TRIGGER answer_uncounted;
CREATE TRIGGER answer_edit_removed AFTER DELETE ON answer BEGIN
    DELETE FROM answer_edit WHERE message = old.message;
END;
CREATE TRIGGER answer_uncounted AFTER DELETE ON answer WHEN NOT EXISTS (
    SELECT 1 FROM conversation WHERE no = old.conversation AND expires_at IS NOT NULL AND deleted_at IS NOT NULL
) BEGIN
    UPDATE answer_day SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - (old.cost IS NULL AND (old.model <> '' OR old.input + old.output > 0)), steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE day = old.at / 86400000 AND agent = old.agent AND lead = old.lead AND model = old.model
        AND (owner_id, project_id) = (SELECT c.owner_id, c.project_id FROM counted_project AS c WHERE c.no = old.conversation);
    DELETE FROM answer_day WHERE runs = 0 AND day = old.at / 86400000;
    UPDATE answer_slot SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - (old.cost IS NULL AND (old.model <> '' OR old.input + old.output > 0)), steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE slot = old.at / 900000 AND owner_id = (SELECT c.owner_id FROM conversation AS c WHERE c.no = old.conversation);
    DELETE FROM answer_slot WHERE runs = 0 AND slot = old.at / 900000;
END;
