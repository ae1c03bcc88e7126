"""The context routes over real HTTP: a server process, and the answers of the command line."""

import json
import re
import signal
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from e2e.support import Cli, ended, make_repo, says, until, write_script
from holdfast import build
from holdfast.config import Settings

FILES = {"src/pool.py": "class SocketPool:\n    pass\n", "README.md": "# Demo\n"}
PLAN = """
[[tasks]]
key = "find"
kind = "model"
prompt = "Find out where the socket pool is."
[[tasks]]
key = "use"
kind = "model"
requires = ["find"]
prompt = "Say where the socket pool is."
[[tasks]]
key = "last"
kind = "model"
requires = ["use"]
priority = "high"
prompt = "Sum up the socket pool."
[[tasks]]
key = "apart"
kind = "model"
prompt = "Look at something else."
"""
RULES = [
    {"when": "Find out where", "replies": [says("The pool is in src/pool.py, word KESTREL.")]},
    {"when": "KESTREL", "replies": [says("I know: KESTREL, see [task 1].")]},
    {"replies": [says("I do not know.")]},
]


class Server:
    """One `holdfast context serve` over a repository, asked by bytes over a socket."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.process = cli.start("context", "serve", "--json", "--author", "ann")
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        assert said["type"] == "serving"
        self.port = int(said["url"].rpartition(":")[2])

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        sent = {"host": f"127.0.0.1:{self.port}"}
        content = body if isinstance(body, bytes) else b""
        if body is not None:
            content = content or json.dumps(body).encode()
            sent["content-type"] = "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, content or None, sent)
            got = connection.getresponse()
            return got.status, json.loads(got.read())
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        status, found = self.ask(method, path, body)
        assert status == 200, found
        return found

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        done = ended(self.process)
        assert "Traceback" not in done.err, done.err


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A repository whose goal of four tasks is done."""
    folder = tmp_path_factory.mktemp("routes")
    repo = make_repo(folder / "repo", FILES)
    model = write_script(folder / "script.json", {"rules": RULES})
    (folder / "plan.toml").write_text(PLAN)
    cli = Cli(repo, environ={"HOLDFAST_MODEL": model})
    done = cli("run", "Look after the pool", "--plan", str(folder / "plan.toml"))
    assert done.code == 5, done.err
    return cli


@pytest.fixture(scope="module")
def server(place: Cli) -> Iterator[Server]:
    made = Server(place)
    yield made
    made.close()


