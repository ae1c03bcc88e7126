"""The repository map: facts by blob, ranking by personalised PageRank, outlines of files."""

import ast
import gc
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_world import world
from holdfast.adapters import scanner
from holdfast.adapters.clock import SystemClock
from holdfast.adapters.repository import Repository
from holdfast.context import codemap
from holdfast.context.codemap import (
    SCANNING,
    TOKEN_PRICE,
    Defined,
    Facts,
    affordable,
    build,
    decode_facts,
    decode_map,
    encode_facts,
    encode_map,
    outline,
    rank,
    word_scores,
)
from holdfast.context.words import Cuts
from holdfast.engine import Engine
from holdfast.engine.library import known_defining, known_facts, known_map
from holdfast.errors import NotFound
from holdfast.store import Turnstile
from holdfast.worker import library
from holdfast.worker.gather import shown
from holdfast.worker.library import FILE_BYTES_MAX, read_tree

FILES = {
    "shop/cart.py": "from shop.price import *\n\ndef add_item(x):\n    return total_price(x)\n",
    "shop/price.py": "def total_price(items):\n    return sum(items)\n",
    "shop/mail.py": "def send_mail(to):\n    return to\n",
    "web/view.js": "export function renderCart() { return add_item }\n",
}


def scanned(path: str, text: str) -> Facts:
    (found,) = codemap.scanned([(path, text, None)], Cuts())
    facts = decode_facts(found.facts, Facts)
    first = decode_facts(found.facts, Defined)
    assert facts is not None
    assert first is not None
    assert first.defines == facts.defines
    return facts


def built(files: list[tuple[str, str, Facts]]):
    return build(
        [(path, blob) for path, blob, _ in files],
        {blob: facts.defines for _, blob, facts in files},
        ((blob, facts) for _, blob, facts in reversed(files)),
    )


def mapped(files: dict[str, str]):
    return built([(path, f"blob-{path}", scanned(path, text)) for path, text in files.items()])


def test_a_file_leads_to_the_files_that_define_what_it_mentions() -> None:
    shares = rank(mapped(FILES), {"blob-shop/cart.py": 1.0})
    assert shares["shop/price.py"] > 0
    assert shares["web/view.js"] > 0, "callers count too"
    assert "shop/mail.py" not in shares
    assert sum(shares.values()) <= 1.0
    assert rank(mapped(FILES), {}) == {}


def test_the_map_does_not_depend_on_the_order_of_files_and_survives_its_encoding() -> None:
    one = mapped(FILES)
    assert mapped(dict(reversed(FILES.items()))) == one
    assert decode_map(encode_map(one)) == one


def test_a_name_that_many_files_define_leads_nowhere() -> None:
    files = {f"m{number}.py": "def run():\n    pass\n" for number in range(12)}
    files["main.py"] = "run()\n"
    shares = rank(mapped(files), {"blob-main.py": 1.0})
    assert set(shares) == {"main.py"}


def test_a_copied_file_leads_to_its_copy_and_no_file_to_itself() -> None:
    facts = scanned("one.py", "def total_price(items):\n    return total_price(items)\n")
    files = [("one.py", "same"), ("two.py", "same")]
    code = build(files, {"same": facts.defines}, [("same", facts)])
    assert [[number for number, _ in code.leads(file)] for file in (0, 1)] == [[1], [0]]


def test_paths_are_scored_by_their_own_words() -> None:
    code = mapped(FILES)
    found = word_scores(code, code.path, "pricing of the mails")
    assert set(found) == {"shop/price.py", "shop/mail.py"}


def test_names_that_a_file_defines_are_scored_apart_from_those_it_mentions() -> None:
    code = mapped(FILES)
    assert set(word_scores(code, code.names, "adding the totals")) == {
        "shop/cart.py",
        "shop/price.py",
    }
    assert set(word_scores(code, code.names, "Rendered carts")) == {"web/view.js"}


def test_scanning_survives_broken_source_and_knows_other_languages() -> None:
    assert scanned("a.py", "def broken(:\nclass Fine").defines == ("Fine", "broken")
    assert scanned("a.rs", "pub async fn serve() {}\npub(crate) struct Hub;").defines == (
        "Hub",
        "serve",
    )
    assert scanned("a.txt", "") == Facts(defines=(), mentions={})


def test_an_outline_shows_definitions_the_query_names_first_and_counts_the_rest() -> None:
    text = (
        "x = 1\nclass Pool:\n    def close(self):\n        def inner(): ...\n\ndef other(): ...\n"
    )
    assert outline("a.py", text).splitlines() == [
        "2: class Pool:",
        "3:     def close(self):",
        "6: def other(): ...",
    ]
    assert outline("a.py", text, "the other one", lines_max=1).splitlines() == [
        "6: def other(): ...",
        "[… 2 more definitions]",
    ]
    assert outline("a.py", "def broken(:\n\n\nclass Fine: ...").splitlines() == [
        "1: def broken(:",
        "4: class Fine: ...",
    ]
    assert outline("a.go", "package a\n\nfunc Serve() {}\n") == "3: func Serve() {}"
    assert outline("notes.txt", "one\ntwo\nthree\nfour") == "1: one\n2: two\n3: three"


