-- Every statement of the engine, named. Statements named transition.* are the only ones that write a
-- `state` column, and `transition()` is the only caller they have.

-- name: id.goal
SELECT coalesce(max(id), 0) + 1 FROM goals;
-- name: id.plan
SELECT coalesce(max(id), 0) + 1 FROM plans;
-- name: id.task
SELECT coalesce(max(id), 0) + 1 FROM tasks;
-- name: id.revision
SELECT coalesce(max(revision), 0) + 1 FROM plans WHERE goal_id = :goal;

-- name: log.add
INSERT INTO log (at_ms, kind, goal_id, task_id, attempt, body)
VALUES (:now, :kind, :goal, :task, :attempt, :body);
-- name: log.transition
INSERT INTO log (at_ms, kind, goal_id, task_id, attempt, machine, entity, source, event, target,
                 body)
VALUES (:now, 'transition', :goal, :task, :attempt, :machine, :entity, :source, :event, :target,
        :body);
-- name: log.page
SELECT seq, at_ms, kind, goal_id, task_id, attempt, machine, entity, source, event, target, body
FROM log WHERE seq > :after ORDER BY seq LIMIT :limit;
-- name: log.page.goal
SELECT seq, at_ms, kind, goal_id, task_id, attempt, machine, entity, source, event, target, body
FROM log WHERE goal_id = :goal AND seq > :after ORDER BY seq LIMIT :limit;
-- name: log.last_move
SELECT source, target FROM log WHERE goal_id = :goal AND machine = 'goal' ORDER BY seq DESC LIMIT 1;
-- name: log.transitions
SELECT machine, entity, source, event, target FROM log WHERE kind = 'transition' ORDER BY seq;

-- name: transition.goal.submit
INSERT INTO goals (id, text, repository, base_commit, base_tree, branch, tip_commit, branch_commit,
                   shown_commit, model, budget_tokens, budget_usd, seed, state, created_ms)
VALUES (:id, :text, :repository, :base_commit, :base_tree, :branch, :base_commit, :base_commit,
        :base_commit, :model, :budget_tokens, :budget_usd, :seed, :target, :now);
-- name: transition.goal
UPDATE goals SET state = :target, reason = :reason, ended_ms = :ended_ms
WHERE id = :id AND state = :source;
-- name: goal.get
SELECT * FROM goals WHERE id = :id;
-- name: goal.budget
SELECT budget_tokens, budget_usd FROM goals
WHERE id = :id AND (budget_tokens > 0 OR budget_usd > 0);
-- name: goal.list
SELECT * FROM goals ORDER BY id;
-- name: goal.titled
SELECT id FROM goals WHERE text = :text AND state <> 'dropped' ORDER BY id DESC LIMIT 1;
-- name: goal.live
SELECT DISTINCT g.* FROM goals g JOIN plans p ON p.goal_id = g.id
WHERE p.state IN ('running', 'paused', 'proposed') OR g.shown_commit <> g.branch_commit ORDER BY g.id;
-- name: goal.accept
UPDATE goals SET tip_commit = :commit, branch_commit = :commit WHERE id = :id;
-- name: goal.keep
UPDATE goals SET branch_commit = :commit WHERE id = :id;
-- name: goal.allow
UPDATE goals SET budget_tokens = :tokens, budget_usd = :usd WHERE id = :id;
-- name: goal.shown
UPDATE goals SET shown_commit = :commit WHERE id = :id;
-- name: goal.undone
UPDATE goals SET undone_ms = :now WHERE id = :id;
-- name: goal.spent
SELECT coalesce(sum(a.tokens_in), 0) AS tokens_in, coalesce(sum(a.tokens_out), 0) AS tokens_out,
       coalesce(sum(a.tokens_cached), 0) AS tokens_cached,
       coalesce(sum(a.cost_nusd), 0) AS cost_nusd, coalesce(sum(a.unpriced), 0) AS unpriced,
       coalesce(sum(a.reserved_tokens), 0) AS reserved_tokens,
       coalesce(sum(a.reserved_nusd), 0) AS reserved_nusd, count(a.number) AS attempts
