-- What answers took, counted from the log: a narrow row for each answer and each tool that it called, made again when the answer changes.
CREATE TABLE answer (
    message INTEGER PRIMARY KEY,                -- message.no
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    at INTEGER NOT NULL,                        -- ms
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,                        -- its kind; empty = none
    steps INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost INTEGER,                               -- nano-dollars; null = unknown
    first_ms INTEGER,                           -- to the first that was shown, of its first step; null = not known
    ms INTEGER NOT NULL,                        -- that models worked, of the steps whose time is known
    timed INTEGER NOT NULL,                     -- output tokens of those steps
    context INTEGER NOT NULL                    -- input tokens of the largest step
) STRICT;
CREATE INDEX answer_conversation ON answer (conversation, at);

CREATE TABLE answer_tool (
    message INTEGER NOT NULL,                   -- message.no
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    ms INTEGER NOT NULL,                        -- of the calls whose time is known
    timed INTEGER NOT NULL,                     -- how many those are
    PRIMARY KEY (message, tool)
) STRICT;

CREATE TABLE answer_day (                       -- the same in sums, from which years are told in a moment
    day INTEGER NOT NULL,                       -- since 1970, UTC
    owner_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    runs INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    firsts INTEGER NOT NULL,
    context INTEGER NOT NULL,
    PRIMARY KEY (day, owner_id, project_id, agent, model)
) STRICT;
CREATE TRIGGER answer_counted AFTER INSERT ON answer BEGIN
    INSERT INTO answer_day
        SELECT new.at / 86400000, c.owner_id, c.project_id, new.agent, new.model,
            1, new.status = 'failed', new.input, new.output, new.cache_read, new.cache_write, new.reasoning,
            coalesce(new.cost, 0), new.cost IS NULL AND (new.model <> '' OR new.input + new.output > 0), new.steps, new.ms,
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
CREATE TRIGGER answer_uncounted AFTER DELETE ON answer BEGIN
    UPDATE answer_day SET
        runs = runs - 1, failed = failed - (old.status = 'failed'), input = input - old.input, output = output - old.output,
        cache_read = cache_read - old.cache_read, cache_write = cache_write - old.cache_write,
        reasoning = reasoning - old.reasoning, cost = cost - (coalesce(old.cost, 0)),
        unpriced = unpriced - (old.cost IS NULL AND (old.model <> '' OR old.input + old.output > 0)), steps = steps - old.steps,
        ms = ms - old.ms, timed = timed - old.timed, first_ms = first_ms - (coalesce(old.first_ms, 0)),
        firsts = firsts - (old.first_ms IS NOT NULL), context = context - old.context
    WHERE day = old.at / 86400000 AND agent = old.agent AND model = old.model
        AND (owner_id, project_id) = (SELECT c.owner_id, c.project_id FROM conversation AS c WHERE c.no = old.conversation);
    DELETE FROM answer_day WHERE runs = 0 AND day = old.at / 86400000;
END;
CREATE INDEX answer_failed ON answer (at) WHERE error <> '';

CREATE TABLE tool_day (
    day INTEGER NOT NULL,
    owner_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    PRIMARY KEY (day, owner_id, tool)
) STRICT;
CREATE TRIGGER tool_counted AFTER INSERT ON answer_tool BEGIN
    INSERT INTO tool_day
        SELECT a.at / 86400000, c.owner_id, new.tool, new.calls, new.failed, new.denied, new.ms, new.timed
        FROM answer AS a JOIN conversation AS c ON c.no = a.conversation WHERE a.message = new.message
    ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, failed = failed + excluded.failed, denied = denied + excluded.denied,
        ms = ms + excluded.ms, timed = timed + excluded.timed;
END;
CREATE TRIGGER tool_uncounted AFTER DELETE ON answer_tool BEGIN
    UPDATE tool_day SET calls = calls - old.calls, failed = failed - old.failed, denied = denied - old.denied, ms = ms - old.ms,
        timed = timed - old.timed
    WHERE tool = old.tool AND (day, owner_id) = (
        SELECT a.at / 86400000, c.owner_id FROM answer AS a JOIN conversation AS c ON c.no = a.conversation WHERE a.message = old.message
    );
    DELETE FROM tool_day WHERE calls = 0;
END;
CREATE TRIGGER conversation_moved BEFORE UPDATE OF project_id ON conversation WHEN new.project_id <> old.project_id BEGIN
    INSERT OR IGNORE INTO to_count SELECT message FROM answer WHERE conversation = old.no;
    DELETE FROM answer_tool WHERE message IN (SELECT message FROM answer WHERE conversation = old.no);
    DELETE FROM answer WHERE conversation = old.no;
END;

CREATE TABLE aside (                            -- model calls that belong to no answer: titles, summaries, pictures
    exchange TEXT PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation (no),
    at INTEGER NOT NULL,                        -- ms
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost INTEGER
) STRICT;
CREATE INDEX aside_conversation ON aside (conversation);

CREATE TABLE to_count (                         -- answers that came or changed since they were counted
    message INTEGER PRIMARY KEY
) STRICT;
INSERT INTO to_count SELECT no FROM message WHERE role = 'assistant';

CREATE TRIGGER answer_came AFTER INSERT ON message WHEN new.role = 'assistant' BEGIN
    INSERT OR IGNORE INTO to_count VALUES (new.no);
END;
CREATE TRIGGER answer_changed AFTER UPDATE OF status, metadata ON message WHEN new.role = 'assistant' BEGIN
    INSERT OR IGNORE INTO to_count VALUES (new.no);
END;
CREATE TRIGGER answer_went AFTER DELETE ON message WHEN old.role = 'assistant' BEGIN
    DELETE FROM to_count WHERE message = old.no;
    DELETE FROM answer_tool WHERE message = old.no;
    DELETE FROM answer WHERE message = old.no;
END;
