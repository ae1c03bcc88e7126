"""Retrieval: identifiers, CJK, no zero scores, steady ties, and plans that do not leak (C11)."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_world import World, passed, task, world
from holdfast.context import retrieve, words
from holdfast.context.retrieve import (
    add_document,
    add_files,
    best,
    bm25,
    diverse,
    search,
    search_files,
    similarity,
)
from holdfast.context.words import TOKENS_MAX, Cuts, stem, terms, tokens, weighed
from holdfast.domain.model import Outcome


@pytest.fixture
def w(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def put(w: World, source: str, body: str, *, plan: int = 1, kind: str = "output") -> None:
    number = int(source.partition(".")[0])
    w.engine.call(add_document, kind, source, title="", body=body, task=number, plan=plan)


def found(w: World, query: str, *, plan: int = 1, k: int = 9, **more: object) -> list[str]:
    return [hit.source for hit in w.engine.read(search, query, plan=plan, k=k, **more)]


def test_identifiers_are_found_by_their_parts_and_whole() -> None:
    assert terms("parseHTTPBody") == ["parse", "http", "body", "parsehttpbody"]
    assert terms("retry_after_ms2") == ["retry", "after", "ms", "retryafterms2"]
    assert terms("the classes of it") == ["classe"]
    assert [stem(word) for word in ("queries", "status", "class", "tries", "gas")] == [
        "query",
        "status",
        "class",
        "try",
        "gas",
    ]


def test_a_token_is_indexed_by_the_logarithm_of_its_count_and_each_identifier_counts() -> None:
    def times(text: str) -> Counter[str]:
        return Counter(" ".join(weighed(tokens(text))).split())

    assert times("pool pool other") == {"pool": 1, "other": 1}
    assert [times("pool " * count)["pool"] for count in (2, 3, 8, 9, 99)] == [1, 2, 2, 3, 3]
    assert times("pool_a9 pool_b9 thePool")["pool"] == 3
    assert times("the of") == {}
    many = " ".join(f"w{number}" for number in range(TOKENS_MAX + 1))
    assert len(weighed(tokens(many))) == TOKENS_MAX


@given(text=st.text(st.sampled_from("aZ_9 .\n\x1c\x85é²数据ー\u00a0\u3000\U0001f600"), max_size=40))
def test_tokens_are_what_one_expression_finds_in_their_order(text: str) -> None:
    assert list(tokens(text).items()) == list(Counter(words._token().findall(text)).items())


def test_cuts_are_remembered_up_to_a_limit_and_stay_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = tokens("parseHTTPBody of naïve 数据库 read_files read_files read_files")
    cuts = Cuts()
    assert weighed(counted, cuts) == weighed(counted)
    assert len(cuts) == 5
    monkeypatch.setattr(words, "CUTS_MAX", 3)
    few = Cuts()
    assert weighed(counted, few) == weighed(counted)
    assert few == {token: cuts[token] for token in ("数据库", "read_files")}, (
        "of three it forgot all"
    )


def test_cjk_is_found_without_spaces(w: World) -> None:
    put(w, "1.1", "数据库连接超时的处理")
    put(w, "2.1", "ユーザー認証を修正する")
    assert found(w, "连接超时") == ["1.1"]
    assert found(w, "認証") == ["2.1"]
    assert found(w, "天气") == []


def test_a_document_without_a_shared_term_is_never_returned(w: World) -> None:
    put(w, "1.1", "socket timeout in the pool")
    put(w, "2.1", "colour of the button")
    assert found(w, "timeoutError handling") == ["1.1"]
    assert found(w, "nothing of the kind") == []
    assert found(w, "") == []
    assert all(hit.score > 0 for hit in w.engine.read(search, "socket colour", plan=1, k=9))


def test_a_term_that_half_the_documents_share_still_finds_in_a_small_plan(w: World) -> None:
    put(w, "1.1", "alpha")
    put(w, "2.1", "beta")
    assert found(w, "alpha") == ["1.1"], "FTS5's own bm25() calls this score zero"


def test_a_term_of_most_documents_tells_only_where_no_other_does(w: World) -> None:
    for number in range(1, 12):
        put(w, f"{number}.1", "common " + ("rare" if number == 3 else f"word{number}"))
    put(w, "12.1", "nothing of it", plan=2)
    assert found(w, "common rare") == ["3.1"]
    assert len(found(w, "common", k=20)) == 11
    assert found(w, "common", plan=2) == []


def test_a_body_that_looks_like_the_name_of_a_blob_is_a_body(w: World) -> None:
    put(w, "1.1", "@" + "0" * 64)
    put(w, "2.1", "@pool the socket " + "word " * 2000)
    (hit,) = w.engine.read(search, "pool", plan=1, k=9)
    assert hit.body.startswith("@pool the socket")
    (hit,) = w.engine.read(search, "0" * 64, plan=1, k=9)
    assert hit.body == "@" + "0" * 64


def test_ties_are_in_task_order_whatever_was_written_first(w: World) -> None:
    for source in ("10.1", "2.1", "9.1"):
        put(w, source, "same text")
    assert found(w, "same text") == ["2.1", "9.1", "10.1"]


def test_other_plans_are_not_searched_even_when_their_number_looks_alike(w: World) -> None:
    put(w, "1.1", "shared word", plan=1)
    put(w, "2.1", "shared word", plan=12)
    assert found(w, "shared", plan=1) == ["1.1"]
    assert found(w, "shared", plan=12) == ["2.1"]


def test_what_other_plans_say_does_not_change_how_rare_a_term_of_this_one_is(w: World) -> None:
    for number in range(1, 12):
        put(w, f"{number}.1", f"word{number} " + ("pool socket" if number < 4 else "socket"))
    before = w.engine.read(search, "pool socket word3", plan=1, k=9)
    assert [hit.source for hit in before] == ["3.1", "1.1", "2.1"]
    for number in range(20, 60):
        put(w, f"{number}.1", "pool word3", plan=2)
    assert w.engine.read(search, "pool socket word3", plan=1, k=9) == before


def test_of_more_documents_than_are_weighed_the_nearest_are(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 21):
        put(w, f"{number}.1", "blue pool" if number < 10 else "red pool" if number < 12 else "pool")
    assert found(w, "blue red", k=20)[:2] == ["10.1", "11.1"]
    assert len(found(w, "blue red", k=20)) == 11
    monkeypatch.setattr(retrieve, "CANDIDATES_MAX", 2)
    assert found(w, "blue red", k=20) == ["10.1", "11.1"]


@pytest.mark.parametrize(
    "query", ['" OR 1', "scope : p2", "a* NEAR(b) -c", "DROP TABLE x; --", "%_", "NOT AND"]
)
def test_a_query_is_words_and_never_an_operator(w: World, query: str) -> None:
    put(w, "2.1", "secret plan", plan=2)
    assert found(w, query) == []


def test_own_documents_can_be_left_out_and_a_source_is_indexed_once(w: World) -> None:
    put(w, "1.1", "pool")
    put(w, "1.1", "pool pool")
    put(w, "2.1", "pool")
    assert found(w, "pool", without={1}) == ["2.1"]
    assert found(w, "pool", k=1) == ["1.1"]


def test_files_are_scored_within_their_tree_and_old_versions_do_not_count(w: World) -> None:
    for blob, text in (("new", "pool socket"), ("other", "colour"), ("third", "socket")):
        w.engine.call(add_files, [(blob, text, len(text.split()), b"-")])
    before = w.engine.read(search_files, "socket pool", among={"new", "other", "third"})
    for number in range(30):
        w.engine.call(add_files, [(f"old{number}", "pool", 1, b"-")])
    after = w.engine.read(search_files, "socket pool", among={"new", "other", "third"})
    assert after == before
    assert [blob for blob, _ in best(after)] == ["new", "third"]
    assert w.engine.read(search_files, "nothing", among={"new"}) == {}


def test_what_a_query_begins_with_and_repeats_counts_more(w: World) -> None:
    for blob, text in (("a", "pool"), ("b", "socket"), ("c", "other")):
        w.engine.call(add_files, [(blob, text, len(text.split()), b"-")])

    def order(query: str) -> list[str]:
        return [b for b, _ in best(w.engine.read(search_files, query, among={"a", "b", "c"}))]

    assert order("\nsocket\npool") == ["b", "a"]
    assert order("pool\nsocket") == ["a", "b"]
    assert order("nothing\npool socket socket") == ["b", "a"]


def test_the_end_of_an_attempt_is_indexed_with_its_kind(w: World) -> None:
    goal = w.goal(task("a"), task("b"), task("c"))
    w.end(goal, passed("the parser lives in reader.py"))
    w.end(goal, Outcome(kind="failed", failure="policy", reason="x", detail="disk quota exceeded"))
    w.end(goal, Outcome(kind="cancelled", failure="cancelled", detail="disk parser"))
    hits = w.engine.read(search, "parser quota", plan=1, k=9)
    assert {(hit.source, hit.kind, hit.title) for hit in hits} == {
        ("1.1", "output", "a"),
        ("2.1", "incident", "b"),
    }


def test_bm25_prefers_the_rarer_term_and_the_shorter_document() -> None:
    documents = {
        "long": Counter("pool " + "x " * 60),
        "a": Counter({"pool": 1, "x": 60}),
        "b": Counter({"pool": 1, "x": 2}),
        "c": Counter({"x": 1}),
    }
    scores = bm25(["pool"], {key: documents[key] for key in "abc"})
    assert "c" not in scores
    assert [key for key, _ in best(scores)] == ["b", "a"]
    assert bm25(["pool"], {}) == {}
    assert best({"z": 0.0, "b": 1.0, "a": 1.0}) == [("a", 1.0), ("b", 1.0)]


def test_of_two_near_duplicates_one_makes_room_for_something_else() -> None:
    ranked = [("a", 1.0), ("twin", 0.99), ("other", 0.8)]
    contents = {"a": {"x", "y"}, "twin": {"x", "y"}, "other": {"z"}}
    chosen = diverse(ranked, contents, 3)
    assert [key for key, _, _ in chosen] == ["a", "other", "twin"]
    assert chosen[2][1:] == (1.0, "a")
    assert similarity([], []) == 0.0


def test_the_same_store_gives_the_same_hits_in_any_process_and_hash_seed(
    w: World, tmp_path: Path
) -> None:
    for number in range(1, 30):
        put(w, f"{number}.1", f"pool socket {number % 5} queue_{number % 3}")
    script = (
        "import sys, pathlib; from holdfast.adapters.clock import SystemClock\n"
        "from holdfast.engine import Engine; from holdfast.context.retrieve import search\n"
        "e = Engine(pathlib.Path(sys.argv[1]), SystemClock())\n"
        "print([(h.source, h.score) for h in e.read(search, 'queue_1 pool 3', plan=1, k=9)])\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "holdfast.db")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(said) == 1
    assert said.pop().count("(") == 9
