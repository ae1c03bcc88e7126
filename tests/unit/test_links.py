"""Links: typed, validated, acyclic where it matters, and able to say what blocks what (C1, C2)."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from context_world import World, passed, task, world
from holdfast import cli
from holdfast.domain import graph
from holdfast.domain.model import Outcome
from holdfast.engine import cancel, claim
from holdfast.engine.links import (
    blockers,
    create_link,
    delete_link,
    list_dependencies,
    list_links,
)
from holdfast.engine.listing import task_row
from holdfast.engine.schedule import requires_dag_schedule
from holdfast.errors import NotFound, Refused


@pytest.fixture
def w(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.goal(task("a"), task("b"), task("c"), task("d", "c"))
        yield made


def state(w: World, number: int) -> str:
    return w.engine.read(task_row, number)["state"]


def test_a_link_is_made_once_and_seen_from_both_ends(w: World) -> None:
    assert w.engine.call(create_link, 1, 2, "refers") is True
    assert w.engine.call(create_link, 1, 2, "refers") is False
    assert [link["task"] for link in w.engine.read(list_links, 1)["outgoing"]] == [2]
    assert w.engine.read(list_links, 2)["incoming"][0] == {
        "from_id": 1,
        "to_id": 2,
        "task": 1,
        "key": "a",
        "kind": "refers",
        "state": "ready",
    }


def test_the_table_of_links_has_the_columns_and_the_key_that_other_tools_expect(
    w: World, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as store:
        columns = store.execute("PRAGMA table_info(task_links)").fetchall()
    assert [(row[1], row[5]) for row in columns] == [("from_id", 1), ("to_id", 2), ("kind", 3)]


def test_links_are_listed_in_one_order_whatever_order_they_were_made_in(w: World) -> None:
    for other, kind in ((4, "refers"), (3, "requires"), (2, "refers"), (2, "duplicates")):
        w.engine.call(create_link, 1, other, kind)
    outgoing = w.engine.read(list_links, 1)["outgoing"]
    assert [(link["kind"], link["task"]) for link in outgoing] == [
        ("duplicates", 2),
        ("refers", 2),
        ("refers", 4),
        ("requires", 3),
    ]
    needed = w.engine.read(list_dependencies, 1)
    assert [(link["kind"], link["task"]) for link in needed] == [
        ("requires", 3),
        ("refers", 2),
        ("refers", 4),
    ]


@pytest.mark.parametrize(
    ("link", "error", "says"),
    [
        ((1, 2, "needs"), Refused, "requires, refers, duplicates, relates_to"),
        ((1, 1, "refers"), Refused, "itself"),
        ((1, 99, "refers"), NotFound, "no task 99"),
        ((99, 1, "refers"), NotFound, "no task 99"),
    ],
)
def test_a_bad_link_is_refused_with_what_would_be_valid(
    w: World, link: tuple[int, int, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        w.engine.call(create_link, *link)
    assert w.engine.read(list_links, 1)["outgoing"] == []


def test_a_loop_is_refused_at_insert_with_one_way_round_and_its_members_only(w: World) -> None:
    w.engine.call(create_link, 3, 2, "requires")
    w.engine.call(create_link, 2, 1, "requires")
    with pytest.raises(Refused) as refused:
        w.engine.call(create_link, 2, 4, "requires")
    assert refused.value.code == "link_cycle"
    assert "2 → 4 → 3 → 2 (of 2, 3, 4)" in refused.value.message
    assert "task 4 requires 3" in refused.value.hint or "only this link" in refused.value.hint
    assert w.engine.call(create_link, 2, 4, "refers") is True


def test_a_new_requirement_blocks_a_ready_task_and_its_removal_frees_it(w: World) -> None:
    w.engine.call(create_link, 1, 2, "requires")
    assert state(w, 1) == "blocked"
    w.engine.call(delete_link, 1, 2, "requires")
    assert state(w, 1) == "ready"
    with pytest.raises(NotFound):
        w.engine.call(delete_link, 1, 2, "requires")


def test_a_requirement_that_has_succeeded_blocks_nothing(w: World) -> None:
    assert w.end(1, passed("done")) == 1
    w.engine.call(create_link, 2, 1, "requires")
    assert state(w, 2) == "ready"
    with pytest.raises(Refused, match="no longer wait"):
        w.engine.call(create_link, 1, 2, "requires")


def test_what_blocks_a_task_is_told_to_its_cause(w: World) -> None:
    w.engine.call(create_link, 1, 4, "requires")
    found = w.engine.read(blockers, 1)
    assert [(row["task"], row["why"], row["path"]) for row in found] == [
        (4, "blocked", [1, 4]),
        (3, "ready", [1, 4, 3]),
    ]


def test_a_failed_requirement_keeps_its_dependants_blocked_and_says_so(w: World) -> None:
    w.engine.call(create_link, 3, 1, "requires")
    w.end(1, Outcome(kind="failed", failure="policy", reason="no"))
    assert [(row["task"], row["why"]) for row in w.engine.read(blockers, 4)] == [
        (3, "blocked"),
        (1, "failed"),
    ]


def test_a_requirement_of_another_plan_blocks_until_it_succeeds_and_a_cancelled_one_for_good(
    tmp_path: Path,
) -> None:
    with world(tmp_path) as w:
        first, second = w.goal(task("a")), w.goal(task("b"), task("c"))
        w.engine.call(create_link, 2, 1, "requires")
        w.engine.call(create_link, 3, 1, "requires")
        assert w.engine.call(claim, "w", lease_s=60.0, goal=second) is None, "nothing may start"
        assert [row["path"] for row in w.engine.read(blockers, 2)] == [[2, 1]]
        assert w.engine.read(requires_dag_schedule, 2)["blocked"] == {2: [1], 3: [1]}
        w.end(first, passed("done"))
        assert (state(w, 2), state(w, 3)) == ("ready", "ready")
        third = w.goal(task("d"))
        w.engine.call(create_link, 3, 4, "requires")
        w.engine.call(cancel, third)
        assert [(row["task"], row["why"]) for row in w.engine.read(blockers, 3)] == [
            (4, "cancelled")
        ]


def test_the_schedule_goes_by_priority_then_number_and_by_level_for_bfs(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        w.goal(task("a"), task("b", priority="high"), task("c", "b", priority="urgent"), task("d"))
        dag = w.engine.read(requires_dag_schedule, 1)
        assert dag["order"] == [2, 3, 1, 4]
        assert dag["blocked"] == {3: [2]}
        assert w.engine.read(requires_dag_schedule, 1, strategy="bfs")["order"] == [2, 1, 4, 3]


def test_a_loop_another_program_wrote_is_reported_and_the_rest_is_scheduled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with world(tmp_path) as w:
        w.goal(task("a"), task("b"), task("c"), task("d", "c"))
        assert cli.main(["link", "list", "9" * 30, "--home", str(tmp_path)]) == 2
        with sqlite3.connect(tmp_path / "holdfast.db") as foreign:
            foreign.executemany(
                "INSERT INTO task_links VALUES (?, ?, 'requires')", [(1, 2), (2, 1), (3, 2)]
            )
        foreign.close()
        found = w.engine.read(requires_dag_schedule, 1)
    assert cli.main(["link", "schedule", "1", "--home", str(tmp_path)]) == 0
    assert "a loop: 1 → 2 → 1; remove it: link remove 1 2" in capsys.readouterr().out
    assert found["cycles"] == [{"members": (1, 2), "loop": (1, 2, 1), "remove": (1, 2)}]
    assert set(found["order"]) == {3, 4}


def test_cycles_name_members_of_their_component_alone() -> None:
    loops = graph.cycles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["d"], "e": ["a"]})
    assert [loop.members for loop in loops] == [("b", "c"), ("d",)]
    assert loops[0].loop == ("b", "c", "b")
    assert loops[0].frees_all
    assert graph.cycles({"a": ["b"], "b": []}) == []


def test_a_component_with_two_loops_says_that_one_removal_is_not_enough() -> None:
    (loop,) = graph.cycles({"a": ["b", "c"], "b": ["a"], "c": ["a"]})
    assert loop.members == ("a", "b", "c")
    assert not loop.frees_all
    (hub,) = graph.cycles({"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["a"]})
    assert (hub.remove, hub.frees_all) == (("a", "b"), True)


def test_the_command_line_links_lists_and_removes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with world(tmp_path) as made:
        made.goal(task("a"), task("b"))
    place = ["--repo", str(tmp_path), "--home", str(tmp_path)]
    assert cli.main(["link", "add", "1", "2", "--kind", "requires", *place]) == 0
    assert capsys.readouterr().out == "→ requires 2 b (ready)\nblocked by b (ready): 1 → 2\n"
    assert cli.main(["link", "add", "2", "1", "--kind", "requires", *place]) == 2
    assert "1 → 2 → 1" in capsys.readouterr().err
    assert cli.main(["link", "schedule", "1", *place]) == 0
    assert capsys.readouterr().out == "order: 2 1\n  1 waits for 2\n"
    assert cli.main(["link", "remove", "1", "2", "--kind", "requires", "--json", *place]) == 0
    assert '"outgoing":[]' in capsys.readouterr().out.replace(" ", "")
