"""Every limit is hit by a program, named by the error, and lifted by its setting."""

import sys
import threading
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.lang.api import Limits
from holdfast.lang.recorder import Recorder
from holdfast.lang.run import NoHost, run

GROW = "(loop [v [] i 0] (if (< i {n}) (recur (conj v i) (inc i)) (count v)))"
DEEP = "(reduce (fn [a _] [a]) [] (range {n}))"

# name of the limit: (low setting, a program that hits it, the code)
HIT: dict[str, tuple[float, str, str]] = {
    "wall_s": (0.05, "(reduce + (map inc (range 900000)))", "timeout"),
    "fuel": (1000, "(reduce + (map inc (range 2000)))", "timeout"),
    "depth": (10, "(defn f [n] (if (pos? n) (inc (f (dec n))) 0)) (f 1800)", "memory_exceeded"),
    "loop_iterations": (10, "(loop [i 0] (if (< i 11) (recur (inc i)) i))", "loop_limit"),
    "alloc_bytes": (10_000, "(count (map inc (range 900)))", "memory_exceeded"),
    "output_bytes": (10, '(println "a long line of text")', "memory_exceeded"),
    "prints": (2, "(doseq [i (range 3)] (println i))", "memory_exceeded"),
    "int_digits": (50, "(reduce * (range 1 100))", "memory_exceeded"),
    "literal_digits": (5, "123456", "parse_error"),
    "string_chars": (100, '(reduce str (map (fn [_] "abcdefghij") (range 20)))', "memory_exceeded"),
    "range_items": (100, "(count (range 101))", "memory_exceeded"),
    "format_width": (50, '(format "%60d" 1)', "memory_exceeded"),
    "regex_pattern_bytes": (5, '(re-find (re-pattern "abcdefg") "abcdefg")', "type_error"),
    "regex_input_bytes": (10, '(re-find #"a" "bbbbbbbbbbbba")', "memory_exceeded"),
    "json_nesting": (3, '(json/parse-string "[[[[1]]]]")', "memory_exceeded"),
    "value_nesting": (20, "(count (str " + DEEP.format(n=30) + "))", "memory_exceeded"),
    "combinations": (5, "(count (combinations (range 5) 3))", "memory_exceeded"),
    "program_bytes": (10, "(+ 1 2 3 4 5 6)", "parse_error"),
    "nesting": (5, "[[[[[[1]]]]]]", "parse_error"),
    "symbols": (3, "(let [a 1 b 2 c 3] (+ a b c))", "symbol_limit_exceeded"),
    "memory_bytes_kept": (1000, "(def xs (range 1000)) 1", "memory_limit_exceeded"),
    "result_bytes": (1000, "(range 1000)", "memory_exceeded"),
    "tool_result_bytes": (1000, "(count (tool/echo {:x (range 1000)}))", "memory_exceeded"),
    "compile_s": (-1.0, "(+ 1 2)", "timeout"),
}
# What these bound is cut, shared out, waited for or measured outside: tests of their own, by name.
OTHERS = {
    "print_chars": "test_a_long_line_is_cut_at_print_chars",
    "history_bytes": "test_results_too_large_for_the_history_are_forgotten",
    "pmap_workers": "test_as_many_branches_are_in_flight_as_pmap_workers_says",
    "pmap_s": "test_a_branch_that_waits_longer_than_pmap_s_fails_the_whole",
    "memory_bytes": "test_granted_inputs_do_not_count_as_the_programs_memory",
}
ELSEWHERE = Path(__file__).parents[1] / "lang/test_pool.py"


class Echo(NoHost):
    """A host whose one tool gives back its arguments."""

    def call_tool(self, path: str, name: str, args: dict[str, object]) -> object:
        return args


def test_every_limit_is_tested() -> None:
    assert {each.name for each in fields(Limits)} == set(HIT) | set(OTHERS)
    here = ELSEWHERE.read_text() + Path(__file__).read_text()
    assert [test for test in OTHERS.values() if f"def {test}(" not in here] == []


@pytest.mark.parametrize("name", sorted(HIT))
def test_a_limit_is_hit_and_lifted(name: str) -> None:
    low, source, code = HIT[name]
    tight = replace(Limits(), **{name: low})
    if name == "depth":
        # The limit is the process's; a runner may have raised it beyond what this one needs.
        sys.setrecursionlimit(1000)
    hit = run(source, limits=tight, host=Echo(), tools=["echo"])
    assert hit.error is not None, hit.value
    assert hit.error.code.startswith(code), hit.error
    lifted = run(source, host=Echo(), tools=["echo"])
    assert lifted.error is None, lifted.error