def test_of_files_alike_the_shorter_is_shown_first_and_a_much_better_one_whatever_it_takes() -> (
    None
):
    ranked = [("best", 2.0), ("long", 1.0), ("short", 0.9)]
    assert affordable(ranked, {"best": 500, "long": 300, "short": 20}) == ["best", "short", "long"]
    assert affordable(ranked, {"best": 20, "long": 20, "short": 20}) == ["best", "long", "short"]


@given(st.lists(st.tuples(st.floats(0.01, 3), st.integers(1, 999)), max_size=9), st.randoms())
def test_the_order_of_showing_is_one_and_no_file_stands_behind_a_longer_and_worse_one(
    files: list[tuple[float, int]], chance: Random
) -> None:
    ranked = [(f"f{number}", score) for number, (score, _) in enumerate(files)]
    sizes = {f"f{number}": size for number, (_, size) in enumerate(files)}
    order = affordable(ranked, sizes)
    assert sorted(order) == sorted(sizes)
    assert affordable(chance.sample(ranked, len(ranked)), sizes) == order
    scores = dict(ranked)
    for before, after in pairwise(order):
        assert scores[before] >= scores[after] - 1e-6 or sizes[before] < sizes[after]
        assert scores[after] - scores[before] <= TOKEN_PRICE * (sizes[after] - sizes[before]) + 1e-6


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "repo"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "image.png").write_bytes(b"\x89PNG\0\0secret_name")
    (folder / "huge.py").write_text("x = 1\n" * (FILE_BYTES_MAX // 6 + 1))
    (folder / "link.py").symlink_to("shop/cart.py")
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return Repository.open(folder)


def test_a_map_shows_the_lines_that_define_something_redacted_and_short_before_long(
    tmp_path: Path, repository: Repository
) -> None:
    with world(tmp_path) as w:
        code = read_tree(w.engine, repository, repository.tree_of("HEAD"), str)

        def shows(ranked, redact=str):
            return shown(w.engine, repository, code, ranked, "", redact)

        alike = [("web/view.js", 1.0), ("shop/mail.py", 1.0), ("shop/cart.py", 1.0)]
        assert shows(alike, lambda text: text.replace("add_item", "XXX")) == [
            ("shop/cart.py", "shop/cart.py\n  3: def XXX(x):"),
            ("shop/mail.py", "shop/mail.py\n  1: def send_mail(to):"),
            ("web/view.js", "web/view.js\n  1: export function renderCart() { return XXX }"),
        ]
        better = [("web/view.js", 1.1), *alike[1:]]
        assert next(path for path, _ in shows(better)) == "web/view.js"
        assert shows([]) == []


def test_what_defines_is_looked_for_once_in_a_text_and_kept_beside_the_facts_of_the_file(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path) as w:
        code = read_tree(w.engine, repository, repository.tree_of("HEAD"), str)
        facts = w.engine.read(known_facts, code.blobs)
        ranked = [(path, 1.0) for path in code.paths if path.endswith((".py", ".js"))]

        def shows(redact=str):
            return shown(w.engine, repository, code, ranked, "", redact)

        first = shows()
        assert w.engine.read(known_facts, code.blobs) == facts, "an older reader is not disturbed"
        with monkeypatch.context() as patched:
            patched.delattr(ast, "parse")
            assert shows() == first
            with pytest.raises(AttributeError):  # another text: what is kept is not its own
                shows(lambda text: f"\n{text}")
            patched.setattr(codemap, "reads", lambda path: True)
            with pytest.raises(AttributeError):  # another reader
                shows()
        assert dict(shows(lambda text: f"\n{text}"))["shop/cart.py"].endswith("4: def add_item(x):")
        assert shows() == first
        blob = code.blobs[code.paths.index("shop/cart.py")]
        for content in (b"", b"\xff"):  # of nobody, or of another version
            w.engine.call(
                lambda tx, content=content: tx.run("file.beside", blob=blob, facts=content)
            )
            assert shows() == first


def test_one_text_of_two_kinds_has_the_lines_of_each(tmp_path: Path) -> None:
    text = "class A:\n    def b(self):\n        def inner(): ...\n"
    files = [("a.py", "x", text), ("a", "x", text)]
    with world(tmp_path) as w:
        for _ in range(2):
            assert library.outlines(w.engine, files, "") == {
                "a.py": "1: class A:\n2:     def b(self):",
                "a": "1: class A:\n2:     def b(self):\n3:         def inner(): ...",
            }


def test_a_map_is_shown_while_another_process_has_the_store(
    tmp_path: Path, repository: Repository
) -> None:
    engine = Engine(tmp_path / "holdfast.db", SystemClock(), wait_s=0.1)
    code = read_tree(engine, repository, repository.tree_of("HEAD"), str)
    other = Turnstile(tmp_path)
    turn = other.enter()
    found = shown(engine, repository, code, [("shop/cart.py", 1.0)], "", str)
    other.leave(turn)
    other.close()
    assert found == [("shop/cart.py", "shop/cart.py\n  3: def add_item(x):")]
    assert engine.read(known_defining, code.blobs) == {}
    engine.close()


def test_a_tree_is_read_once_and_what_is_binary_huge_or_a_link_is_left_out(
    tmp_path: Path, repository: Repository
) -> None:
    tree = repository.tree_of("HEAD")
    with world(tmp_path) as w:
        seen: list[str] = []

        def redact(text: str) -> str:
            seen.append(text)
            return text.replace("send_mail", "XXXX")

        code = read_tree(w.engine, repository, tree, redact)
        assert code.paths == ("image.png", *sorted(FILES))
        assert read_tree(w.engine, repository, tree, redact) == code
        assert len(seen) == 1 + len(FILES), "the names and every text are redacted, and read once"
        assert gc.isenabled(), "the collector is away while a tree is read, and no longer"
        assert w.engine.read(known_map, tree) == code
        assert w.engine.read(known_map, "0" * 40) is None
        before = msgspec.msgpack.encode({"paths": [], "blobs": [], "links": [], "path_terms": []})
        w.engine.call(lambda tx: tx.run("map.put", tree=tree, map=before))
        assert w.engine.read(known_map, tree) is None
        assert read_tree(w.engine, repository, tree, redact) == code, "a map of before is made anew"
        assert w.engine.read(known_map, tree) == code
        before = encode_map(replace(code, scanning=SCANNING - 1, names=code.path))
        w.engine.call(lambda tx: tx.run("map.put", tree=tree, map=before))
        blob = code.blobs[-1]
        facts = encode_facts(Facts(defines=("nothing",), mentions={}, scanning=SCANNING - 1))
        w.engine.call(lambda tx: tx.run("file.beside", blob=blob, facts=facts))
        assert w.engine.read(known_facts, [blob]) == {}
        assert read_tree(w.engine, repository, tree, redact) == code, "so are facts of before"
        assert w.engine.read(known_facts, [blob])[blob].defines == ("renderCart",)
        assert w.engine.read(lambda tx: tx.number("file.next")) == len(code.paths) + 1
    for file in tmp_path.glob("holdfast.db*"):
        assert b"send_mail" not in file.read_bytes()
        assert b"secret_name" not in file.read_bytes()


@pytest.mark.parametrize("child", [0, 10**9])
@pytest.mark.parametrize(("blobs", "size"), [(1, 10**9), (200, 100), (2, 10**9)])
def test_the_map_does_not_depend_on_how_much_is_read_at_a_time(
    tmp_path: Path,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    blobs: int,
    size: int,
    child: int,
) -> None:
    """The newest batch comes from the scanner, what is older from the store."""
    tree = repository.tree_of("HEAD")
    facts = [(path, text, scanned(path, text)) for path, text in FILES.items()]
    assert any(set(fact.mentions) - {"add_item"} for _, _, fact in facts)
    blob_of = {path: blob for path, blob, _ in repository.entries(tree)}
    whole = built(
        [
            *((path, blob_of[path], fact) for path, _, fact in facts),
            ("image.png", blob_of["image.png"], Facts(defines=(), mentions={})),
        ]
    )
    monkeypatch.setattr(library, "BATCH", blobs)
    monkeypatch.setattr(library, "BATCH_BYTES", size)
    monkeypatch.setattr(library, "QUEUED", 1)
    monkeypatch.setattr(scanner, "CHILD_CHARS_MIN", child)
    with world(tmp_path) as w:
        assert read_tree(w.engine, repository, tree, str) == whole


@pytest.mark.parametrize("queued", [0, 2])
def test_no_more_batches_wait_to_be_scanned_and_stored_than_may(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch, queued: int
) -> None:
    monkeypatch.setattr(library, "BATCH", 1)
    monkeypatch.setattr(library, "QUEUED", queued)
    with world(tmp_path) as w:
        texts: list[str] = []
        ahead: list[int] = []

        def redact(text: str) -> str:
            texts.append(text)
            stored = w.engine.read(lambda tx: tx.number("file.next")) - 1
            ahead.append(len(texts) - 1 - stored)  # the first text is that of the names
            return text

        assert len(read_tree(w.engine, repository, repository.tree_of("HEAD"), redact).paths) == 5
        assert len(ahead) == 5
        assert max(ahead) <= queued, "of four texts; the image comes first"


def test_batches_hold_every_blob_once_within_both_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "BATCH", 3)
    monkeypatch.setattr(library, "BATCH_BYTES", 10)
    sizes = {"a": 1, "b": 1, "c": 1, "d": 1, "e": 9, "f": 50, "g": 2}
    assert list(library._batches(sizes)) == [["a", "b", "c"], ["d", "e"], ["f"], ["g"]]
    assert list(library._batches({})) == []


def test_many_blobs_come_from_one_git_in_the_order_asked(repository: Repository) -> None:
    entries = repository.entries(repository.tree_of("HEAD"))
    asked = [blob for _, blob, _ in reversed(entries)]
    sizes = [size for _, _, size in reversed(entries)]
    assert [len(content) for content in repository.contents(asked)] == sizes
    with pytest.raises(NotFound):
        repository.contents(["0" * 40])
