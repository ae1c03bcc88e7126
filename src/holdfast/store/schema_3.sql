-- Version 3: what costs a step or a settle the same at its thousandth as at its first. What an open
-- attempt has in flight is a column of it, and the state of a plan is asked of an index.

-- The reserves of the steps that this attempt has intended and not done; 0 once it has ended.
ALTER TABLE attempts ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN reserved_nusd INTEGER NOT NULL DEFAULT 0;

UPDATE attempts SET
    reserved_tokens = (
        SELECT coalesce(sum(s.reserve_tokens), 0) FROM steps s
        WHERE s.task_id = attempts.task_id AND s.take = attempts.take
          AND s.attempt = attempts.number AND s.state = 'intended'
    ),
    reserved_nusd = (
        SELECT coalesce(sum(s.reserve_nusd), 0) FROM steps s
        WHERE s.task_id = attempts.task_id AND s.take = attempts.take
          AND s.attempt = attempts.number AND s.state = 'intended'
    )
WHERE state = 'open';

CREATE INDEX tasks_by_state ON tasks (plan_id, state);
