-- What a person is shown of a call, what they allowed from then on, and the arguments that they put in its place.
ALTER TABLE approval ADD COLUMN parts BLOB;
ALTER TABLE approval ADD COLUMN patterns BLOB;
ALTER TABLE approval ADD COLUMN edited BLOB;
ALTER TABLE approval ADD COLUMN edited_digest BLOB;
