"""A chain of models: it moves when one is away, says so, and resume and replay follow the move."""

import signal
from pathlib import Path

import pytest

from e2e.support import (
    Cli,
    Driver,
    at_step,
    broken_invariants,
    calls,
    make_repo,
    model_server,
    says,
    script,
    write_script,
)
from holdfast.agent.chain import Move, chain, next_model
from holdfast.errors import FailureClass, ModelError

WRITE = calls(("write_file", {"path": "x.txt", "content": "x\n"}))
READ = calls(("read_file", {"path": "README.md"}))
DONE = says("It is there.")
CHECK = ("--check", "test -f x.txt", "--json")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"README.md": "# Thing\n", "holdfast.toml": "backoff_ms=1"})


@pytest.mark.parametrize(
    ("failure_class", "code", "moves"),
    [
        ("transient", "overloaded", True),
        ("transient", "rate_limited", True),
        ("unknown", "server_error", True),
        ("policy", "quota_exhausted", True),
        ("policy", "not_allowed", True),
        ("logic", "unknown_model", True),
        ("policy", "content_filter", True),
        ("logic", "bad_request", False),
        ("logic", "context_too_long", False),
    ],
)
def test_what_another_model_may_do_moves_and_what_it_would_refuse_too_does_not(
    failure_class: FailureClass, code: str, moves: bool
) -> None:
    error = ModelError("no", failure_class=failure_class, code=code)
    models = chain(" a:1 , b:2,")
    assert models == ("a:1", "b:2")
    expected = Move(source="a:1", target="b:2", code=code, reason="no") if moves else None
    assert next_model(models, "a:1", error) == expected
    assert next_model(models, "b:2", error) is None, "the last one's failure stands"


def attempts(cli: Cli) -> list[tuple[str, str]]:
    rows = cli.store.rows("SELECT outcome, failure FROM attempts ORDER BY number")
    return [(row["outcome"], row["failure"]) for row in rows]


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_model_that_is_away_in_any_turn_costs_no_attempt(
    repo: Path, tmp_path: Path, turn: int
) -> None:
    replies = [READ, WRITE, DONE]
    first = [{**each, **({"status": 503} if at == turn else {})} for at, each in enumerate(replies)]
    one = write_script(tmp_path / "one.json", script(*first))
    two = write_script(tmp_path / "two.json", script(*replies))
    cli = Cli(repo)
    done = cli("run", "Make x.txt", "--model", f"{one},{two}", *CHECK)
    assert (done.code, attempts(cli)) == (0, [("passed", "")]), done.err
    assert f"{one} → {two}" in done.err, "progress says that it moved, and why"
    assert "503" in done.err
    assert broken_invariants(cli.store) == []
    asked = [key for _, _, key, _ in cli.store.done() if "model" in key]
    expected = [f"t{at + 1:03}/model" for at in range(3)]
    expected[turn] += ".1"
    assert asked == expected
    told = cli("why", "1.1", "--json").result
    assert [(move["target"], move["code"]) for move in told["moves"]] == [(two, "overloaded")]
    assert "moved from" in cli("why", "1.1").out
    replayed = cli("replay", "1.1", "--json")
    assert replayed.code == 0, replayed.out


def test_a_reply_that_its_provider_filtered_is_asked_of_the_next_model(
    repo: Path, tmp_path: Path
) -> None:
    filtered = {"text": "I ca", "finish_reason": "content_filter"}
    one = write_script(tmp_path / "one.json", script(filtered))
    two = write_script(tmp_path / "two.json", script(WRITE, DONE))
    cli = Cli(repo)
    done = cli("run", "Make x.txt", "--model", f"{one},{two}", *CHECK)
    assert (done.code, attempts(cli)) == (0, [("passed", "")]), done.err
    assert f"{one} → {two}: the provider's content filter ended the reply" in done.err
    assert cli("replay", "1.1", "--json").code == 0
    alone = cli("run", "Make x.txt", "--model", one, *CHECK)
    assert (alone.code, attempts(cli)[1:]) == (1, [("failed", "policy")]), "asked once"


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (("a:1", "b:2"), "--model a:1,b:2"),
        (("complex=a:1", "complex=b:2,c:3"), "--model complex=a:1,b:2,c:3"),
        (("a:1", "unknown=b:2"), "--model a:1,b:2"),
    ],
)
def test_a_model_given_twice_is_refused_with_the_chain_that_was_meant(
    repo: Path, words: tuple[str, str], form: str
) -> None:
    cli = Cli(repo)
    refused = cli("run", "Make it", "--model", words[0], "--model", words[1], "--json")
    assert refused.code == 2
    assert form in refused.result["hint"]
    assert not cli.home.exists()


def test_the_last_models_failure_is_the_attempts_own(repo: Path, tmp_path: Path) -> None:
    away = {"status": 503}
    one = write_script(tmp_path / "one.json", script({**WRITE, **away}))
    two = write_script(tmp_path / "two.json", script({**WRITE, **away, "times": 1}, DONE))
    cli = Cli(repo)
    done = cli("run", "Make x.txt", "--model", f"{one},{two}", *CHECK)
    assert done.code == 0, done.err
    assert attempts(cli) == [("failed", "transient"), ("passed", "")]
    assert done.err.count(f"{one} → {two}") == 2, "the second attempt follows the recorded move"
    assert cli("replay", "1.2", "--json").code == 0