FROM tasks t JOIN attempts a ON a.task_id = t.id WHERE t.goal_id = :goal;
-- name: transition.plan.draft
INSERT INTO plans (id, goal_id, revision, source, state, created_ms)
VALUES (:id, :goal, :revision, :plan_source, :target, :now);
-- name: transition.plan
UPDATE plans SET state = :target, reason = :reason WHERE id = :id AND state = :source;
-- name: plan.get
SELECT * FROM plans WHERE id = :id;
-- name: plan.of_goal
SELECT * FROM plans WHERE goal_id = :goal ORDER BY revision;
-- name: plan.standing
SELECT EXISTS (SELECT 1 FROM tasks WHERE plan_id = :plan
               AND state IN ('ready', 'running', 'waiting')) AS going,
       EXISTS (SELECT 1 FROM tasks WHERE plan_id = :plan AND state = 'blocked') AS blocked,
       EXISTS (SELECT 1 FROM tasks WHERE plan_id = :plan
               AND state IN ('failed', 'cancelled')) AS stopped;

-- name: transition.task.create
INSERT INTO tasks (id, goal_id, plan_id, key, position, priority, spec, state, reason)
VALUES (:id, :goal, :plan, :key, :position, :priority, :spec, :target, :reason);
-- name: transition.task.claim
UPDATE tasks SET state = :target, reason = '', attempts = :attempt, take = :take, take_open = 1
WHERE id = :id AND state = :source;
-- name: transition.task.retry
UPDATE tasks SET state = :target, reason = :reason, not_before_ms = :not_before_ms,
                 strikes = :strikes, take_open = :take_open
WHERE id = :id AND state = :source;
-- name: transition.task.succeed
UPDATE tasks SET state = :target, reason = :reason, strikes = 0, take_open = 0,
                 commit_id = :commit, ended_ms = :now
WHERE id = :id AND state = :source;
-- name: transition.task.fail
UPDATE tasks SET state = :target, reason = :reason, strikes = :strikes, take_open = 0,
                 commit_id = coalesce(nullif(:commit, ''), commit_id), ended_ms = :now
WHERE id = :id AND state = :source;
-- name: transition.task.reopen
UPDATE tasks SET state = :target, reason = :reason, strikes = 0, not_before_ms = 0, ended_ms = NULL
WHERE id = :id AND state = :source;
-- name: transition.task
UPDATE tasks SET state = :target, reason = :reason WHERE id = :id AND state = :source;
-- name: task.get
SELECT * FROM tasks WHERE id = :id;
-- name: task.of_plan
SELECT * FROM tasks WHERE plan_id = :plan ORDER BY position;
-- name: task.stopped
SELECT * FROM tasks WHERE plan_id = :plan AND state IN ('failed', 'cancelled')
ORDER BY position LIMIT 1;
-- name: task.of_goal
SELECT * FROM tasks WHERE goal_id = :goal ORDER BY id;
-- name: task.next_ready
SELECT t.* FROM tasks t JOIN plans p ON p.id = t.plan_id
WHERE t.state = 'ready' AND t.not_before_ms <= :now AND p.state = 'running'
ORDER BY t.priority DESC, t.id LIMIT 1;
-- name: task.next_ready_of_goal
SELECT t.* FROM tasks t JOIN plans p ON p.id = t.plan_id
WHERE t.state = 'ready' AND t.not_before_ms <= :now AND p.state = 'running' AND t.goal_id = :goal
ORDER BY t.priority DESC, t.id LIMIT 1;
-- name: task.prioritise
UPDATE tasks SET priority = :priority WHERE id = :id;
-- name: task.inherit
UPDATE tasks SET plan_id = :plan WHERE plan_id = :before;
-- name: task.undone
UPDATE tasks SET undone_ms = :now WHERE id = :id;
-- name: task.completions
SELECT task_id, max(seq) AS seq FROM log
WHERE goal_id = :goal AND machine = 'task' AND target IN ('succeeded', 'failed') GROUP BY task_id;
-- name: task.dependants
SELECT t.* FROM task_links l JOIN tasks t ON t.id = l.from_id
WHERE l.to_id = :id AND l.kind = 'requires' ORDER BY t.id;
-- name: task.unmet
SELECT r.id, r.key, r.state FROM task_links l JOIN tasks r ON r.id = l.to_id
WHERE l.from_id = :id AND l.kind = 'requires' AND r.state <> 'succeeded'
  AND NOT EXISTS (SELECT 1 FROM task_forces f WHERE f.task_id = :id AND f.ignored_id = r.id)
