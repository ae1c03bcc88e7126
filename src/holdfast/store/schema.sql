-- The store of Holdfast. State is truth, the log is evidence, both are written in one transaction.
--
-- The life of a task. `submit` inserts a goal; `propose` inserts a plan with its tasks, each born
-- `blocked` or `ready`; `approve` lets them run. `claim` moves a ready task to `running`, opens its
-- next attempt (whose number is the fencing token) and either joins the task's open take or opens
-- the next one. `brief` gives the take its bundle, once. Then, step by step, `intend` and `done`
-- fill the take's journal; each also proves that the attempt is still open and adds what was spent.
-- `settle` ends the attempt with an outcome, `expire` ends it without one, and the same transaction
-- moves the task on: succeeded, ready again, waiting or failed. When a task succeeds its dependants
-- unblock; when the last one does, the plan finishes and the goal completes.
--
-- Rules. Every `state` column is written by `transition()` alone (its statements are the ones named
-- transition.* in queries.sql), which also inserts the log row; the foreign key from the log to
-- `lifecycle` makes an illegal transition impossible, without a trigger. A step that is done is never
-- written again. Times are milliseconds since the epoch and, like ids, always parameters.
-- Money is in 10^-9 US dollars; NULL cost means the price is unknown. JSON is text.

CREATE TABLE schema_version (
    version     INTEGER PRIMARY KEY,
    applied_ms  INTEGER NOT NULL
);

CREATE TABLE lifecycle (
    machine  TEXT NOT NULL,
    source   TEXT NOT NULL,
    event    TEXT NOT NULL,
    target   TEXT NOT NULL,
    PRIMARY KEY (machine, source, event, target)
) WITHOUT ROWID;

CREATE TABLE goals (
    id             INTEGER PRIMARY KEY,
    text           TEXT NOT NULL,
    repository     TEXT NOT NULL,
    base_commit    TEXT NOT NULL,
    base_tree      TEXT NOT NULL,
    branch         TEXT NOT NULL,
    tip_commit     TEXT NOT NULL,              -- last accepted work; the base of the next take
    branch_commit  TEXT NOT NULL,              -- what the user's branch shall show: tip or kept work
    shown_commit   TEXT NOT NULL,              -- what it was last made to show
    model          TEXT NOT NULL,
    budget_tokens  INTEGER NOT NULL,
    budget_usd     REAL NOT NULL,
    seed           INTEGER NOT NULL,
    state          TEXT NOT NULL,
    reason         TEXT NOT NULL DEFAULT '',
    created_ms     INTEGER NOT NULL,
    ended_ms       INTEGER,
    undone_ms      INTEGER
);

CREATE TABLE plans (
    id          INTEGER PRIMARY KEY,
    goal_id     INTEGER NOT NULL REFERENCES goals (id),
    revision    INTEGER NOT NULL,
    source      TEXT NOT NULL,                 -- single, person, model, undo
    state       TEXT NOT NULL,
    reason      TEXT NOT NULL DEFAULT '',
    created_ms  INTEGER NOT NULL,
    UNIQUE (goal_id, revision)
);

CREATE TABLE tasks (
    id             INTEGER PRIMARY KEY,
    goal_id        INTEGER NOT NULL REFERENCES goals (id),
    plan_id        INTEGER NOT NULL REFERENCES plans (id),
    key            TEXT NOT NULL,
    position       INTEGER NOT NULL,
    priority       INTEGER NOT NULL,
    spec           TEXT NOT NULL,              -- TaskSpec as JSON, never changed
    state          TEXT NOT NULL,
    reason         TEXT NOT NULL DEFAULT '',
    not_before_ms  INTEGER NOT NULL DEFAULT 0,
    attempts       INTEGER NOT NULL DEFAULT 0, -- last attempt number, the current fence
    take           INTEGER NOT NULL DEFAULT 0, -- last take number
    take_open      INTEGER NOT NULL DEFAULT 0, -- 1: the next attempt joins it
    strikes        INTEGER NOT NULL DEFAULT 0, -- lost or transient attempts without progress
    commit_id      TEXT NOT NULL DEFAULT '',   -- the accepted work of a succeeded task
    ended_ms       INTEGER,
    undone_ms      INTEGER,
    UNIQUE (plan_id, key)
);

CREATE INDEX tasks_by_goal ON tasks (goal_id, id);
CREATE INDEX tasks_by_plan ON tasks (plan_id, position);
CREATE INDEX tasks_ready ON tasks (priority DESC, id) WHERE state = 'ready';

CREATE TABLE task_links (
    from_id  INTEGER NOT NULL REFERENCES tasks (id),
    to_id    INTEGER NOT NULL REFERENCES tasks (id),
    kind     TEXT NOT NULL CHECK (kind IN ('requires', 'refers', 'duplicates', 'relates_to')),
    PRIMARY KEY (from_id, to_id, kind),
    CHECK (from_id <> to_id)
) WITHOUT ROWID;

CREATE INDEX task_links_back ON task_links (to_id, kind);

CREATE TABLE task_forces (
    task_id     INTEGER NOT NULL REFERENCES tasks (id),
    ignored_id  INTEGER NOT NULL REFERENCES tasks (id),
    reason      TEXT NOT NULL,
    at_ms       INTEGER NOT NULL,
    PRIMARY KEY (task_id, ignored_id)
) WITHOUT ROWID;

