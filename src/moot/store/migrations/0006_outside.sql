-- What an outside agent asks about, with the answers that it takes; its process waits meanwhile.
ALTER TABLE approval ADD COLUMN outside BLOB;