ORDER BY r.id;
-- name: task.force
INSERT INTO task_forces (task_id, ignored_id, reason, at_ms) VALUES (:id, :ignored, :reason, :now)
ON CONFLICT (task_id, ignored_id) DO NOTHING;
-- name: link.add
INSERT INTO task_links (from_id, to_id, kind) VALUES (:from_id, :to_id, :kind)
ON CONFLICT (from_id, to_id, kind) DO NOTHING;
-- name: link.remove
DELETE FROM task_links WHERE from_id = :from_id AND to_id = :to_id AND kind = :kind;
-- name: link.out
SELECT l.from_id, l.to_id, l.kind, t.key, t.state, t.plan_id
FROM task_links l JOIN tasks t ON t.id = l.to_id WHERE l.from_id = :id ORDER BY l.kind, l.to_id;
-- name: link.in
SELECT l.from_id, l.to_id, l.kind, t.key, t.state, t.plan_id
FROM task_links l JOIN tasks t ON t.id = l.from_id WHERE l.to_id = :id ORDER BY l.kind, l.from_id;
-- name: link.all
SELECT l.from_id, f.key AS from_key, f.state AS from_state, l.kind, l.to_id, t.key AS to_key,
       t.state AS to_state
FROM task_links l JOIN tasks f ON f.id = l.from_id JOIN tasks t ON t.id = l.to_id
ORDER BY l.from_id, l.kind, l.to_id;
-- name: link.reachable
WITH RECURSIVE reach (id) AS (
    SELECT :id
    UNION
    SELECT l.to_id FROM task_links l JOIN reach r ON l.from_id = r.id WHERE l.kind = 'requires'
)
SELECT l.from_id, l.to_id FROM task_links l JOIN reach r ON l.from_id = r.id
WHERE l.kind = 'requires' ORDER BY l.from_id, l.to_id;
-- name: link.of_plan
SELECT l.from_id, l.to_id FROM task_links l JOIN tasks t ON t.id = l.from_id
WHERE t.plan_id = :plan AND l.kind = 'requires' ORDER BY l.from_id, l.to_id;
-- name: link.of_task
SELECT l.kind, t.* FROM task_links l JOIN tasks t ON t.id = l.to_id
WHERE l.from_id = :id ORDER BY l.kind, t.id;

-- name: take.open
INSERT INTO takes (task_id, number, parent, parent_step, opened_ms)
VALUES (:task, :take, :parent, :parent_step, :now);
-- name: take.get
SELECT * FROM takes WHERE task_id = :task AND number = :take;
-- name: take.brief
UPDATE takes SET bundle_sha256 = :bundle, base_commit = :base_commit, base_tree = :base_tree
WHERE task_id = :task AND number = :take AND bundle_sha256 = '';

-- name: transition.attempt.open
INSERT INTO attempts (task_id, number, take, worker, model, state, lease_until_ms, started_ms)
VALUES (:task, :attempt, :take, :worker, :model, :target, :lease_until_ms, :now);
-- name: transition.attempt
UPDATE attempts SET state = :target, outcome = :outcome, failure = :failure, reason = :reason,
                    report = :report, ended_ms = :now,
                    tokens_in = tokens_in + :orphan_tokens, cost_nusd = cost_nusd + :orphan_nusd,
                    unpriced = unpriced + :orphan_unpriced,
                    reserved_tokens = 0, reserved_nusd = 0