CREATE TABLE takes (
    task_id        INTEGER NOT NULL REFERENCES tasks (id),
    number         INTEGER NOT NULL,
    parent         INTEGER NOT NULL DEFAULT 0, -- the take it was forked from
    parent_step    TEXT NOT NULL DEFAULT '',
    bundle_sha256  TEXT NOT NULL DEFAULT '' ,  -- set once, by brief
    base_commit    TEXT NOT NULL DEFAULT '',
    base_tree      TEXT NOT NULL DEFAULT '',
    opened_ms      INTEGER NOT NULL,
    PRIMARY KEY (task_id, number)
) WITHOUT ROWID;

CREATE TABLE attempts (
    task_id        INTEGER NOT NULL REFERENCES tasks (id),
    number         INTEGER NOT NULL,
    take           INTEGER NOT NULL,
    worker         TEXT NOT NULL,
    model          TEXT NOT NULL DEFAULT '',
    state          TEXT NOT NULL,
    outcome        TEXT NOT NULL DEFAULT '',
    failure        TEXT NOT NULL DEFAULT '',
    reason         TEXT NOT NULL DEFAULT '',
    report         TEXT NOT NULL DEFAULT '{}', -- Outcome as JSON, once ended
    lease_until_ms INTEGER NOT NULL,
    cancel         INTEGER NOT NULL DEFAULT 0, -- 1: the reply to renew says cancel
    steps          INTEGER NOT NULL DEFAULT 0, -- steps this attempt committed
    tokens_in      INTEGER NOT NULL DEFAULT 0,
    tokens_out     INTEGER NOT NULL DEFAULT 0,
    tokens_cached  INTEGER NOT NULL DEFAULT 0,
    cost_nusd      INTEGER NOT NULL DEFAULT 0,
    unpriced       INTEGER NOT NULL DEFAULT 0, -- model calls whose price is unknown
    started_ms     INTEGER NOT NULL,
    ended_ms       INTEGER,
    PRIMARY KEY (task_id, number),
    FOREIGN KEY (task_id, take) REFERENCES takes (task_id, number)
) WITHOUT ROWID;

-- I1: at most one open attempt of a task.
CREATE UNIQUE INDEX attempts_one_open ON attempts (task_id) WHERE state = 'open';

CREATE TABLE steps (
    task_id        INTEGER NOT NULL,
    take           INTEGER NOT NULL,
    key            TEXT NOT NULL,
    generation     INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    kind           TEXT NOT NULL,              -- model, tool, check, decision, checkpoint
    effect         TEXT NOT NULL CHECK (effect IN ('pure', 'idempotent', 'compensable', 'irreversible')),
    state          TEXT NOT NULL,
    attempt        INTEGER NOT NULL,           -- the attempt that wrote it last
    request        TEXT NOT NULL,              -- canonical JSON, or @sha256 of a blob
    result         TEXT,
    result_sha256  TEXT NOT NULL DEFAULT '',
    tree_before    TEXT NOT NULL DEFAULT '',
    tree_after     TEXT NOT NULL DEFAULT '',
    tokens_in      INTEGER NOT NULL DEFAULT 0,
    tokens_out     INTEGER NOT NULL DEFAULT 0,
    tokens_cached  INTEGER NOT NULL DEFAULT 0,
    cost_nusd      INTEGER,                    -- its reserve till it is done; NULL: unknown
    estimated      INTEGER NOT NULL DEFAULT 0,
    reserve_tokens INTEGER NOT NULL DEFAULT 0,
    reserve_nusd   INTEGER NOT NULL DEFAULT 0,
    intended_ms    INTEGER NOT NULL,
    done_ms        INTEGER,
    PRIMARY KEY (task_id, take, key, generation),
    FOREIGN KEY (task_id, take) REFERENCES takes (task_id, number)
) WITHOUT ROWID;

CREATE TABLE log (
    seq      INTEGER PRIMARY KEY,
    at_ms    INTEGER NOT NULL,
    kind     TEXT NOT NULL CHECK (
        kind IN ('transition', 'failure', 'llm_call', 'tool_output', 'git_diff', 'decision')
    ),
    goal_id  INTEGER NOT NULL,
    task_id  INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    machine  TEXT,
    entity   TEXT,
    source   TEXT,
    event    TEXT,
    target   TEXT,
    body     TEXT NOT NULL,
    FOREIGN KEY (machine, source, event, target)
        REFERENCES lifecycle (machine, source, event, target)
);

CREATE INDEX log_by_goal ON log (goal_id);

-- The trace engine's two names, as views: its readers, exports and sync run the same SQL on both.
-- An attempt is a session; transitions are not in the trace schema.
CREATE VIEW agent_sessions AS
SELECT a.task_id || '.' || a.number AS session_id, a.started_ms AS start_ts, a.ended_ms AS end_ts,
       a.worker AS agent_name, t.key AS task, a.tokens_in + a.tokens_out AS total_tokens
FROM attempts a JOIN tasks t ON t.id = a.task_id;

CREATE VIEW events AS
SELECT seq AS id, task_id || '.' || attempt AS session_id, at_ms AS ts, kind AS event_type,
       body AS payload
FROM log WHERE kind <> 'transition' AND attempt > 0;

-- The newest failure and one session, for the trace's readers. The events of a session have no index
-- of their own: it would cost every step a page, and what is asked for is almost always recent.
CREATE INDEX log_failed ON log (seq) WHERE kind = 'failure';
CREATE INDEX attempts_session ON attempts (task_id || '.' || number);

CREATE TABLE blobs (
    sha256  TEXT PRIMARY KEY,
    bytes   BLOB NOT NULL
);
