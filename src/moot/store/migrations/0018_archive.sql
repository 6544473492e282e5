-- Identities of imported model calls and prompts, which are the same in all copies that a program makes when it forks or resumes a session.
-- Each call is counted in one message; in all others it is a copy.
CREATE TABLE import_identity (
    message INTEGER NOT NULL,                   -- message.no
    step INTEGER NOT NULL,                      -- index of the call in the message's steps; 0 if it has none
    identity BLOB NOT NULL,                     -- 16 bytes of BLAKE2b, which includes the owner
    is_copy INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (message, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX import_identity_identity ON import_identity (identity);

ALTER TABLE import_conversation ADD COLUMN copied_from TEXT;                      -- source_id of the conversation it was forked from
ALTER TABLE import_conversation ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;       -- among conversations with the same call; lowest = original
ALTER TABLE import_conversation ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0; -- ms

-- Statistics are grouped by repository in addition to projects, so that imported conversations are told apart.
ALTER TABLE conversation ADD COLUMN repository BLOB;    -- path of the repository, or of the folder outside of one; null = not determined yet
CREATE INDEX conversation_unplaced ON conversation (no) WHERE repository IS NULL;
CREATE VIEW counted_project AS
    SELECT no, owner_id, CASE
        WHEN length(repository) > 0 AND project_id IN ('default', 'default:' || owner_id) THEN 'repository:' || CAST(repository AS TEXT)
        ELSE project_id
    END AS project_id
    FROM conversation;

DROP TRIGGER answer_counted;
CREATE TRIGGER answer_counted AFTER INSERT ON answer BEGIN
    INSERT INTO answer_day
        SELECT new.at / 86400000, c.owner_id, c.project_id, new.agent, new.model,
            1, new.status = 'failed', new.input, new.output, new.cache_read, new.cache_write, new.reasoning,
            coalesce(new.cost, 0), new.cost IS NULL AND (new.model <> '' OR new.input + new.output > 0), new.steps, new.ms,
            new.timed, coalesce(new.first_ms, 0), new.first_ms IS NOT NULL, new.context
        FROM counted_project AS c WHERE c.no = new.conversation
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, failed = failed + excluded.failed, input = input + excluded.input,
        output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write, reasoning = reasoning + excluded.reasoning,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, steps = steps + excluded.steps,
        ms = ms + excluded.ms, timed = timed + excluded.timed, first_ms = first_ms + excluded.first_ms,
        firsts = firsts + excluded.firsts, context = context + excluded.context;
END;
DROP TRIGGER answer_uncounted;
CREATE TRIGGER answer_uncounted AFTER DELETE ON answer BEGIN
    UPDATE answer_day SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - (old.cost IS NULL AND (old.model <> '' OR old.input + old.output > 0)), steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE day = old.at / 86400000 AND agent = old.agent AND model = old.model
        AND (owner_id, project_id) = (SELECT c.owner_id, c.project_id FROM counted_project AS c WHERE c.no = old.conversation);
    DELETE FROM answer_day WHERE runs = 0 AND day = old.at / 86400000;
END;
DROP TRIGGER conversation_moved;
CREATE TRIGGER conversation_moved BEFORE UPDATE OF project_id, repository ON conversation
    WHEN new.project_id <> old.project_id OR new.repository IS NOT old.repository BEGIN
    INSERT OR IGNORE INTO to_count SELECT message FROM answer WHERE conversation = old.no;
    DELETE FROM answer_tool WHERE message IN (SELECT message FROM answer WHERE conversation = old.no);
    DELETE FROM answer WHERE conversation = old.no;
END;
