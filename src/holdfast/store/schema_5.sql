-- Version 5: steps in a table with row ids. A row holds a request and a result, a kilobyte and more;
-- without row ids, all of a row above 488 bytes takes a page of its own, and whole rows stand in the
-- inner pages of the tree (https://www.sqlite.org/withoutrowid.html, "when to use"). No row changes;
-- what the columns mean stands in version 1.

CREATE TABLE steps_with_row_ids (
    task_id        INTEGER NOT NULL,
    take           INTEGER NOT NULL,
    key            TEXT NOT NULL,
    generation     INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    kind           TEXT NOT NULL,
    effect         TEXT NOT NULL CHECK (effect IN ('pure', 'idempotent', 'compensable', 'irreversible')),
    state          TEXT NOT NULL,
    attempt        INTEGER NOT NULL,
    request        TEXT NOT NULL,
    result         TEXT,
    result_sha256  TEXT NOT NULL DEFAULT '',
    tree_before    TEXT NOT NULL DEFAULT '',
    tree_after     TEXT NOT NULL DEFAULT '',
    tokens_in      INTEGER NOT NULL DEFAULT 0,
    tokens_out     INTEGER NOT NULL DEFAULT 0,
    tokens_cached  INTEGER NOT NULL DEFAULT 0,
    cost_nusd      INTEGER,
    estimated      INTEGER NOT NULL DEFAULT 0,
    reserve_tokens INTEGER NOT NULL DEFAULT 0,
    reserve_nusd   INTEGER NOT NULL DEFAULT 0,
    intended_ms    INTEGER NOT NULL,
    done_ms        INTEGER,
    PRIMARY KEY (task_id, take, key, generation),
    FOREIGN KEY (task_id, take) REFERENCES takes (task_id, number)
);

INSERT INTO steps_with_row_ids SELECT * FROM steps ORDER BY task_id, take, position, generation;
DROP TABLE steps;
ALTER TABLE steps_with_row_ids RENAME TO steps;

-- Nobody asks for the vocabulary of past outputs alone.
DROP TABLE document_vocabulary;
