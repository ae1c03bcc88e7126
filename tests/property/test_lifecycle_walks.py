"""Random event sequences: the guard and the database refuse the same things."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.lifecycle import ABSORBING, MACHINES, TRANSITIONS, Machine, advance, events
from holdfast.errors import IllegalTransition
from holdfast.store import open_store

EVENTS = sorted({row.event for row in TRANSITIONS})
STATES = sorted({row.target for row in TRANSITIONS} | {""})


@given(st.sampled_from(MACHINES), st.lists(st.sampled_from(EVENTS), max_size=30))
def test_a_walk_follows_the_table_and_stays_where_it_ends(
    machine: Machine, walk: list[str]
) -> None:
    state = ""
    for event in walk:
        possible = events(machine, state)
        if event in possible:
            state = advance(machine, state, event)
        else:
            with pytest.raises(IllegalTransition):
                advance(machine, state, event)
        if state in ABSORBING[machine]:
            assert events(machine, state) == []


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    connection = open_store(tmp_path_factory.mktemp("lifecycle") / "holdfast.db", now_ms=0)
    yield connection
    connection.close()


def test_the_database_refuses_every_event_that_the_table_does_not_know(
    store: sqlite3.Connection,
) -> None:
    legal = {tuple(row) for row in TRANSITIONS}
    refused = accepted = 0
    for machine in MACHINES:
        for source in STATES:
            for event in EVENTS:
                for target in STATES:
                    row = (machine, source, event, target)
                    store.execute("SAVEPOINT one")
                    try:
                        store.execute(
                            "INSERT INTO log (seq, at_ms, kind, goal_id, task_id, attempt, machine,"
                            " entity, source, event, target, body)"
                            " VALUES (1, 0, 'transition', 0, 0, 0, ?, 'x', ?, ?, ?, '{}')",
                            row,
                        )
                        accepted += 1
                        assert row in legal, row
                    except sqlite3.IntegrityError:
                        refused += 1
                        assert row not in legal, row
                    store.execute("ROLLBACK TO one")
                    store.execute("RELEASE one")
    assert accepted == len(legal)
    assert refused > 1000
