"""The checkers of these proofs see what they are there to see: one planted fault for each."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from e2e.support import Cli, Store, broken_invariants, make_repo, write_script
from e2e.three_tasks import FILES, GOAL, PLAIN_SCRIPT, write_plan

MUTANTS = {
    "I1 task 2": "UPDATE attempts SET state = 'open', outcome = '' WHERE task_id = 2",
    "I2 task 1": "UPDATE tasks SET attempts = 5 WHERE id = 1",
    "I2 step": "UPDATE steps SET attempt = 9 WHERE task_id = 1 AND key = 't001/model'",
    "I4 ('task', '3')": "INSERT INTO log SELECT (SELECT max(seq) + 1 FROM log), at_ms, kind, "
    "goal_id, 3, attempt, 'task', '3', 'succeeded', 'retry', 'ready', body FROM log LIMIT 1",
    "I5 step 1/1/t001/model#1 is intended": "UPDATE steps SET state = 'intended' "
    "WHERE task_id = 1 AND key = 't001/model'",
    "I5 step 1/1/t002/model#1 holds": "UPDATE steps SET result = '{}' "
    "WHERE task_id = 1 AND key = 't002/model'",
    "I6 ('goal', '1')": "UPDATE goals SET state = 'executing'",
    "I6 ('step'": "DELETE FROM log WHERE machine = 'step' AND event = 'done'",
    "I6 ('plan', '1')": "UPDATE plans SET state = 'running'",
    "I8 attempt 3.1": "UPDATE attempts SET outcome = '' WHERE task_id = 3",
    "foreign_key_check": "UPDATE log SET target = 'nowhere' WHERE machine = 'goal'",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a goal that is done, in one file."""
    folder = tmp_path_factory.mktemp("finished")
    cli = Cli(make_repo(folder / "repo", FILES))
    model = write_script(folder / "model.json", PLAIN_SCRIPT)
    done = cli("run", GOAL, "--plan", str(write_plan(folder)), "--model", model, "--json")
    assert done.code == 0, done.err
    with closing(sqlite3.connect(cli.store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert broken_invariants(cli.store) == []
    return cli.store.path


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_planted_fault_is_found(finished: Path, tmp_path: Path, fault: str) -> None:
    store = Store(tmp_path / "mutant.db")
    shutil.copyfile(finished, store.path)
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        assert connection.execute(MUTANTS[fault]).rowcount > 0
        connection.commit()
    found = broken_invariants(store)
    assert any(said.startswith(fault) for said in found), found