def test_a_long_line_is_cut_at_print_chars() -> None:
    result = run('(println "abcdefghij")', limits=replace(Limits(), print_chars=4))
    assert result.prints == ("abcd…",)
    assert run('(println "abcdefghij")').prints == ("abcdefghij",)


def test_results_too_large_for_the_history_are_forgotten() -> None:
    small = replace(Limits(), history_bytes=500)
    assert run("(range 100)", limits=small).history == ()
    assert len(run("(range 100)").history) == 1


def test_as_many_branches_are_in_flight_as_pmap_workers_says() -> None:
    def most_at_once(workers: int) -> int:
        """Each call waits until `workers` of them are there, or until no more come."""
        gate, lock, now, most = threading.Event(), threading.Lock(), 0, 0

        def meet(args: Any) -> Any:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
                if now >= workers:
                    gate.set()
            assert gate.wait(20)
            with lock:
                now -= 1
            return args

        source = "(count (pmap (fn [i] (tool/meet {:i i})) (range 12)))"
        limits = replace(Limits(), pmap_workers=workers)
        result = run(source, host=Recorder({}, {"meet": meet}), limits=limits, tools=["meet"])
        assert result.value == 12, result.error
        return most

    assert [most_at_once(workers) for workers in (1, 3, 6)] == [1, 3, 6]


WAIT = "(pmap (fn [i] (when (= i 1) (tool/wait {}))) [0 1])"


@pytest.mark.parametrize("branches", [WAIT, f"(pmap (fn [_] {WAIT}) [1 2])"])
def test_a_branch_that_waits_longer_than_pmap_s_fails_the_whole(branches: str) -> None:
    over = threading.Event()

    def wait(args: Any) -> Any:
        assert over.wait(20)
        return args

    source = f"(count {branches})"
    short = replace(Limits(), pmap_s=0.05)
    host = Recorder({}, {"wait": wait})
    threading.Timer(0.4, over.set).start()
    late = run(source, host=host, limits=short, tools=["wait"])
    assert late.error is not None
    assert (late.error.code, late.error.details) == ("timeout", {"limit": "pmap_s"})
    assert run(source, host=Recorder({}, {"wait": wait}), tools=["wait"]).value == 2


def test_what_was_printed_before_an_error_is_kept() -> None:
    result = run('(println "before") (inc nil)')
    assert result.prints == ("before",)
    assert result.error is not None


def test_fuel_is_the_same_in_every_run() -> None:
    source = "(defn f [n] (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) [(f 12) (sort (range 50))]"
    used = {run(source).usage.fuel for _ in range(3)}
    assert len(used) == 1
    assert used.pop() > 400


def test_for_over_finite_input_is_not_counted_as_a_loop() -> None:
    assert run("(count (for [i (range 5000)] i))").value == 5000
    assert run("(doseq [i (range 5000)] i)").ok


@pytest.mark.parametrize(
    "source",
    [
        "(loop [v 1 i 0] (if (= i 60) (count (flatten v)) (recur [v v] (inc i))))",
        "(loop [v 1 i 0] (if (= i 60) #{v} (recur [v v] (inc i))))",
        "(loop [v 1 i 0] (if (= i 60) (json/generate-string v) (recur [v v] (inc i))))",
        "(defn f [n] (sort (fn [a b] (f 1)) [1 2])) (f 1)",
        "(defn f [n] (first (map f [n]))) (f 1)",
        "(defn f [n] (inc (f n))) (f 1)",
        "(= " + DEEP.format(n=20000) + " " + DEEP.format(n=20000) + ")",
        "(postwalk identity " + DEEP.format(n=20000) + ")",
        "#{" + DEEP.format(n=20000) + "}",
        DEEP.format(n=1000),
        '(re-find #"(a+)+$" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")',
        '(re-find #"(a|a)*$" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")',
        '(re-find #"(a*)*b" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaac")',
        "(defn f [] (pmap (fn [_] (f)) [1 2])) (f)",
    ],
)
def test_what_explodes_is_stopped_by_a_limit(source: str) -> None:
    limits = replace(Limits(), fuel=300_000, wall_s=10)
    result = run(source, limits=limits)
    assert result.error is not None
    assert result.error.code in ("timeout", "memory_exceeded", "type_error"), result.error


def test_ordinary_regexes_are_not_taken_for_bombs() -> None:
    for pattern in (r"(\\w+,)+", r"(?:[a-z]+\\.)*com", r"\\d+(\\.\\d+)?", "(ab|cd)+", "(a+b)*"):
        result = run(f'(re-find (re-pattern "{pattern}") "a,b,c 1.5 abcd x.com aab")')
        assert result.error is None, result.error
