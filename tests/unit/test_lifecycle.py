"""The literal table of lifecycles: what may follow what, read by everyone."""

from typing import get_args

import pytest

from holdfast.domain.lifecycle import (
    ABSORBING,
    MACHINES,
    TRANSITIONS,
    Machine,
    advance,
    diagram,
    events,
    states,
)
from holdfast.errors import IllegalTransition


def test_every_row_is_unique_and_a_state_and_event_have_one_target() -> None:
    assert len({row[:3] for row in TRANSITIONS}) == len(TRANSITIONS)
    assert {row.machine for row in TRANSITIONS} == set(get_args(Machine)) == set(MACHINES)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_state_can_be_reached_and_final_states_absorb(machine: Machine) -> None:
    reached, frontier = set[str](), {""}
    while frontier:
        here = frontier.pop()
        for event in events(machine, here):
            target = advance(machine, here, event)
            if target not in reached:
                reached.add(target)
                frontier.add(target)
    assert reached == set(states(machine))
    for state in reached:
        final = state in ABSORBING[machine]
        assert final == (not events(machine, state)), f"{machine} {state}"


def test_a_design_row_reads_as_the_design_says() -> None:
    assert advance("task", "running", "retry") == "ready"
    assert advance("attempt", "open", "expire") == "ended"
    assert advance("step", "", "done") == "done"
    assert events("task", "waiting") == ["cancel", "expire", "signal"]


@pytest.mark.parametrize(
    ("machine", "source", "event", "words"),
    [
        ("task", "succeeded", "retry", "a succeeded task cannot retry .*possible here: nothing"),
        ("goal", "", "drop", "a new goal cannot drop .*possible here: submit"),
        ("attempt", "nowhere", "settle", "a nowhere attempt cannot settle"),
    ],
)
def test_what_the_table_does_not_say_is_refused_with_what_is_possible(
    machine: Machine, source: str, event: str, words: str
) -> None:
    with pytest.raises(IllegalTransition, match=words) as refused:
        advance(machine, source, event)
    assert (refused.value.code, refused.value.http_status) == ("illegal_transition", 409)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_diagram_draws_every_row_once(machine: Machine) -> None:
    lines = diagram(machine).splitlines()
    assert lines[0] == "stateDiagram-v2"
    rows = [row for row in TRANSITIONS if row.machine == machine]
    for row in rows:
        assert f"    {row.source or '[*]'} --> {row.target}: {row.event}" in lines
    assert len(lines) == 1 + len(rows) + len(ABSORBING[machine])
