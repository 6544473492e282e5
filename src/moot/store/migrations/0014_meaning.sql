-- What answers mean: the vector that a model made of an answer and its question. Derived, like the rest of the search index.
CREATE TABLE search_vector (
    no INTEGER PRIMARY KEY,                     -- search.no, of the answer
    model TEXT NOT NULL,                        -- which weights in which version
    vector BLOB NOT NULL                        -- eight bits for each number; empty = there was nothing to read
) STRICT;
CREATE INDEX search_vector_model ON search_vector (model);