WHERE task_id = :task AND number = :attempt AND state = :source;
-- name: attempt.get
SELECT * FROM attempts WHERE task_id = :task AND number = :attempt;
-- name: attempt.of_task
SELECT * FROM attempts WHERE task_id = :task ORDER BY number;
-- name: attempt.open
SELECT a.*, t.goal_id FROM attempts a JOIN tasks t ON t.id = a.task_id
WHERE a.state = 'open' ORDER BY a.task_id;
-- name: attempt.renew
UPDATE attempts SET lease_until_ms = :lease_until_ms
WHERE task_id = :task AND number = :attempt AND state = 'open';
-- name: attempt.ask_cancel
UPDATE attempts SET cancel = 1 WHERE task_id = :task AND number = :attempt AND state = 'open';
-- name: attempt.spend
UPDATE attempts SET steps = steps + :done, tokens_in = tokens_in + :tokens_in,
                    tokens_out = tokens_out + :tokens_out,
                    tokens_cached = tokens_cached + :tokens_cached,
                    cost_nusd = cost_nusd + :cost_nusd, unpriced = unpriced + :unpriced,
                    reserved_tokens = reserved_tokens + :reserved_tokens,
                    reserved_nusd = reserved_nusd + :reserved_nusd
WHERE task_id = :task AND number = :attempt AND state = 'open';
-- name: attempt.release
UPDATE attempts SET reserved_tokens = reserved_tokens - :tokens,
                    reserved_nusd = reserved_nusd - :nusd
WHERE task_id = :task AND number = :attempt;
-- name: attempt.orphans
-- A step that an earlier version intended says in its reserve alone what it may cost.
SELECT key, position, reserve_tokens, coalesce(cost_nusd, nullif(reserve_nusd, 0)) AS cost_nusd
FROM steps
WHERE task_id = :task AND take = :take AND attempt = :attempt AND state = 'intended'
  AND (reserve_tokens > 0 OR reserve_nusd > 0)
ORDER BY position;
-- name: step.asked_before
SELECT request FROM steps
WHERE task_id = :task AND take = :take AND kind = 'model' AND position <= :position
ORDER BY position DESC, generation DESC;

-- name: transition.step.intend
INSERT INTO steps (task_id, take, key, generation, position, kind, effect, state, attempt, request,
                   tree_before, reserve_tokens, reserve_nusd, cost_nusd, intended_ms)
VALUES (:task, :take, :key, :generation, :position, :kind, :effect, :target, :attempt, :request,
        :tree_before, :reserve_tokens, :reserve_nusd, :cost_nusd, :now);
-- name: transition.step.born
INSERT INTO steps (task_id, take, key, generation, position, kind, effect, state, attempt, request,
                   result, result_sha256, tree_before, tree_after, intended_ms, done_ms)
VALUES (:task, :take, :key, :generation, :position, :kind, :effect, :target, :attempt, :request,
        :result, :result_sha256, :tree_before, :tree_after, :now, :now);
-- name: transition.step.done
UPDATE steps SET state = :target, result = :result,
                 result_sha256 = :result_sha256, tree_after = :tree_after, tokens_in = :tokens_in,
                 tokens_out = :tokens_out, tokens_cached = :tokens_cached, cost_nusd = :cost_nusd,
                 estimated = :estimated, done_ms = :now
WHERE task_id = :task AND take = :take AND key = :key AND generation = :generation
  AND state = :source AND attempt = :attempt AND reserve_tokens = :reserve_tokens
  AND reserve_nusd = :reserve_nusd;
-- name: transition.step.redo
UPDATE steps SET state = :target, attempt = :attempt, reserve_tokens = :reserve_tokens,
                 reserve_nusd = :reserve_nusd, cost_nusd = :cost_nusd
WHERE task_id = :task AND take = :take AND key = :key AND generation = :generation
  AND state = :source AND attempt < :attempt;
-- name: transition.step.lose
UPDATE steps SET state = :target, attempt = :attempt, done_ms = :now
WHERE task_id = :task AND take = :take AND key = :key AND generation = :generation
  AND state = :source;
-- name: step.reserve
SELECT reserve_tokens, reserve_nusd FROM steps
WHERE task_id = :task AND take = :take AND key = :key AND generation = :generation
  AND state = 'intended' AND attempt = :attempt;
