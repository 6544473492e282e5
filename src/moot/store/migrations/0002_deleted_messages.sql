-- A deleted message keeps its place in the tree: what was said behind it hangs there.
ALTER TABLE message ADD COLUMN deleted_at INTEGER;
