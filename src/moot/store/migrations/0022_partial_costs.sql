-- An answer with steps of unknown price counts the cost of its other steps, and also as unpriced.
ALTER TABLE answer ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;     -- 1 = the cost is completely or partly unknown
UPDATE answer SET unpriced = 1 WHERE cost IS NULL AND (model <> '' OR input + output > 0);
INSERT OR IGNORE INTO to_count SELECT message FROM answer WHERE unpriced AND steps > 0;

-- The sums of conversations already contain the known costs of imported answers.
UPDATE conversation SET cost = coalesce(conversation.cost, 0) + k.cost FROM (
    SELECT r.conversation, sum(s.value ->> '$.cost') AS cost FROM run AS r JOIN message AS m ON m.id = r.message,
        json_each(iif(json_valid(CAST(m.metadata AS TEXT)), CAST(m.metadata AS TEXT), '{}'), '$.steps') AS s
    WHERE r.cost IS NULL AND r.ended_at IS NOT NULL AND s.type = 'object' AND json_type(s.value, '$.cost') = 'integer'
        AND s.value ->> '$.cost' BETWEEN 0 AND 17592186044415
    GROUP BY r.conversation
) AS k WHERE conversation.no = k.conversation;

DROP TRIGGER answer_counted;
CREATE TRIGGER answer_counted AFTER INSERT ON answer BEGIN
    INSERT INTO answer_day
        SELECT new.at / 86400000, c.owner_id, c.project_id, new.agent, new.lead, new.model,
            1, new.status = 'failed', new.input, new.output, new.cache_read, new.cache_write, new.reasoning,
            coalesce(new.cost, 0), new.unpriced, new.steps, new.ms,
            new.timed, coalesce(new.first_ms, 0), new.first_ms IS NOT NULL, new.context
        FROM counted_project AS c WHERE c.no = new.conversation
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, failed = failed + excluded.failed, input = input + excluded.input,
        output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write, reasoning = reasoning + excluded.reasoning,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, steps = steps + excluded.steps,
        ms = ms + excluded.ms, timed = timed + excluded.timed, first_ms = first_ms + excluded.first_ms,
        firsts = firsts + excluded.firsts, context = context + excluded.context;
    INSERT INTO answer_slot
        SELECT new.at / 900000, c.owner_id,
            1, new.status = 'failed', new.input, new.output, new.cache_read, new.cache_write, new.reasoning,
            coalesce(new.cost, 0), new.unpriced, new.steps, new.ms,
            new.timed, coalesce(new.first_ms, 0), new.first_ms IS NOT NULL, new.context
        FROM conversation AS c WHERE c.no = new.conversation
    ON CONFLICT DO UPDATE SET
        runs = runs + excluded.runs, failed = failed + excluded.failed, input = input + excluded.input,
        output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write, reasoning = reasoning + excluded.reasoning,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, steps = steps + excluded.steps,
        ms = ms + excluded.ms, timed = timed + excluded.timed, first_ms = first_ms + excluded.first_ms,
        firsts = firsts + excluded.firsts, context = context + excluded.context;
END;
DROP TRIGGER answer_uncounted;
CREATE TRIGGER answer_uncounted AFTER DELETE ON answer WHEN NOT EXISTS (
    SELECT 1 FROM conversation WHERE no = old.conversation AND expires_at IS NOT NULL AND deleted_at IS NOT NULL
) BEGIN
    UPDATE answer_day SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - old.unpriced, steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE day = old.at / 86400000 AND agent = old.agent AND lead = old.lead AND model = old.model
        AND (owner_id, project_id) = (SELECT c.owner_id, c.project_id FROM counted_project AS c WHERE c.no = old.conversation);
    DELETE FROM answer_day WHERE runs = 0 AND day = old.at / 86400000;
    UPDATE answer_slot SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - old.unpriced, steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE slot = old.at / 900000 AND owner_id = (SELECT c.owner_id FROM conversation AS c WHERE c.no = old.conversation);
    DELETE FROM answer_slot WHERE runs = 0 AND slot = old.at / 900000;
END;
