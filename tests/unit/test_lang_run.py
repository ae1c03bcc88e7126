"""A run and what it leaves: turns, definitions, history, errors with a place, introspection."""

from typing import Any

import pytest

from holdfast.lang.api import LangError, Limits, Tool
from holdfast.lang.compiler import CodeCache, analyse
from holdfast.lang.portable import Granted
from holdfast.lang.run import run
from holdfast.lang.values import keyword


class Session:
    """Turns that hand their memory and history on."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}
        self.history: tuple[Any, ...] = ()

    def __call__(self, source: str) -> Any:
        result = run(source, memory=self.memory, history=self.history)
        self.memory, self.history = dict(result.memory), tuple(result.history)
        return result.value if result.error is None else result.error


def test_definitions_stay_and_functions_see_later_definitions() -> None:
    turn = Session()
    turn("(def k 1) (defn f [x] (+ x k))")
    assert turn("(f 1)") == 2
    turn("(def k 10)")
    assert turn("(f 1)") == 11
    assert turn("(map f [1 2])") == (11, 12)


def test_a_failed_turn_leaves_everything_as_it_was() -> None:
    turn = Session()
    turn("(def x 1)")
    turn("(def x 2) (def y 3) (inc nil)")
    assert turn.memory == {"x": 1}
    turn("(def x 2) (fail :no)")
    assert turn.memory == {"x": 1}
    turn("(def x 2) (return :yes)")
    assert turn.memory == {"x": 2}


def test_history_holds_the_last_three_results_newest_first() -> None:
    turn = Session()
    for source in ("1", "2", "3", "4"):
        turn(source)
    assert turn("[*1 *2 *3]") == (4, 3, 2)
    assert run("[*1 *2]").value == (None, None)
    turn("(return 9)")
    assert turn("*1") == (4, 3, 2)


def test_defonce_keeps_what_an_earlier_turn_defined() -> None:
    turn = Session()
    turn("(defonce x 1)")
    turn("(defonce x 2)")
    assert turn("x") == 1


def test_a_closure_captures_each_round_of_a_loop() -> None:
    source = "(loop [i 0 fs []] (if (< i 3) (recur (inc i) (conj fs #(* 10 i))) (map #(%) fs)))"
    assert run(source).value == (0, 10, 20)
    source = "(map (fn [f] (f)) (for [x [1 2] :let [y (* x x)]] (fn [] [x y])))"
    assert run(source).value == ((1, 1), (2, 4))


def test_definitions_inside_branches_are_discarded_and_branches_see_their_own() -> None:
    source = "(def c 0) [(pmap (fn [x] (def c x) (inc c)) [1 2 3]) c]"
    assert run(source).value == ((2, 3, 4), 0)


def test_nested_branches_end_and_keep_their_order() -> None:
    source = "(pmap (fn [i] (pmap (fn [j] (+ (* 10 i) j)) (range 3))) (range 4))"
    assert run(source).value == tuple(tuple(10 * i + j for j in range(3)) for i in range(4))


@pytest.mark.parametrize(
    ("source", "code", "line", "column"),
    [
        ("(let [x 1]\n  (+ x\n     (inc nil)))", "type_error", 3, 6),
        ("(defn f [x]\n  (/ x 0))\n(f 1)", "arithmetic_error", 2, 3),
        ("(map (fn [x]\n       (+ x :a))\n     [1])", "type_error", 2, 8),
        ("(foo 1)\n(+ bar 2)", "unbound_var", 1, 2),
        ("(let [a 1]\n  (if))", "invalid_arity", 2, 3),
        ("[1 2\n (3]", "parse_error", 2, 4),
        ("(tool/nope {})", "unknown_tool", 1, 1),
        ("((fn [a] a))", "arity_error", 1, 1),
        ("\n\n  (first {:a 1})", "type_error", 3, 3),
        ("(let [{:keys [a]} 5] a)", "destructure_error", 1, 7),
    ],
)
def test_an_error_names_the_innermost_form(source: str, code: str, line: int, column: int) -> None:
    error = run(source).error
    assert error is not None
    assert (error.code, error.line, error.column) == (code, line, column)
    assert error.source_line == source.splitlines()[line - 1]
    assert error.render().splitlines()[2].index("^") == column + 1
    assert LangError.from_dict(error.as_dict()).render() == error.render()


def test_all_problems_are_reported_at_once_with_near_names() -> None:
    error = run("(prinltn 1) (if) (data_x 2) (tool/ecko {})", tools=["echo"]).error
    assert error is not None
    assert len(error.details["problems"]) == 4
    assert "println" in error.hint
    assert "tool/echo" in str([each["hint"] for each in error.details["problems"]])


def test_no_host_text_leaks_through_errors() -> None:
    for source in ("((fn [a b] a) 1)", "(let [f inc] (f))", "(map inc 5)", "(apply - [])"):
        error = run(source).error
        assert error is not None
        text = error.render()
        assert "positional" not in text
        assert "NoneType" not in text
        assert "f1x" not in text


def test_a_function_called_wrongly_through_a_value_names_itself() -> None:
    error = run("(defn area [w h] (* w h)) (apply area [1])").error
    assert error is not None
    assert "area takes 2 arguments, got 1" in error.message
    error = run("(let [f nth] (f [1]))").error
    assert error is not None
    assert "nth" in error.message


def test_forward_references_work_once_they_are_defined() -> None:
    assert run("(defn f [] (g)) (defn g [] 1) (f)").value == 1
    error = run("(defn f [] (g)) (f) (defn g [] 1)").error
    assert error is not None
    assert (error.code, error.column) == ("unbound_var", 13)


def test_long_chains_and_deep_choices_do_not_nest_in_python() -> None:
    chain = "(-> 0 " + "inc " * 3000 + ")"
    assert run(chain).value == 3000
    choice = "(cond " + " ".join(f"(= 1 {i}) {i}" for i in range(2, 900)) + " :else :last)"
    assert run(f"[{choice} (str {choice})]").value == (keyword("last"), ":last")
    nested = "(loop [a 0] (if (< a 2) (recur (inc a)) " * 15 + "1" + "))" * 15
    assert run(nested).value == 1
    assert run(f"[{nested}]").value == (1,)
    assert run("(for [" + " ".join(f"a{i} [1]" for i in range(12)) + "] a0)").value == (1,)
    many = run("(for [" + " ".join(f"a{i} [1]" for i in range(13)) + "] a0)").error
    assert many is not None
    assert "13" in many.message


def test_order_of_evaluation_is_left_to_right_even_when_parts_need_statements() -> None:
    source = """
    (defn say [x] (println x) x)
    [(say 1) (if (say 2) (let [y (say 3)] y) 0) (+ (say 4) (loop [i (say 5)] i)) {(say 6) (say 7)}]
    """
    result = run(source)
    assert result.prints == tuple("1234567")
    assert result.value == (1, 3, 9, {6: 7})


def test_data_is_read_by_name_with_hyphens_for_underscores() -> None:
    context = {"user_rows": [{"a": 1}], "x": {"k": {1, 2}}}
    assert run("[(:a (first data/user-rows)) data/nothing (count (:k data/x))]", context=context)
    result = run("[(:a (first data/user-rows)) data/nothing (count (:k data/x))]", context=context)
    assert result.value == (1, None, 2)


def test_tools_show_up_in_the_catalogue() -> None:
    tools = {"fetch": Tool(name="fetch", doc="Fetches rows.", signature="(since :string)")}
    result = run('[(doc "tool/fetch") (doc "x") (apropos "fetch") (dir "tool")]', tools=tools)
    assert result.value == (None, None, ("tool/fetch",), ("tool/fetch",))
    assert result.prints == (
        "(tool/fetch {…})\n(since :string) Fetches rows.",
        'There is no documentation of "x".',
    )


def test_println_shows_what_is_no_text_as_clojure_does() -> None:
    result = run('(println "a" nil ##Inf ##NaN #"b" :c 1.0)')
    assert result.prints == ('a nil ##Inf ##NaN #"b" :c 1.0',)
    assert "budget has no other; it has budget/remaining" in str(run("budget/other").error)


def test_a_program_can_ask_for_the_source_of_its_functions() -> None:
    result = run("(defn twice [x] (* 2 x)) [(source twice) (source #'twice) (source 1)]")
    assert result.value == ("(fn twice [x] (* 2 x))", "(fn twice [x] (* 2 x))", None)
    assert run("(:cost (export-meta 'map))").value == "f"


def test_a_cache_answers_for_the_same_content_only() -> None:
    cache = CodeCache(entries=2)
    for source in ("1", "2", "3", "1"):
        assert run(source, cache=cache).value == int(source)
    assert run("x", memory={"x": 5}, cache=cache).value == 5
    assert run("x", cache=cache).error is not None


def test_analysing_alone_runs_nothing_and_reports_everything() -> None:
    program = analyse("(def x data/rows) (tool/a {})", tools={"a": Tool(name="a")})
    assert program.defined == {"x"}
    assert program.data == {"rows"}
    assert program.tools == {"a"}
    with pytest.raises(LangError):
        analyse("(tool/a {})", limits=Limits())


def test_a_granted_context_is_checked_once_and_no_longer_the_hosts() -> None:
    rows = [{"n": 1, "tags": ["a"]}, {"n": 2}]
    granted = Granted({"rows": rows, keyword("x"): 3})
    rows[0]["n"] = 100
    rows[0]["tags"].append("b")
    source = "[(reduce + (map :n data/rows)) (:tags (first data/rows)) data/x data/none]"
    for _ in range(2):
        assert run(source, context=granted).value == (3, ("a",), 3, None)
    assert (len(granted), list(granted)) == (2, ["rows", keyword("x")])
    with pytest.raises(LangError, match="no value"):
        Granted({"x": object()})


def test_values_from_outside_must_be_values() -> None:
    error = run("data/x", context={"x": object()}).error
    assert error is not None
    assert "object" in error.message


def test_overloads_are_told_apart_by_their_number() -> None:
    turn = Session()
    turn("(defn f ([] 0) ([x] [x]) ([x y & r] [x y r]))")
    assert turn("[(f) (f 1) (f 1 2) (f 1 2 3)]") == (0, (1,), (1, 2, None), (1, 2, (3,)))
    error = run("(def g (fn ([x] x) ([x y] y))) (g)").error
    assert error is not None
    assert error.code == "arity_error"


def test_mutual_recursion_by_letfn_also_inside_a_loop() -> None:
    source = """
    (for [n [3 4]]
      (letfn [(ev? [n] (if (= n 0) true (od? (dec n)))) (od? [n] (if (= n 0) false (ev? (dec n))))]
        (ev? n)))
    """
    assert run(source).value == (False, True)


def test_choices_whose_parts_need_statements_still_stop_early() -> None:
    source = """
    (defn say [x] (println x) x)
    [(if (and (say nil) (let [y (say 1)] y) (say 2)) :y :n)
     (if (or (say false) (let [y (say 3)] y) (loop [i 0] (if (< i 2) (recur (inc i)) i)))
        :y :n)
     (when (and (say 4) (or (say nil) (let [z (say 5)] (> z 4)))) :z)
     (if (not (and (say 6) (let [w nil] w))) :w)]
    """
    result = run(source)
    names = [keyword("n"), keyword("y"), keyword("z"), keyword("w")]
    assert list(result.value) == names
    assert result.prints == ("nil", "false", "3", "4", "nil", "5", "6")


def test_data_of_every_shape_comes_in_as_values() -> None:
    class Text(str):
        pass

    deep: object = 1
    for _ in range(300):
        deep = [deep]
    context = {
        "rows": [{"a": 1}, {"a": {"b": (1, 2)}}],
        "mixed": {1: "one", (1, 2): "pair", False: "no"},
        "set": {1, "x"},
        "own": Text("t"),
        "deep": deep,
    }
    source = (
        "[(get-in (second data/rows) [:a :b 1]) (data/mixed [1 2]) (data/mixed false) data/own]"
    )
    assert run(source, context=context).value == (2, "pair", "no", "t")
    assert run("(count data/set)", context=context).value == 2
    error = run("data/deep", context=context).error
    assert error is not None
    assert "nested" in error.message


def test_integers_longer_than_pythons_own_limit_print() -> None:
    result = run("(count (str (reduce * (map (fn [_] 10) (range 5000)))))")
    assert result.value == 5001
    assert run("(str (- (reduce * (map (fn [_] 10) (range 4500)))))").value.startswith("-1000")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("(java.util.Date. 1000000000000000000000)", "arithmetic_error"),
        ("(.plusDays (LocalDate/parse \"9999-12-31\") 1)", "arithmetic_error"),
        ('(Instant/parse "0001-01-01T00:00:00+18:00")', "arithmetic_error"),
        ('(format "%c" 55296)', "type_error"),
        ("(char 55296)", "type_error"),
    ],
)  # fmt: skip
def test_no_value_is_made_that_could_not_be_shown(source: str, code: str) -> None:
    result = run(source)
    assert result.error is not None
    assert (result.error.code, result.error.line) == (code, 1)


def test_half_characters_never_become_part_of_a_string() -> None:
    source = '(json/parse-string "[\\"\\\\ud800\\", {\\"\\\\udc00\\": \\"\\\\ud83d\\\\ude00\\"}]")'
    assert run(source).value == ("\ufffd", {"\ufffd": "😀"})
    assert run('"\ud800"').value == "\ufffd"
    assert run("\ud800").error is not None


def test_json_text_that_is_never_closed_is_scanned_once() -> None:
    # A second scan from each quote would take hours: the fuel of the run bounds one.
    source = '(json/parse-string (str "\\"" (apply str (repeat 400000 "\\\\\\""))))'
    assert run(source).value is None
    assert run('(json/parse-lines "1\n\n{\\"a\\":\\"\u2028\\"}\r\nx")').value == (
        1,
        {"a": "\u2028"},
        None,
    )


def test_an_error_about_a_name_of_any_length_is_short() -> None:
    error = run("x" * 500_000).error
    assert error is not None
    assert len(error.render()) < 6_000