@pytest.mark.parametrize("prefix", ["", "/api/v1"])
def test_links_are_made_shown_from_both_ends_and_removed(server: Server, prefix: str) -> None:
    link = {"from_id": 4, "to_id": 1, "kind": "refers"}
    made = server.ok("POST", f"{prefix}/context/links", link)
    assert made["created"]
    assert [(one["from_id"], one["to_id"], one["kind"]) for one in made["outgoing"]] == [
        (4, 1, "refers")
    ]
    assert not server.ok("POST", f"{prefix}/context/links", link)["created"], "idempotent"
    seen = server.ok("GET", f"{prefix}/context/links/1")
    assert set(seen) == {"incoming", "outgoing"}
    assert [one["task"] for one in seen["incoming"]] == [4, 2]
    left = server.ok("DELETE", f"{prefix}/context/links", link)
    assert left == {"incoming": [], "outgoing": []}
    server.ok("POST", f"{prefix}/context/links", link)
    server.ok("DELETE", f"{prefix}/context/links?from_id=4&to_id=1&kind=refers")
    status, error = server.ask("DELETE", f"{prefix}/context/links", link)
    assert (status, error["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("link", "code"),
    [
        ({"from_id": 1, "to_id": 1, "kind": "refers"}, "link_self"),
        ({"from_id": 1, "to_id": 2, "kind": "follows"}, "link_kind"),
        ({"from_id": 1, "to_id": 99, "kind": "refers"}, "not_found"),
        ({"from_id": 1, "to_id": 2**63, "kind": "refers"}, "bad_request"),
        ({"from_id": -1, "to_id": 2, "kind": "refers"}, "bad_request"),
        ({"from_id": "1", "to_id": 2, "kind": "refers"}, "bad_request"),
        ({"from_id": 1, "to_id": 2, "kind": "refers", "more": 1}, "bad_request"),
        ({"from_id": 1}, "bad_request"),
        ([], "bad_request"),
        (b"{", "bad_request"),
        (b"\xff\xfe", "bad_request"),
        (b"[" * 100_000, "bad_request"),
    ],
)
def test_a_bad_link_is_told_in_the_one_error_shape(server: Server, link: Any, code: str) -> None:
    status, error = server.ask("POST", "/context/links", link)
    assert status == (404 if code == "not_found" else 400)
    assert (set(error), error["type"], error["code"]) == (
        {"type", "code", "message", "hint"},
        "error",
        code,
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", None, 404),
        ("GET", "/context/links/1/", None, 404),
        ("POST", "/api/v1/run/", None, 404),
        ("PUT", "/context/links", {}, 405),
        ("GET", "/context/links/one", None, 400),
        ("GET", "/context/links/9999999999999999999999", None, 400),
        ("GET", "/context/links/1.0", None, 400),
        ("GET", "/context/links/%D9%A1", None, 400),
        ("GET", "/context/links/%EF%BC%91", None, 400),
        ("GET", "/context/links/99", None, 404),
        ("POST", "/tasks/1/context/approve", {"pins": [99]}, 404),
        ("GET", "/context/links/1?x=1", None, 400),
        ("GET", "/context/diff?left=1.1&left=2.1&right=2.1", None, 400),
        ("POST", "/context/links?from_id=4&to_id=1&kind=refers", None, 400),
        ("POST", "/tasks/1/context/preview?k=1", {}, 400),
        ("POST", "/tasks/1/context/preview", {"manual": [99]}, 404),
        ("POST", "/tasks/1/context/preview", {"manual": ["task " + "9" * 9000]}, 400),
        ("POST", "/run", {"title": "x", "options": {"manual": [99]}}, 404),
        ("POST", "/tasks/99/context/preview", {}, 404),
        ("POST", "/tasks/1/context/preview", {"k": -1}, 400),
        ("POST", "/tasks/1/context/preview", {"k": "many"}, 400),
        ("POST", "/tasks/1/context/preview", {"tokens": 1}, 400),
        ("POST", "/tasks/1/context/approve", {"pins": "README.md"}, 400),
        ("POST", "/tasks/1/context/approve", {"pins": ["a"], "excludes": ["a"]}, 400),
        ("GET", "/context/diff?left=1.1", None, 400),
        ("GET", "/context/diff?left=1.1&right=77.7", None, 404),
        ("GET", "/context/diff?left=1.1&right=..%2f..", None, 400),
        ("GET", "/context/schedule?strategy=dfs", None, 400),
        ("GET", "/context/schedule?plan_id=9", None, 404),
        ("GET", "/context/index/9", None, 404),
        ("PUT", "/context/index/1", {"text": "x"}, 400),
        ("PUT", "/context/index/1", {"text": "x", "version": 0, "path": "/etc/passwd"}, 400),
        ("POST", "/run", {"strategy": "dfs"}, 400),
        ("POST", "/run", {"title": " "}, 400),
        ("POST", "/run", {"title": "x", "options": {"model": "nobody:x"}}, 400),
        ("POST", "/run", {"title": "x", "options": {"summery": "x"}}, 400),
        ("GET", "/run/99", None, 404),
    ],
)
def test_malformed_input_is_the_callers_error_and_never_ours(
    server: Server, method: str, path: str, body: Any, status: int
) -> None:
    got, error = server.ask(method, path, body)
    assert (got, error["type"]) == (status, "error"), error
    assert error["message"]


def test_whoever_hangs_up_in_the_middle_of_a_body_leaves_no_trace_of_a_bug(tmp_path: Path) -> None:
    server = Server(Cli(make_repo(tmp_path / "repo", FILES)))
    head = "POST /run HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", server.port)) as early:
        early.sendall(head.encode())
        assert server.ask("GET", "/run/9")[0] == 404, "the one before is being read"
    assert server.ask("GET", "/run/9")[0] == 404
    server.close()


def test_pages_of_others_and_other_names_of_this_machine_are_turned_away(server: Server) -> None:
    link = {"from_id": 4, "to_id": 2, "kind": "refers"}
    for other in ("http://evil.example", "null", "http://[::1", f"http://localhost:{server.port}"):
        assert server.ask("POST", "/context/links", link, origin=other)[0] == 403
    assert server.ask("GET", "/context/links/1", host="evil.example")[0] == 421
    form = json.dumps(link).encode()
    assert server.ask("POST", "/context/links", form, content_type="text/plain")[0] == 415
    assert server.ask("POST", "/context/links", b" " * 1_100_000 + form)[0] == 413
    assert server.ask("GET", "/context/links/1", host=f"LocalHost:{server.port}")[0] == 200
    here = f"http://127.0.0.1:{server.port}"
    assert server.ask("POST", "/context/links", link, origin=here)[0] == 200
    with socket.socket() as elsewhere:
        assert elsewhere.connect_ex(("127.0.0.2", server.port)) != 0, "the loopback alone"