-- name: step.of_goal_by_key
SELECT s.result FROM tasks t JOIN steps s ON s.task_id = t.id
WHERE t.goal_id = :goal AND s.key = :key AND s.state = 'done' ORDER BY s.task_id, s.take LIMIT 1;
-- name: step.of_take
SELECT * FROM steps WHERE task_id = :task AND take = :take ORDER BY position, generation;
-- name: step.irreversible
SELECT s.*, a.result AS answer FROM steps s
LEFT JOIN steps a ON a.task_id = s.task_id AND a.take = s.take AND a.generation = 1
  AND a.kind = 'decision' AND a.key = s.key || '/answer#' || s.generation
WHERE s.task_id = :task AND s.take < :take AND s.effect = 'irreversible'
ORDER BY s.take, s.position, s.generation;
-- name: step.next_position
SELECT coalesce(max(position), 0) + 1 FROM steps WHERE task_id = :task AND take = :take;
-- name: step.all
SELECT task_id, take, key, generation, state, attempt, result, result_sha256 FROM steps;

-- name: blob.put
INSERT INTO blobs (sha256, bytes) VALUES (:sha256, :bytes) ON CONFLICT (sha256) DO NOTHING;
-- name: blob.get
SELECT bytes FROM blobs WHERE sha256 = :sha256;

-- name: lifecycle.put
INSERT INTO lifecycle (machine, source, event, target)
VALUES (:machine, :source, :event, :target)
ON CONFLICT (machine, source, event, target) DO NOTHING;
-- name: version.put
INSERT INTO schema_version (version, applied_ms) VALUES (:version, :now);

-- name: document.next
SELECT coalesce(max(id), 0) + 1 FROM documents;
-- name: document.add
INSERT INTO documents (id, kind, source, task_id, title, body)
VALUES (:id, :kind, :source, :task, :title, :body) ON CONFLICT (kind, source) DO NOTHING;
-- name: document.index
INSERT INTO document_terms (rowid, terms, scope) VALUES (:id, :terms, :scope);
-- name: document.inherit
UPDATE document_terms SET scope = :scope
WHERE rowid IN (SELECT rowid FROM document_terms WHERE document_terms MATCH :match);
-- name: document.matching
SELECT count(*) FROM document_terms WHERE document_terms MATCH :match;
-- name: document.of_scope
SELECT d.kind, d.source, d.task_id, d.title, d.body FROM document_terms f
JOIN documents d ON d.id = f.rowid
WHERE document_terms MATCH :match ORDER BY f.rowid DESC LIMIT :limit;
-- name: document.match
SELECT d.id, d.kind, d.source, d.task_id, d.title, d.body, found.terms
FROM (SELECT rowid, terms FROM document_terms WHERE document_terms MATCH :match
      -- A rank counts every term in the whole index: asked for only where there are too many.
      ORDER BY CASE WHEN :many THEN rank END, rowid LIMIT :limit) AS found
JOIN documents d ON d.id = found.rowid ORDER BY d.id;

-- name: file.next
SELECT coalesce(max(id), 0) + 1 FROM source_files;
-- name: file.add
INSERT INTO source_files (id, blob_id, length, facts)
SELECT :next + f.key, json_extract(f.value, '$[0]'), json_extract(f.value, '$[1]'),
    substr(:facts, 1 + coalesce(sum(json_extract(f.value, '$[2]')) OVER before, 0),
           json_extract(f.value, '$[2]'))