def test_a_chain_that_names_a_model_twice_ends_where_it_ends(repo: Path, tmp_path: Path) -> None:
    one, two = (
        write_script(tmp_path / f"{name}.json", script({**WRITE, "status": 503}))
        for name in ("one", "two")
    )
    cli = Cli(repo)
    done = cli("run", "Make x.txt", "--model", f"{one},{one},{two},{one}", *CHECK)
    assert (done.code, done.result["reason"]) == (4, "exhausted")
    moves = cli.store.rows("SELECT key FROM steps WHERE kind = 'decision'")
    assert [row["key"] for row in moves] == ["t001/move.0"]


def test_all_models_away_exhaust_the_attempts(repo: Path, tmp_path: Path) -> None:
    with model_server(script({**WRITE, "status": 503}), tmp_path / "model") as server:
        cli = Cli(repo, server.environ())
        done = cli("run", "Make it", "--model", "ollama:scripted,openai:scripted", "--json")
        asked = [call["dialect"] for call in server.asked()]
    assert (done.code, done.result["reason"]) == (4, "exhausted")
    assert asked[:2] == ["ollama", "openai"]
    assert set(asked[1:]) == {"openai"}, "a take never goes back to the model it left"
    assert len(asked) <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("boundary", "key"),
    [
        ("after_intend", "t001/model"),
        ("after_intend", "t001/model.1"),
        ("after_commit", "t001/model.1"),
        ("mid_effect", "t001/call:0"),
        ("after_intend", "t002/model"),
    ],
)
def test_a_kill_around_a_move_is_followed_and_never_moved_twice(
    repo: Path, tmp_path: Path, boundary: str, key: str
) -> None:
    one = write_script(tmp_path / "one.json", script({**WRITE, "status": 503}))
    played = script(WRITE, DONE)
    two = write_script(tmp_path / "two.json", played)
    with Driver(tmp_path / "driver", repo, played, model=f"{one},{two}") as driver:
        assert driver.order(die=at_step(boundary, key))["signal"] == signal.SIGKILL
        said = driver.order(goal=1)["said"]
        assert said["state"] == "complete"
        assert broken_invariants(driver.store) == []
        moves = driver.store.rows("SELECT key FROM steps WHERE kind = 'decision'")
        assert [row["key"] for row in moves] == ["t001/move.0"]
        cli = Cli(repo, {"HOLDFAST_HOME": str(driver.home)})
        assert cli("replay", said["tasks"][0]["attempt"], "--json").code == 0


def test_a_chain_is_refused_for_a_name_that_can_never_work_and_noted_for_one_that_is_away(
    repo: Path, tmp_path: Path
) -> None:
    good = write_script(tmp_path / "good.json", script(WRITE, DONE))
    cli = Cli(repo)
    refused = cli("run", "Make it", "--model", f"{good},nope:x", "--json")
    assert (refused.code, cli.store.goals()) == (2, 0)
    nobody = {"OLLAMA_HOST": "http://127.0.0.1:9"}
    done = cli("run", "Make it", "--model", f"ollama:x,{good}", *CHECK, environ=nobody)
    assert done.code == 0, done.err
    assert "going on with the chain" in done.err
    alone = cli("run", "Make it", "--model", "ollama:x", "--json", environ=nobody)
    assert alone.code == 2


def test_the_doctor_examines_every_model_of_a_chain(repo: Path, tmp_path: Path) -> None:
    good = write_script(tmp_path / "good.json", script(DONE))
    environ = {"HOLDFAST_MODEL": f"{good},ollama:x", "OLLAMA_HOST": "http://127.0.0.1:9"}
    found = Cli(repo, environ)("doctor", "--json").objects
    findings = [each for each in found[-1]["findings"] if each["name"] == "model"]
    assert [each["level"] for each in findings] == ["ok", "problem"]


def test_a_tier_has_a_chain_of_its_own_and_a_task_that_names_a_model_beats_it(
    repo: Path, tmp_path: Path
) -> None:
    small, away, large, own = (
        write_script(tmp_path / f"{name}.json", script(*replies))
        for name, replies in {
            "small": [says("Mended.")],
            "away": [{**WRITE, "status": 503}],
            "large": [WRITE, DONE],
            "own": [says("Said.")],
        }.items()
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[tasks]]\nkey = "a"\nprompt = "Fix a typo"\ntier = "trivial"\n'
        '[[tasks]]\nkey = "b"\nprompt = "Make x.txt"\ntier = "complex"\n'
        'checks = ["test -f x.txt"]\n'
        f'[[tasks]]\nkey = "c"\nprompt = "Say it"\ntier = "complex"\nmodel = "{own}"\n'
    )
    cli = Cli(repo)
    done = cli(
        *("run", "Do it", "--plan", str(plan), "--json"),
        *("--model", small, "--model", f"complex={away},{large}"),
    )
    assert done.result["state"] == "complete", done.err
    asked = cli.store.rows("SELECT t.key, r.model FROM runs r JOIN tasks t ON t.id = r.task_id")
    assert {row["key"]: row["model"] for row in asked} == {
        "a": small,
        "b": f"{away},{large}",
        "c": own,
    }
    assert f"{away} → {large}" in done.err


def test_a_tier_that_does_not_exist_is_refused_with_those_that_do(repo: Path) -> None:
    done = Cli(repo)("run", "Do it", "--model", "hard=ollama:x", "--json")
    assert (done.code, done.result["hint"]) == (
        2,
        "one of trivial, standard, complex, unknown",
    )


def test_the_chain_of_a_tier_is_tried_before_a_goal_is_made(repo: Path) -> None:
    cli = Cli(repo, {"HOLDFAST_MODEL_COMPLEX": "nobody:x"})
    done = cli("run", "Do it", "--model", "ollama:x", "--json")
    assert (done.code, done.result["code"]) == (2, "unknown_provider"), done.out
    assert not cli.home.exists(), "no store was made for it"