def test_a_preview_is_what_the_executor_used_and_its_options_try_others(server: Server) -> None:
    used = server.cli.store.one("SELECT bundle_sha256 FROM takes WHERE task_id = 2")
    found = server.ok("POST", "/tasks/2/context/preview", {})
    assert found["sha256"] == used
    assert server.ask("POST", "/tasks/2/context/preview") == (200, found), "no body is no option"
    printed = server.cli("context", "preview", "2", "--json").result
    assert printed == found
    alone = server.ok("POST", "/tasks/2/context/preview", {"include_deps": False})
    assert "KESTREL" in found["text"]
    assert "KESTREL" not in alone["text"]
    item = next(one for one in alone["items"] if one["source"] == "Task find")
    assert (item["fate"], "nobody asked for it" in item["reason"]) == ("out", True)
    asked = {"use_context": True, "k": 1, "manual": [1, "README.md"], "include_plan": False}
    rich = server.ok("POST", "/tasks/4/context/preview", asked)
    types = {one["source"]: (one["type"], one["fate"]) for one in rich["items"]}
    assert types["README.md"] == ("manual", "whole")
    assert types["Output 1.1"] == ("manual", "whole"), "task 1 was found by its words, too"
    assert types["The plan"] == ("plan", "out")
    for one in rich["items"]:
        assert one["excerpt"] == rich["text"][one["at"] : one["at"] + one["chars"]]
        assert bool(one["excerpt"]) == (one["fate"] != "out")
    secret = "sk-" + "ant-api03-" + "abCD1234" * 5
    hidden = server.ok("POST", "/tasks/4/context/preview", {"manual": [secret]})
    assert secret not in json.dumps(hidden)
    nested = server.ok(
        "POST", "/tasks/4/context/preview", {"use_context": True, "options": {"k": 0}}
    )
    both = server.ok(
        "POST", "/tasks/4/context/preview", {"include_plan": False, "options": {"k": 0}}
    )
    assert (both["options"]["include_plan"], both["options"]["k"]) == (False, 0)
    assert not [one for one in nested["items"] if one["fate"] != "out" and "BM25" in one["reason"]]


def test_a_preview_is_the_same_in_any_process_and_comes_true(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    model = write_script(tmp_path / "script.json", {"rules": RULES})
    (tmp_path / "plan.toml").write_text(PLAN)
    cli = Cli(repo, environ={"HOLDFAST_MODEL": model, "HOLDFAST_CONTEXT": "curated"})
    cli("run", "Look after the pool", "--plan", str(tmp_path / "plan.toml"), "--review")
    places: tuple[dict[str, str], ...] = (
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "COLUMNS": "20"},
    )
    seen = [cli("context", "preview", "1", "--json", environ=where).out for where in places]
    assert seen[0] == seen[1]
    assert cli("plan", "approve", "1").code == 0
    assert cli("resume").code == 5
    used = cli.store.one("SELECT prompt_hash FROM runs WHERE task_id = 1")
    assert used == json.loads(seen[0])["sha256"]


def test_an_approval_holds_with_author_time_and_reason(server: Server) -> None:
    body = {"pins": ["README.md"], "excludes": ["The plan"]}
    found = server.ok("POST", "/tasks/3/context/approve", body)
    assert found["steers"], "they hold for the next attempt"
    told = server.ok("GET", "/tasks/3/context/history")["steers"]
    assert [(one["verb"], one["source"], one["author"]) for one in told] == [
        ("pin", "README.md", "ann"),
        ("exclude", "The plan", "ann"),
    ]
    assert all(one["at_ms"] > 0 and one["reason"] for one in told)
    again = server.ok("POST", "/tasks/3/context/approve", {"pins": [], "excludes": []})
    assert again["steers"] == []


def test_an_index_is_written_over_the_version_that_was_read(server: Server) -> None:
    assert server.ok("GET", "/context/index/1")["version"] == 0
    wrote = server.ok("PUT", "/context/index/1", {"text": "# Rules\n", "version": 0})
    assert (wrote["version"], wrote["text"], wrote["author"]) == (1, "# Rules\n", "ann")
    status, error = server.ask("PUT", "/context/index/1", {"text": "late", "version": 0})
    assert (status, error["code"]) == (409, "stale")
    assert server.ok("GET", "/context/index/1")["text"] == "# Rules\n"
    status, error = server.ask("POST", "/tasks/1/context/preview", {"tokens": 30})
    assert (status, error["code"]) == (400, "budget_too_small")
    smallest = re.findall("at least ([0-9]+)", error["hint"])[0]
    found = server.ok("POST", "/tasks/1/context/preview", {"tokens": int(smallest)})
    assert (found["items"][0]["source"], found["items"][0]["fate"]) == ("INDEX.md", "whole")