FROM json_each(:files) f WHERE true
WINDOW before AS (ORDER BY f.key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
ON CONFLICT (blob_id) DO UPDATE SET facts = excluded.facts;
-- name: file.index
INSERT INTO file_terms (rowid, terms)
SELECT s.id, t.value FROM json_each(:terms) t JOIN source_files s ON s.blob_id = t.key
WHERE s.id >= :next;
-- name: file.facts
SELECT facts FROM source_files WHERE blob_id = :blob;
-- name: file.beside
UPDATE source_files SET facts = :facts WHERE blob_id = :blob;
-- name: file.with
SELECT s.blob_id, s.length, count(*) AS times
FROM file_instances i JOIN source_files s ON s.id = i.doc
WHERE i.term = :term GROUP BY i.doc;

-- name: map.get
SELECT map FROM tree_maps WHERE tree_id = :tree;
-- name: map.put
INSERT INTO tree_maps (tree_id, map, at_ms) VALUES (:tree, :map, :now)
ON CONFLICT (tree_id) DO UPDATE SET map = excluded.map;
-- name: map.forget
DELETE FROM tree_maps WHERE tree_id NOT IN
    (SELECT tree_id FROM tree_maps ORDER BY at_ms DESC, tree_id LIMIT :kept);

-- name: steer.add
INSERT INTO task_steers (task_id, number, verb, source, take, author, reason, bundle_sha256, at_ms)
VALUES (:task, (SELECT coalesce(max(number), 0) + 1 FROM task_steers WHERE task_id = :task), :verb,
        :source, :take, :author, :reason, :bundle, :now);
-- name: steer.all
SELECT * FROM task_steers ORDER BY at_ms, task_id, number;
-- name: steer.of_task
SELECT * FROM task_steers WHERE task_id = :task ORDER BY number;

-- name: index.latest
SELECT * FROM index_pages WHERE goal_id = :goal ORDER BY version DESC LIMIT 1;
-- name: index.add
INSERT INTO index_pages (goal_id, version, text, sha256, author, fingerprint, at_ms)
VALUES (:goal, :version, :text, :sha256, :author, :fingerprint, :now);
-- name: take.of_task
SELECT * FROM takes WHERE task_id = :task ORDER BY number;

-- name: log.end
SELECT coalesce(max(seq), 0) AS seq FROM log;
-- name: goal.counts
SELECT goal_id, count(*) AS tasks, sum(CASE WHEN state = 'succeeded' THEN 1 ELSE 0 END) AS done
FROM tasks GROUP BY goal_id;
-- name: board.tasks
SELECT t.id, t.key, t.plan_id, t.spec, t.state, t.reason, t.attempts, a.state AS attempt_state,
       a.model, a.worker, a.outcome, a.report, a.started_ms, coalesce(s.tokens, 0) AS tokens,
       coalesce(s.cost_nusd, 0) AS cost_nusd, coalesce(s.unpriced, 0) AS unpriced,
       coalesce(s.worked_ms, 0) AS worked_ms
FROM tasks t
LEFT JOIN attempts a ON a.task_id = t.id AND a.number = t.attempts
LEFT JOIN (
    SELECT x.task_id, sum(x.tokens_in + x.tokens_out) AS tokens, sum(x.cost_nusd) AS cost_nusd,
           sum(x.unpriced) AS unpriced, sum(coalesce(x.ended_ms, x.started_ms) - x.started_ms)
           AS worked_ms
    FROM tasks y JOIN attempts x ON x.task_id = y.id WHERE y.goal_id = :goal GROUP BY x.task_id
) s ON s.task_id = t.id
WHERE t.goal_id = :goal ORDER BY t.plan_id, t.position;
-- name: board.unmet
SELECT l.from_id, r.key FROM tasks t
JOIN task_links l ON l.from_id = t.id AND l.kind = 'requires'
JOIN tasks r ON r.id = l.to_id
WHERE t.goal_id = :goal AND t.state = 'blocked' AND r.state <> 'succeeded'
  AND NOT EXISTS (SELECT 1 FROM task_forces f WHERE f.task_id = t.id AND f.ignored_id = r.id)
ORDER BY l.from_id, r.id;
-- name: board.checks
SELECT s.task_id, s.result FROM tasks t
JOIN attempts a ON a.task_id = t.id AND a.state = 'open'
JOIN steps s ON s.task_id = a.task_id AND s.take = a.take AND s.key >= 'v' AND s.key < 'w'
WHERE t.goal_id = :goal AND s.kind = 'check' AND s.state = 'done' ORDER BY s.task_id, s.key;
