-- Conversations from other machines.
ALTER TABLE conversation ADD COLUMN host TEXT NOT NULL DEFAULT '';  -- name of the machine in the configuration; '' = this machine
CREATE INDEX conversation_host ON conversation (host, updated_at) WHERE host <> '';

CREATE TABLE import_alias (                     -- a session that is a copy of an imported one on another machine
    owner_id TEXT NOT NULL REFERENCES user (id),
    format TEXT NOT NULL,
    source_id TEXT NOT NULL,
    conversation INTEGER NOT NULL REFERENCES conversation (no) ON DELETE CASCADE,
    path TEXT NOT NULL,                         -- of the source, as in the origin of a conversation
    PRIMARY KEY (owner_id, format, source_id)
) STRICT;
CREATE INDEX import_alias_no ON import_alias (conversation);

CREATE TABLE import_purged (                    -- purged conversations of other machines, which are not imported again
    digest BLOB PRIMARY KEY                     -- 16 bytes of BLAKE2b of owner, format and source id
) STRICT, WITHOUT ROWID;

-- The index no longer keeps a copy of all texts: snippets are made from messages, and FTS5 removes entries without their text. It now
-- contains tool outputs to their end, so all messages are marked to be indexed again, in the background. Rows of `search` stay until then,
-- because vectors belong to them.
DROP TABLE search_words;
DROP TABLE search_text;
CREATE VIRTUAL TABLE search_words USING fts5 (
    text, tools, reasoning, agent, model, facts, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

DROP TABLE search_infix;
DELETE FROM search_term;
CREATE VIRTUAL TABLE search_infix USING fts5 (term, content = '', tokenize = 'trigram', detail = 'none', columnsize = 0);

UPDATE message SET is_indexed = 0 WHERE is_indexed <> 0;

-- Usage by hour and in any time zone, sub-agents as part of the agent that started them, limits of subscriptions, and changed files.
ALTER TABLE answer ADD COLUMN lead TEXT NOT NULL DEFAULT '';   -- agent at the top of the sub-agents; without sub-agents, the answer's own
ALTER TABLE answer ADD COLUMN program TEXT NOT NULL DEFAULT '';   -- that made the model calls, such as claude-code
ALTER TABLE answer ADD COLUMN calls TEXT;                      -- JSON: its model calls by quarter of an hour; null = all when it started
ALTER TABLE answer ADD COLUMN limits TEXT;                     -- JSON: used percentages that the program recorded; null = none
CREATE INDEX answer_at ON answer (at);
CREATE INDEX answer_limits ON answer (at) WHERE limits IS NOT NULL;
UPDATE answer SET lead = agent;

CREATE TABLE answer_edit (                      -- changes of files by finished tool calls
    owner_id TEXT NOT NULL,
    at INTEGER NOT NULL,                        -- ms, of the answer
    message INTEGER NOT NULL,                   -- message.no
    number INTEGER NOT NULL,                    -- position among the answer's changes
    path TEXT NOT NULL,
    tool TEXT NOT NULL,
    added INTEGER,                              -- lines; null = unknown
    removed INTEGER,
    PRIMARY KEY (owner_id, at, message, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX answer_edit_message ON answer_edit (message);

CREATE TABLE answer_slot (                      -- sums of a quarter of an hour, from which days of every time zone are summed
    slot INTEGER NOT NULL,                      -- quarters of an hour since 1970, UTC
    owner_id TEXT NOT NULL,
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
    PRIMARY KEY (slot, owner_id)
) STRICT, WITHOUT ROWID;
INSERT INTO answer_slot
    SELECT a.at / 900000, c.owner_id, count(*), sum(a.status = 'failed'), sum(a.input), sum(a.output), sum(a.cache_read),
        sum(a.cache_write), sum(a.reasoning), coalesce(sum(a.cost), 0),
        sum(a.cost IS NULL AND (a.model <> '' OR a.input + a.output > 0)), sum(a.steps), sum(a.ms), sum(a.timed),
        coalesce(sum(a.first_ms), 0), sum(a.first_ms IS NOT NULL), sum(a.context)
    FROM answer AS a JOIN conversation AS c ON c.no = a.conversation GROUP BY 1, 2;

DROP TRIGGER answer_counted;
DROP TRIGGER answer_uncounted;
ALTER TABLE answer_day RENAME TO earlier_day;
CREATE TABLE answer_day (
    day INTEGER NOT NULL,                       -- since 1970, UTC
    owner_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    lead TEXT NOT NULL,
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
    PRIMARY KEY (day, owner_id, project_id, agent, lead, model)
) STRICT;
INSERT INTO answer_day
    SELECT day, owner_id, project_id, agent, agent, model, runs, failed, input, output, cache_read, cache_write, reasoning, cost, unpriced,
        steps, ms, timed, first_ms, firsts, context
    FROM earlier_day;
DROP TABLE earlier_day;

CREATE TRIGGER answer_counted AFTER INSERT ON answer BEGIN
    INSERT INTO answer_day
        SELECT new.at / 86400000, c.owner_id, c.project_id, new.agent, new.lead, new.model,
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
    INSERT INTO answer_slot
        SELECT new.at / 900000, c.owner_id,
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
    DELETE FROM answer_edit WHERE message = old.message;
END;
INSERT OR IGNORE INTO to_count SELECT message FROM answer;     -- for leads, limits and changed files

-- The list of conversations by agent and model, and without those that programs created by calling `/v1`.
ALTER TABLE conversation ADD COLUMN is_call INTEGER NOT NULL DEFAULT 0;    -- 1 = created by a call of `/v1`
UPDATE conversation SET is_call = 1 WHERE no IN (
    SELECT conversation FROM run WHERE no IN (SELECT min(no) FROM run GROUP BY conversation)
        AND json_type(CAST(settings AS TEXT), '$.served') = 'object'
);
CREATE TRIGGER run_called AFTER INSERT ON run WHEN json_type(CAST(new.settings AS TEXT), '$.served') = 'object' BEGIN
    UPDATE conversation SET is_call = 1
        WHERE no = new.conversation AND NOT EXISTS (SELECT 1 FROM run WHERE conversation = new.conversation AND no <> new.no);
END;
CREATE INDEX conversation_call ON conversation (is_call, updated_at, no, deleted_at, archived_at, owner_id);
CREATE INDEX conversation_model ON conversation (iif(model = '', last_model, model), updated_at);
CREATE INDEX conversation_agent ON conversation (
    iif(
        agent = 'default' AND origin IS NOT NULL,
        coalesce(
            json_extract(CAST(origin AS TEXT), '$.agent'), json_extract(CAST(origin AS TEXT), '$.program'),
            json_extract(CAST(origin AS TEXT), '$.format'), agent
        ),
        agent
    ),
    updated_at
);
DROP INDEX conversation_project;
CREATE INDEX conversation_project ON conversation (project_id, updated_at);
