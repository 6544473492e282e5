-- What a newer converter makes of an exchange: which one it is of, when that was, and how it then ended.
-- A row covers a stretch of the exchange's events; `chunks` is [[seq, [chunk, …]], …], of those that became others.
ALTER TABLE translation ADD COLUMN exchange TEXT NOT NULL DEFAULT '';
ALTER TABLE translation ADD COLUMN ending BLOB;
ALTER TABLE translation ADD COLUMN made_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX translation_exchange ON translation (exchange, converter, first_seq);