def test_two_bundles_are_compared(server: Server) -> None:
    found = server.ok("GET", "/context/diff?left=1.1&right=2.1")
    assert not found["equal"]
    assert "Task find" in {change["source"] for change in found["items"]}
    assert server.ok("GET", "/api/v1/context/diff?left=1.1&right=1.1")["equal"]


def test_a_run_starts_goes_on_and_is_not_repeated(server: Server) -> None:
    body = {"title": "Find out where the pool is", "use_context": True, "options": {"wait": True}}
    (result,) = server.ok("POST", "/run", body)["goals"]
    assert (result["state"], result["outcome"], result["running"]) == (
        "complete",
        "unverified",
        False,
    )
    (same,) = server.ok("POST", "/api/v1/run", body)["goals"]
    assert (same["goal"], same["attempts"]) == (result["goal"], result["attempts"]), "it is done"
    (other,) = server.ok("POST", "/run", {**body, "options": {"again": True, "wait": True}})[
        "goals"
    ]
    assert other["goal"] != result["goal"]
    assert server.ok("GET", f"/run/{other['goal']}")["state"] == "complete"
    task = server.cli.store.one("SELECT max(id) FROM tasks")
    text = server.ok("POST", f"/tasks/{task}/context/preview", {})["text"]
    assert "trust:" in text, "use_context is the task's own from then on"
    assert server.ok("POST", "/run", {})["goals"] == [], "nothing is left to go on"


def test_the_strategy_changes_the_order_alone(place: Cli, server: Server) -> None:
    plan = str(place.repo.parent / "plan.toml")
    orders = {}
    for strategy in ("dag", "bfs"):
        done = place("run", "Once more", "--plan", plan, "--strategy", strategy, "--json")
        assert done.code == 5
        claims = [
            event["task"]
            for event in place("events", "--goal", str(done.result["goal"]), "--json").objects
            if event["type"] == "transition" and event["event"] == "claim"
        ]
        first = min(claims)
        orders[strategy] = [task - first for task in claims]
        plan_id = place("goal", "show", str(done.result["goal"]), "--json").result["plans"][0]
        shown = server.ok("GET", f"/context/schedule?plan_id={plan_id['plan']}&strategy={strategy}")
        assert [task - first for task in shown["order"]] == orders[strategy]
    assert orders == {"dag": [0, 1, 2, 3], "bfs": [0, 3, 1, 2]}
    assert place("run", "x", "--strategy", "dfs").code == 2


def test_a_server_that_is_told_to_end_gives_back_what_runs(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    model = write_script(
        tmp_path / "s.json", {"rules": [{"replies": [{**says("x"), "delay_s": 60}]}]}
    )
    cli = Cli(repo, environ={"HOLDFAST_MODEL": model})
    server = Server(cli)
    (going,) = server.ok("POST", "/run", {"title": "Wait for ever"})["goals"]
    assert going["running"]
    until(lambda: cli.store.rows("SELECT 1 FROM steps"), "the model was asked")
    server.close()
    assert cli.store.one("SELECT state FROM tasks") == "ready"


def test_the_same_by_the_library_with_the_documented_names(place: Cli) -> None:
    app = build(Settings(model=place.environ["HOLDFAST_MODEL"]), home=place.home, environ={})
    try:
        desk = app.desk
        assert desk.create_link(3, 1, "relates_to")["created"]
        assert [one["to_id"] for one in desk.list_links(3)["outgoing"]] == [1, 2]
        desk.delete_link(3, 1, "relates_to")
        assert [(one["kind"], one["title"]) for one in desk.list_dependencies(2)] == [
            ("requires", "find")
        ]
        assert desk.requires_dag_schedule()["order"] == []
        assert desk.requires_dag_schedule(1)["order"] == [1, 2, 3, 4]
        found = desk.gather_context(2, include_plan=True, include_deps=True, k=5, manual=None)
        assert found == desk.gather_context(2)
        kinds = {one["source_id"]: one["kind"] for one in found["sections"]}
        assert kinds["task 1"] == "requires"
        assert {"kind", "excerpt", "size", "source_id"} <= set(found["sections"][0])
        assert desk.gather_context(2, manual=["README.md"])["sha256"] != found["sha256"]
    finally:
        app.close()
