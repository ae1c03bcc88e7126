"""History as evidence: which files earlier commits changed, and what they said about it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_world import world
from holdfast.adapters.repository import Repository
from holdfast.context.codemap import build, relevant
from holdfast.context.history import (
    FILES_MAX,
    Change,
    by_history,
    changes,
    decode_changes,
    encode_changes,
    evidence,
)
from holdfast.context.words import forms, root
from holdfast.engine.library import known_changes, known_map
from holdfast.errors import Unavailable
from holdfast.worker import library
from holdfast.worker.library import read_history

TOLD = (
    ("Renew the lease earlier", ["lease.py", "clock.py"]),
    ("Show the colour of a lease", ["page.py"]),
    ("Renewing: wait for the lease", ["lease.py"]),
    ("Write the manual", ["README.md"]),
)


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.quotePath=false")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, message: str, *names: str) -> str:
    for name in names:
        (folder / name).write_text(f"{message}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "repo"
    found.mkdir()
    git(found, "init", "-q", "-b", "main")
    return found


def history(
    folder: Path, at: str, most: int = 100, size: int = 10**6
) -> list[tuple[str, list[str]]]:
    return Repository.open(folder).history(at, commits_max=most, bytes_max=size)


def ranked(told: Sequence[tuple[str, Sequence[str]]], query: str) -> list[str]:
    scores = by_history(changes(told), query)
    return sorted(scores, key=lambda path: (-scores[path], path))


def test_files_rank_by_what_the_commits_that_changed_them_said() -> None:
    assert ranked(TOLD, "leases are renewed too late") == [
        "lease.py",
        "clock.py",
        "page.py",
        "README.md",
    ]
    assert ranked(TOLD, "the manual")[0] == "README.md"
    assert ranked([], "the manual") == []


def test_an_old_change_counts_less_than_a_new_one_and_a_large_one_less_than_a_small_one() -> None:
    unrelated = [("other", ["x.py"])] * 300
    assert ranked([("fix it", ["new"]), *unrelated, ("fix it", ["old"])], "fix it")[0] == "new"
    assert ranked([("fix it", ["a", "b", "c"]), ("fix it", ["z"])], "fix it")[0] == "z"


@pytest.mark.parametrize(("files", "counts"), [(FILES_MAX, True), (FILES_MAX + 1, False)])
def test_a_sweeping_commit_is_no_evidence(files: int, counts: bool) -> None:
    told = [("renew the lease", [f"f{number}" for number in range(files)])]
    assert bool(ranked(told, "lease")) is counts


def test_what_history_says_of_files_that_are_gone_shows_nothing() -> None:
    code = build([("lease.py", "b")], {"b": ()}, [])
    found = relevant(
        code, {}, "colour of a lease", changed=by_history(changes(TOLD), "lease colour")
    )
    assert [path for path, _ in found] == ["lease.py"]


def test_the_evidence_names_the_files_commits_and_the_words_of_the_query_alone() -> None:
    known = changes(TOLD)
    assert evidence(known, "a lease is renewed", "lease.py") == "lease.py: 2 of lease, renewed"
    assert evidence(known, "a lease is renewed", "README.md") == ""
    assert decode_changes(encode_changes(known)) == known


def test_a_query_finds_a_word_in_every_form_of_its_root() -> None:
    assert {root(word) for word in ("stop", "stopped", "stopping")} == {"stop"}
    assert {root(word) for word in ("parsed", "parsing", "parse")} == {"pars"}
    assert [root(word) for word in ("string", "red", "x86ed", "été")] == [
        "str",
        "red",
        "x86ed",
        "été",
    ]


@example("agreed")
@example("agreeeing")
@given(st.text("abdeginsz", min_size=1, max_size=9))
def test_every_term_is_among_the_forms_of_its_root_and_no_other_roots_term_is(term: str) -> None:
    assert term in forms(root(term))
    assert {root(form) for form in forms(root(term))} == {root(term)}


def test_a_history_is_told_newest_first_whatever_messages_and_names_hold(folder: Path) -> None:
    commit(folder, "first", "a")
    commit(folder, "\x01two\n\nwith a body\n", "b", "line\nbreak", " ü")
    commit(folder, "")
    git(folder, "switch", "-q", "-c", "side", "HEAD~2")
    commit(folder, "side", "c")
    git(folder, "switch", "-q", "main")
    git(folder, "merge", "-q", "--no-edit", "-m", "merged", "side")
    for name, value in (
        ("color.ui", "always"),
        ("log.showSignature", "true"),
        ("log.mailmap", "1"),
    ):
        git(folder, "config", name, value)
    found = [(message.strip(), names) for message, names in history(folder, "HEAD")]
    assert sorted(found) == sorted(
        [
            ("first", ["a"]),
            ("\x01two\n\nwith a body", [" ü", "b", "line\nbreak"]),
            ("", []),
            ("side", ["c"]),
        ]
    )
    assert found[-1] == ("first", ["a"])


def test_a_history_ends_at_either_limit_with_a_whole_commit(folder: Path) -> None:
    for number in range(4):
        last = commit(folder, f"change {number}", f"name{number}")
    assert [message.strip() for message, _ in history(folder, last, most=2)] == [
        "change 3",
        "change 2",
    ]
    whole = [f"\0change {number}\n\0\0\nname{number}\0" for number in range(4)]
    assert [len(history(folder, last, size=size)) for size in (1, 45, 10**6)] == [0, 1, 4]
    assert len("".join(whole[:2])) < 45 < len("".join(whole[:3])), "which begins to be read"


def test_only_what_led_to_a_commit_is_its_history(folder: Path) -> None:
    base = commit(folder, "before", "a")
    commit(folder, "after", "b")
    assert history(folder, base) == [("before\n", ["a"])]


def test_a_history_is_read_once_redacted_and_bounded(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(folder, "older", "a")
    head = commit(folder, "say hunter2", "hunter2.py")
    repository = Repository.open(folder)

    def redact(text: str) -> str:
        return text.replace("hunter2", "XXXX")

    monkeypatch.setattr(library, "COMMITS_MAX", 1)
    with world(tmp_path) as w:
        known = read_history(w.engine, repository, head, redact)
        assert known == (Change(said=("say", "xxxx"), paths=("XXXX.py",)),)
        git(folder, "update-ref", "-d", "refs/heads/main")
        monkeypatch.setattr(Repository, "history", None)
        assert read_history(w.engine, repository, head, redact) == known, "git is not asked again"
        assert read_history(w.engine, repository, "", redact) == ()
    for file in tmp_path.glob("holdfast.db*"):
        assert b"hunter2" not in file.read_bytes()


def test_what_another_version_remembered_is_read_anew(tmp_path: Path, folder: Path) -> None:
    head = commit(folder, "say more", "a")
    repository = Repository.open(folder)
    with world(tmp_path) as w:
        for foreign in (b"\xc1", b"\x81\xa1a\x01", b""):
            w.engine.call(lambda tx, old: tx.run("map.put", tree=head, map=old), foreign)
            known = read_history(w.engine, repository, head, str)
            assert known == (Change(said=("say", "more"), paths=("a",)),)
            assert w.engine.read(known_changes, head) == known, "and remembered in its place"
            w.engine.call(lambda tx, old: tx.run("map.put", tree=head, map=old), foreign)
            assert w.engine.read(known_map, head) is None


def test_a_shallow_clone_tells_what_it_has_and_a_commit_that_is_not_there_is_unavailable(
    tmp_path: Path, folder: Path
) -> None:
    for number in range(3):
        commit(folder, f"change {number}", "a")
    git(tmp_path, "clone", "-q", "--depth", "2", folder.as_uri(), "thin")
    assert [message for message, _ in history(tmp_path / "thin", "HEAD")] == [
        "change 2\n",
        "change 1\n",
    ]
    with pytest.raises(Unavailable):
        history(folder, "0" * 40)
