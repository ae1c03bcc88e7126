-- Version 2: what a bundle is steered by, what retrieval searches, the index page of a goal, and two
-- views under the names that tools for curated context expect. Nothing of version 1 changes.

-- Append-only: what holds for a source is its newest row. `take` 0 is every later take of the task,
-- another number that one alone.
CREATE TABLE task_steers (
    task_id        INTEGER NOT NULL REFERENCES tasks (id),
    number         INTEGER NOT NULL,
    verb           TEXT NOT NULL CHECK (verb IN ('pin', 'exclude', 'release')),
    source         TEXT NOT NULL,
    take           INTEGER NOT NULL DEFAULT 0,
    author         TEXT NOT NULL,
    reason         TEXT NOT NULL,
    bundle_sha256  TEXT NOT NULL DEFAULT '',   -- the preview that a person approved
    at_ms          INTEGER NOT NULL,
    PRIMARY KEY (task_id, number)
) WITHOUT ROWID;

-- Outputs and incidents, searched within their plan.
CREATE TABLE documents (
    id       INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL CHECK (kind IN ('output', 'incident')),
    source   TEXT NOT NULL,                    -- TASK.ATTEMPT
    task_id  INTEGER NOT NULL,
    title    TEXT NOT NULL,
    body     TEXT NOT NULL,                    -- text, or @sha256 of a blob
    UNIQUE (kind, source)
);

-- `terms` is cut by context.words, so that identifiers and CJK are found; `scope` is p<plan>.
CREATE VIRTUAL TABLE document_terms USING fts5 (
    terms, scope, tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
);
CREATE VIRTUAL TABLE document_vocabulary USING fts5vocab (document_terms, 'row');

-- Source files by git's blob id: the terms they hold, and what they define and mention; a tree's map
-- is made from these. Both are caches: deleting all of their rows loses nothing.
CREATE TABLE source_files (
    id       INTEGER PRIMARY KEY,
    blob_id  TEXT NOT NULL UNIQUE,
    length   INTEGER NOT NULL,                 -- terms in the index
    facts    BLOB NOT NULL
);

CREATE VIRTUAL TABLE file_terms USING fts5 (
    terms, content = '', tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
);
CREATE VIRTUAL TABLE file_instances USING fts5vocab (file_terms, 'instance');

CREATE TABLE tree_maps (
    tree_id  TEXT PRIMARY KEY,
    map      BLOB NOT NULL,
    at_ms    INTEGER NOT NULL
);

CREATE TABLE index_pages (
    goal_id      INTEGER NOT NULL REFERENCES goals (id),
    version      INTEGER NOT NULL,
    text         TEXT NOT NULL,
    sha256       TEXT NOT NULL,
    author       TEXT NOT NULL,                -- a person, or TASK.ATTEMPT of the root task
    fingerprint  TEXT NOT NULL,                -- of the plan it describes; another one now: stale
    at_ms        INTEGER NOT NULL,
    PRIMARY KEY (goal_id, version)
) WITHOUT ROWID;

CREATE VIEW task_contexts AS
SELECT k.task_id * 1000000 + k.number AS id, k.task_id, CAST(b.bytes AS TEXT) AS payload,
       k.bundle_sha256 AS content_hash, k.opened_ms AS created_at
FROM takes k JOIN blobs b ON b.sha256 = k.bundle_sha256;

CREATE VIEW runs AS
SELECT a.task_id * 1000000 + a.number AS id, a.task_id,
       a.task_id * 1000000 + a.take AS used_context_id, a.started_ms AS started_at,
       a.ended_ms AS finished_at, CASE a.state WHEN 'open' THEN 'open' ELSE a.outcome END AS status,
       a.model, t.spec AS config, g.seed, k.bundle_sha256 AS prompt_hash, a.tokens_in, a.tokens_out,
       a.cost_nusd
FROM attempts a
JOIN tasks t ON t.id = a.task_id
JOIN goals g ON g.id = t.goal_id
JOIN takes k ON k.task_id = a.task_id AND k.number = a.take;
