"""What a run leaves: replay from the record alone, why a line is so, undo verified by hash."""

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from e2e.support import Cli, calls, git, make_repo, says, script, tree, write_script
from e2e.three_tasks import FILES, GOAL, PLAIN_SCRIPT, write_plan

READ = calls(("read_file", {"path": "a.txt"}), text="First I look at the file.")
WRITE = calls(("write_file", {"path": "b.txt", "content": "b\n"}))
LIST = calls(("list_directory", {"path": "."}))
UNSHARED = ("unshare", "--net", "--map-root-user")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A goal of one task with a few steps, done."""
    repo = make_repo(tmp_path / "repo", {"a.txt": "a\n"})
    model = write_script(tmp_path / "model.json", script(READ, WRITE, LIST, says("Done.")))
    cli = Cli(repo)
    done = cli("run", "Make b.txt", "--model", model, "--check", "test -f b.txt", "--json")
    assert done.code == 0, done.err
    return cli


def change(cli: Cli, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(cli.store.path)) as connection:
        changed = connection.execute(statement, values).rowcount
        connection.commit()
    assert changed == 1


def stored(cli: Cli, key: str) -> tuple[str, bytes]:
    """The result of a step: where it is (`steps` or a blob's hash) and its bytes."""
    result = cli.store.one("SELECT result FROM steps WHERE key = ?", key)
    if result[0] != "@":
        return "", result.encode()
    return result[1:], cli.store.one("SELECT bytes FROM blobs WHERE sha256 = ?", result[1:])


def overwrite(cli: Cli, key: str, before: bytes, after: bytes) -> None:
    where, content = stored(cli, key)
    assert content.count(before) >= 1
    content = content.replace(before, after, 1)
    if where:
        change(cli, "UPDATE blobs SET bytes = ? WHERE sha256 = ?", content, where)
    else:
        change(cli, "UPDATE steps SET result = ? WHERE key = ?", content.decode(), key)


def replayed(cli: Cli, attempt: str = "1.1") -> dict[str, Any]:
    done = cli("replay", attempt, "--json")
    assert done.code in (0, 1), done.err
    assert done.code == (0 if done.result["equal"] else 1)
    return done.result


def test_replay_needs_no_workspace_no_repository_and_no_network(cli: Cli, tmp_path: Path) -> None:
    shutil.rmtree(cli.home / "tasks")
    shutil.rmtree(cli.repo / ".git")
    (tmp_path / "model.json").unlink()
    if os.system("unshare --net --map-root-user true") != 0:
        pytest.skip("this machine does not let a process leave the network")
    alone = replace(cli, prefix=UNSHARED, environ={"HOLDFAST_HOME": str(cli.home)})
    found = replayed(alone)
    assert found["equal"]
    assert (found["compared"], found["outcome"]) == (8, "passed")


@pytest.mark.parametrize("words", [(b"look", b"gaze"), (b"First", b"Fi st")])
@pytest.mark.parametrize("where", ["reply", "actions"])
def test_a_changed_word_of_a_reply_is_named_by_step_field_and_byte(
    cli: Cli, words: tuple[bytes, bytes], where: str
) -> None:
    text = b"First I look at the file."
    name = b'"text":"' if where == "reply" else b'"answer":"'
    overwrite(cli, "t001/model", name + text, name + text.replace(*words))
    first = replayed(cli)["difference"]
    assert (first["step"], first["field"]) == ("t001/model", "actions.answer")
    pairs = zip(text, text.replace(*words), strict=True)
    assert first["byte"] == next(at for at, (one, other) in enumerate(pairs) if one != other)


def test_a_changed_observation_is_named(cli: Cli) -> None:
    _, content = stored(cli, "t001/call:0")
    shown = json.loads(content)["output"]
    overwrite(cli, "t001/call:0", b"1\\ta", b"1\\tX")
    first = replayed(cli)["difference"]
    assert (first["step"], first["field"]) == ("t001/call:0", "result")
    assert first["byte"] == shown.index("\ta") + 1


def test_a_changed_answer_that_no_request_holds_is_named_all_the_same(cli: Cli) -> None:
    overwrite(cli, "t004/model", b"Done.", b"Gone.")
    first = replayed(cli)["difference"]
    assert (first["step"], first["byte"]) == ("t004/model", 0)


def test_a_changed_byte_of_a_bundle_is_named_at_five_places(cli: Cli) -> None:
    """One byte after the other through the whole bundle: none may be changed unseen."""
    digest = cli.store.one("SELECT bundle_sha256 FROM takes")
    bundle = bytes(cli.store.one("SELECT bytes FROM blobs WHERE sha256 = ?", digest))
    prompt = (
        bundle.index(b"You work") if b"You work" in bundle else bundle.index(b'"system":"') + 12
    )
    goal = bundle.index(b"Make b.txt", bundle.index(b'"user":"'))
    for position in (prompt, goal, bundle.index(b'"seed":') + 7, len(bundle) // 2, len(bundle) - 3):
        changed = bytearray(bundle)
        old = changed[position : position + 1]
        changed[position] = ord("1") if old.isdigit() and old != b"1" else ord("7")
        change(cli, "UPDATE blobs SET bytes = ? WHERE sha256 = ?", bytes(changed), digest)
        found = replayed(cli)
        assert not found["equal"], f"byte {position} was changed unseen"
        first = found["difference"]
        assert first["step"] in ("t001/model", "bundle"), first
        if position in (prompt, goal):
            assert first["step"] == "t001/model"
            assert re.fullmatch(r"messages\[[01]\]\.content", first["field"]), first
            assert first["byte"] >= 0
    change(cli, "UPDATE blobs SET bytes = ? WHERE sha256 = ?", bundle, digest)
    assert replayed(cli)["equal"]


def test_a_bundle_of_a_version_that_knew_fewer_fields_replays_equal(cli: Cli) -> None:
    digest = cli.store.one("SELECT bundle_sha256 FROM takes")
    bundle = bytes(cli.store.one("SELECT bytes FROM blobs WHERE sha256 = ?", digest))
    field = b'"models":{},'
    assert bundle.count(field) == 1, "a field that came later"
    before = bundle.replace(field, b"")
    change(
        *(cli, "UPDATE blobs SET bytes = ?, sha256 = ? WHERE sha256 = ?", before),
        *(sha256(before).hexdigest(), digest),
    )
    change(cli, "UPDATE takes SET bundle_sha256 = ?", sha256(before).hexdigest())
    assert replayed(cli)["equal"]


DRIVER = """
import re, sys
from holdfast.agent import actions
actions._THINK = re.compile("look")  # the rule that strips think blocks, changed
from holdfast.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_changed_rule_of_the_parser_is_named_at_the_step_it_reads_differently(
    cli: Cli, tmp_path: Path
) -> None:
    driver = tmp_path / "other_parser.py"
    driver.write_text(DRIVER, encoding="utf-8")
    changed = replace(cli)
    changed.words = (
        lambda *words: [  # type: ignore[method-assign]
            *cli.words()[:-2],
            str(driver),
            *words,
        ]
    )
    first = replayed(changed)["difference"]
    assert (first["step"], first["field"]) == ("t001/model", "actions.answer")
    assert first["byte"] == len("First I ")


def test_a_step_that_was_taken_out_of_the_record_is_missed(cli: Cli) -> None:
    change(cli, "DELETE FROM steps WHERE key = 't002/call:0'")
    first = replayed(cli)["difference"]
    assert (first["step"], first["field"]) == ("t002/call:0", "step")


@pytest.fixture
def three(tmp_path: Path) -> Cli:
    """The goal of three tasks, done through the command line."""
    repo = make_repo(tmp_path / "repo", FILES)
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    cli = Cli(repo)
    done = cli("run", GOAL, "--plan", str(write_plan(tmp_path)), "--model", model, "--json")
    assert done.code == 0, done.err
    return cli


def test_why_names_the_second_task_for_a_line_that_the_third_shifted(three: Cli) -> None:
    assert git(three.repo, "show", "holdfast/goal-1:list.txt").split() == [
        "top",
        "a",
        "middle",
        "z",
    ]
    found = three("why", "list.txt:3", "--json").result
    assert (found["task"], found["attempt"], found["text"]) == ("two", "2.1", "middle")
    assert (found["goal"], found["step"]) == (1, "t001/call:0")
    assert found["prompt"] == "Put middle into list.txt."
    assert found["model"].startswith("scripted:")
    assert found["usage"]["tokens"] > 0
    assert len(found["bundle"]) == 64
    assert three("why", "list.txt:1", "--json").result["task"] == "three"
    assert three("why", "list.txt:2", "--json").result["attempt"] is None
    refused = three("why", "list.txt:99", "--json")
    assert (refused.code, refused.result["type"]) == (2, "error")


def test_undo_ends_at_the_first_tree(three: Cli) -> None:
    base = tree(three.repo, "main")
    assert three("undo", "1", "--dry-run", "--json").code == 0
    assert tree(three.repo, "holdfast/goal-1") != base
    found = three("undo", "1", "--json")
    assert (found.code, found.result["tree_equal"], found.result["tree"]) == (0, True, base)
    assert tree(three.repo, "holdfast/goal-1") == base
    assert three("undo", "1", "--json").code == 2, "once is enough"
    for task in (4, 5, 6):
        assert replayed(three, f"{task}.1")["equal"], "an undo replays too"


def test_undo_refuses_a_branch_that_a_person_changed_and_names_the_file(three: Cli) -> None:
    git(three.repo, "checkout", "-q", "holdfast/goal-1")
    (three.repo / "one.txt").write_text("mine\n", encoding="utf-8")
    git(three.repo, "commit", "-q", "-am", "a person was here")
    git(three.repo, "checkout", "-q", "main")
    before = git(three.repo, "rev-parse", "holdfast/goal-1")
    refused = three("undo", "1", "--json")
    assert refused.code == 2
    assert "one.txt" in refused.result["message"]
    assert "list.txt" not in refused.result["message"]
    assert git(three.repo, "rev-parse", "holdfast/goal-1") == before


def test_undo_works_when_the_workspaces_are_gone(three: Cli) -> None:
    shutil.rmtree(three.home / "tasks")
    found = three("undo", "1", "--json")
    assert (found.code, found.result.get("tree_equal")) == (0, True), found.err
