"""The parent's side: tools run once, tasks are remembered, journals survive."""

import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.lang.api import LangError, Result
from holdfast.lang.recorder import FileJournal, Recorder, journal_of
from holdfast.lang.run import run
from holdfast.lang.values import keyword

PROGRAM = """
(defn call [i] (:i (tool/echo {:i i})))
[(map call (range 3)) (pmap call (range 4)) (task "t" (call 9))]
"""


class Counter:
    """A tool that counts its calls and answers its arguments."""

    def __init__(self, fail_after: int = -1) -> None:
        self.count = 0
        self.fail_after = fail_after
        self.lock = threading.Lock()

    def __call__(self, args: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            if self.count == self.fail_after:
                raise ConnectionError("the line is dead")
            self.count += 1
        return args


def go(journal: Any, tool: Any, source: str = PROGRAM, **options: Any) -> tuple[Result, Recorder]:
    host = Recorder(journal, {"echo": tool}, **options)
    return run(source, host=host, tools=["echo"]), host


@pytest.mark.parametrize("stop", range(8))
def test_a_program_that_died_at_any_call_goes_on_without_repeating_one(stop: int) -> None:
    journal: dict[str, Any] = {}
    first = Counter(fail_after=stop)
    broken, _ = go(journal, first)
    assert broken.error is not None
    assert broken.error.code == "tool_error"
    second = Counter()
    whole, _ = go(journal, second)
    assert whole.value == ((0, 1, 2), (0, 1, 2, 3), 9)
    assert first.count + second.count == 8


def test_a_finished_program_runs_again_from_its_journal_alone() -> None:
    journal: dict[str, Any] = {}
    go(journal, Counter())
    again = Counter()
    result, _ = go(journal, again)
    assert result.ok
    assert again.count == 0


def test_other_arguments_at_a_recorded_position_are_a_divergence_that_shows_both() -> None:
    journal: dict[str, Any] = {}
    go(journal, Counter(), "(tool/echo {:a 1})")
    result, _ = go(journal, Counter(), "(tool/echo {:a 2})")
    assert result.error is not None
    assert result.error.code == "divergence"
    assert '{"a": 1}' in result.error.message
    assert '{"a": 2}' in result.error.message
    assert result.error.line == 1


def test_programs_with_their_own_scope_share_a_journal() -> None:
    journal: dict[str, Any] = {}
    go(journal, Counter(), "(tool/echo {:a 1})", scope="turn-1")
    result, _ = go(journal, Counter(), "(tool/echo {:a 2})", scope="turn-2")
    assert result.value == {"a": 2}


def test_a_hit_of_nil_counts() -> None:
    journal: dict[str, Any] = {}
    go(journal, Counter(), '(task "n" (do (tool/echo {:a 1}) nil))')
    tool = Counter()
    result, _ = go(journal, tool, '(task "n" (do (tool/echo {:a 1}) nil))')
    assert result.ok
    assert tool.count == 0
    assert journal["n"] is None


def test_a_task_with_another_expression_is_a_hit_and_a_warning_that_shows_both() -> None:
    journal: dict[str, Any] = {}
    go(journal, Counter(), '(task "t" (+ 1 2))')
    result, _ = go(journal, Counter(), '(task "t"  (* 3 4)) ; other')
    assert result.value == 3
    (warning,) = result.warnings
    assert "( + 1 2 )" in warning
    assert "( * 3 4 )" in warning
    same, _ = go(journal, Counter(), '(task "t" (+ 1   2)) ; only the spacing differs')
    assert not same.warnings


def test_a_reset_opens_a_new_generation_and_the_old_row_stays(tmp_path: Path) -> None:
    journal: dict[str, Any] = {}
    source = '(task "t" (:i (tool/echo {:i 1})))'
    tool = Counter()
    go(journal, tool, source)
    go(journal, tool, f'(task-reset "t") {source}')
    assert tool.count == 2
    assert journal["@old t#0"] == 1
    assert journal["t"] == 1
    file = FileJournal(tmp_path / "journal")
    go(file, tool, source)
    go(file, tool, f'(task-reset "t") {source}')
    file.close()
    text = (tmp_path / "journal").read_text()
    assert text.count('"kind": "task"') == 3
    assert FileJournal(tmp_path / "journal").generation("task", "t") == 1


@pytest.mark.parametrize("id", ["@tool 2:1/0", "@task t", "@old t#0", "@@", "task:t#0", "x/../y"])
def test_no_task_id_can_forge_what_the_journal_keeps_beside(id: str, tmp_path: Path) -> None:
    forged = f'(task "{id}" {{"tool" "echo" "args" {{}} "value" 7}})'
    for journal in ({}, FileJournal(tmp_path / "journal")):
        go(journal, Counter(), forged)
        tool = Counter()
        source = f'(task-reset "{id}") {forged} (task "t" 5)\n(tool/echo {{}})'
        result, _ = go(journal, tool, source)
        assert result.value == {}, result.error
        assert tool.count == 1
        assert journal_of(journal).get("task", "t") == {"value": 5, "source": "5"}
        assert journal_of(journal).generation("task", id) == 1


def test_no_task_id_can_look_like_a_task_inside_another() -> None:
    journal: dict[str, Any] = {}
    source = """
    (defn call [] (:n (tool/echo {:n *1})))
    [(task "a" (task "b" (call))) (task "a#0/task:b" (call)) (task "a%2F" 1) (task "a/" 2)]
    """
    tool = Counter()
    result, _ = go(journal, tool, source)
    assert result.ok, result.error
    assert tool.count == 2


def test_a_failed_task_is_not_recorded_and_can_be_tried_again() -> None:
    journal: dict[str, Any] = {}
    tool = Counter(fail_after=0)
    go(journal, tool, '(task "t" (tool/echo {:a 1}))')
    assert "t" not in journal
    result, _ = go(journal, Counter(), '(task "t" (tool/echo {:a 1}))')
    assert result.value == {"a": 1}


def test_a_journal_entry_survives_a_later_error_and_an_explicit_fail() -> None:
    for tail in ("(inc nil)", "(fail :x)", "(return 1)", "(range 99999999)"):
        journal: dict[str, Any] = {}
        go(journal, Counter(), f'(task "t" 5) {tail}')
        assert journal["t"] == 5, tail


def test_branches_that_reach_one_task_at_once_run_it_once() -> None:
    tool = Counter()
    result, _ = go({}, tool, '(pmap (fn [_] (task "one" (:i (tool/echo {:i 7})))) (range 8))')
    assert result.value == (7,) * 8
    assert tool.count == 1


def test_tool_calls_of_branches_are_in_flight_together() -> None:
    meet = threading.Barrier(4, timeout=20)

    def tool(args: dict[str, Any]) -> Any:
        meet.wait()
        return args["i"]

    result, _ = go({}, tool, "(pmap (fn [i] (tool/echo {:i i})) (range 4))")
    assert result.value == (0, 1, 2, 3)
    (record,) = result.pmap_calls
    assert (record.type, record.count, record.success_count) == ("pmap", 4, 4)


def test_paths_name_positions_and_branches_never_completion_order() -> None:
    paths: list[str] = []

    def tool(args: dict[str, Any]) -> Any:
        return args

    _, host = go({}, tool, "(pmap (fn [i] (tool/echo {:i i}) (tool/echo {:i i})) (range 3))")
    paths = sorted(record.path for record in host.calls)
    assert (
        paths == [f"1:1/0/b{branch}/1:{column}/0" for branch in range(3) for column in (15, 35)]
        or len(set(paths)) == 6
    )
    _, again = go({}, tool, "(pmap (fn [i] (tool/echo {:i i}) (tool/echo {:i i})) (range 3))")
    assert sorted(record.path for record in again.calls) == paths


def test_a_file_journal_is_read_again_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = FileJournal(path)
    go(journal, Counter())
    journal.close()
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"kind": "task", "key": "torn", "ro')
    tool = Counter()
    opened = FileJournal(path)
    result, _ = go(opened, tool)
    assert result.ok
    assert tool.count == 0
    assert opened.get("task", "torn") is None
    opened.put("task", "next", {"value": 1, "source": ""})
    opened.close()
    assert FileJournal(path).get("task", "next") == {"value": 1, "source": ""}


def test_a_tool_that_gives_what_is_no_value_is_a_tool_error() -> None:
    result, host = go({}, lambda args: object(), "(tool/echo {})")
    assert result.error is not None
    assert result.error.code == "tool_error"
    assert "Error: Error" not in result.error.render()
    assert host.calls[0].error


def test_tool_arguments_have_text_keys_with_underscores_at_every_depth() -> None:
    result, _ = go({}, dict, '(tool/echo {:user-id 1 :nested [{:a-b {:c-d 2}}] "x-y" 3})')
    assert result.value == {"user_id": 1, "nested": ({"a_b": {"c_d": 2}},), "x-y": 3}
    result, _ = go({}, dict, "(tool/echo :a 1 :b-c 2)")
    assert result.value == {"a": 1, "b_c": 2}


def test_steps_prints_and_the_budget_reach_the_host() -> None:
    host = Recorder(None, {}, budget=lambda: {"turns": 3})
    result = run('(println "a") (step-done "s" "text") (:turns (budget/remaining))', host=host)
    assert result.value == 3
    assert host.prints == ["a"]
    assert host.steps == {"s": "text"}
    assert result.summaries == {"s": "text"}


def test_prints_of_branches_come_in_the_order_of_the_input() -> None:
    source = '(pmap (fn [i] (println i) (tool/echo {:i i}) (println "done" i)) (range 3))'
    result, host = go({}, Counter(), source)
    assert list(result.prints) == host.prints
    assert result.prints == ("0", "done 0", "1", "done 1", "2", "done 2")


def test_a_recorder_without_the_tool_says_so() -> None:
    with pytest.raises(LangError, match="no tool"):
        Recorder({}, {}).call_tool("1:1/0", "nope", {})


def test_tool_values_keep_keywords_and_sets() -> None:
    result, _ = go({}, dict, "(tool/echo {:a :k :s #{1 :b}})")
    assert result.value["a"] is keyword("k")
    assert result.value["s"] == frozenset({1, keyword("b")})


def test_a_task_that_was_left_unfinished_blocks_nobody() -> None:
    host = Recorder({}, {})
    for source in ('(task "t" (return 1))', '(task "t" (fail 2))', '(task "t" (inc nil))'):
        run(source, host=host)
    assert run('(task "t" 5)', host=host).value == 5
    assert run('(task "u" (task "u" 6))', host=host).value == 6


def test_a_branch_that_fails_in_a_task_fails_the_whole_and_hangs_nothing() -> None:
    result, _ = go({}, Counter(fail_after=0), '(pmap (fn [_] (task "t" (tool/echo {}))) [1 2 3])')
    assert result.error is not None
    assert result.error.code == "tool_error"


def test_branches_inside_a_task_may_ask_for_that_task() -> None:
    result, _ = go({}, Counter(), '(task "t" (pmap (fn [i] (task "t" i)) [7]))')
    assert result.value == (7,)
