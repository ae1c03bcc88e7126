"""Which files a task is about: this engine, plain BM25, FTS5 alone, an aider-style map, random.

Two kinds of question, each asked of every system:

- `git`: real commits of a repository (`--repo`, default this one). Query: the commit's message;
  gold: the files it touched that its parent had; tree: the parent's.
- `docs`: a synthetic history made from a package's source (`--package`, default the standard
  library's `asyncio`, `email`, `http`, `json`, `logging`, `xml` and `unittest`): docstrings are
  taken out of the tree, and the first paragraph of one is the query; gold: the file it came from.

A system puts files in an order; all are rendered alike (name and outline of each file) until a
budget of 1k to 8k tokens is full, so recall compares the orders alone. Recall is the share of gold
files that made it, MRR the reciprocal rank of the first. The weights in context/codemap.py were set
on the even-numbered questions; what is printed is measured on the odd ones.

    make bench-setup                            # rank-bm25, bm25s and LlamaIndex, once
    .venv/bin/python benchmarks/context.py [--json] [--quick] [--repo DIR] [--only git,docs,speed]
"""

from __future__ import annotations

import ast
import random
import subprocess
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import TypeVar

from common import ROOT, Row, arguments, machine, note, peers_ready, show, spread, tidy
from context_rankers import Peer, aider_map, fts5_alone, plain_bm25, shuffled
from holdfast.adapters.clock import SystemClock
from holdfast.adapters.repository import Repository
from holdfast.app import build
from holdfast.app.context import preview
from holdfast.config import load
from holdfast.context.codemap import CodeMap, outline, relevant
from holdfast.context.history import by_history
from holdfast.context.retrieve import add_document, search_files
from holdfast.context.tokens import count_tokens
from holdfast.domain.model import GoalSpec, PlanSpec, TaskSpec
from holdfast.engine import Engine, submit
from holdfast.trace.redact import Redactor
from holdfast.worker.gather import FILES_SHOWN, shown
from holdfast.worker.library import read_history, read_tree

BUDGETS = (1000, 2000, 4000, 8000)
PACKAGES = ("asyncio", "email", "http", "json", "logging", "xml", "unittest")
PEERS = ("rank_bm25", "bm25s", "llamaindex")
HALVES = ("odd", "even")
GOLD_MAX = 10
T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """Questions of either kind at most; plans of 100 tasks and files for the timings; repeats."""

    packages: Sequence[str]
    commits: int
    docstrings: int
    plans: int
    files: int
    repeats: int


FULL = Sizes(packages=PACKAGES, commits=200, docstrings=60, plans=1000, files=5000, repeats=15)
QUICK = Sizes(packages=("json", "http"), commits=6, docstrings=6, plans=3, files=60, repeats=3)


@dataclass(frozen=True)
class Question:
    """What is asked of a tree, and the files that are the answer; `base` is the tree's commit."""

    query: str
    tree: str
    gold: frozenset[str]
    base: str = ""


Ranker = Callable[[str, Mapping[str, str]], list[str]]


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def commits(folder: Path, count: int, half: str) -> list[Question]:
    """Questions from a history; merges, roots and sweeping changes are left out.

    Odd or even is a commit by its id, and the lowest ids are asked about: so a question stays on
    its side, and mostly among those asked, however the history grows.
    """
    form = "--format=%x01%H %P%x00%B%x00"
    log = git(folder, "log", "--no-merges", "--no-renames", "--name-only", "--diff-filter=MD", form)
    told = []
    for record in log.split("\x01")[1:]:
        ids, message, names = record.split("\0")
        commit, _, parent = ids.partition(" ")
        gold = frozenset(names.strip().splitlines())
        mine = half in ("all", HALVES[1 - int(commit, 16) % 2])
        if mine and parent and 1 <= len(gold) <= GOLD_MAX:
            told.append((commit, message, parent, gold))
    return [
        Question(message, git(folder, "rev-parse", f"{parent}^{{tree}}").strip(), gold, parent)
        for _, message, parent, gold in sorted(told, key=itemgetter(0))[:count]
    ]


def sample(found: Sequence[T], count: int, half: str) -> list[T]:
    """Every second of what was found (the first is odd), or `all`; of those a fixed choice."""
    mine = found if half == "all" else found[HALVES.index(half) :: 2]
    chosen = random.Random(7).sample(range(len(mine)), min(count, len(mine)))
    return [mine[number] for number in sorted(chosen)]


def documented(folder: Path, packages: Sequence[Path], count: int, half: str) -> list[Question]:
    """A repository at `folder` of the packages' source without docstrings, and what they said."""
    said: list[tuple[str, str]] = []
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            if "test" in path.parts:
                continue
            name = path.relative_to(package.parent).as_posix()
            text, docs = bare(path.read_text(encoding="utf-8"))
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            said += [(name, doc) for doc in docs]
    tree = commit_all(folder)
    chosen = sample(sorted(said), count, half)
    return [Question(doc, tree, frozenset({name})) for name, doc in chosen]


def bare(text: str) -> tuple[str, list[str]]:
    """A module without its docstrings, and the first paragraphs of the telling ones."""
    lines, docs = text.splitlines(), []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            continue
        doc = ast.get_docstring(node)
        if not doc:
            continue
        where = node.body[0]
        for number in range(where.lineno - 1, where.end_lineno or where.lineno):
            lines[number] = ""
        first = doc.partition("\n\n")[0]
        if len(first.split()) >= 8:
            docs.append(first)
    return "\n".join(lines), docs


def commit_all(folder: Path) -> str:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all")
    return git(folder, "rev-parse", "HEAD^{tree}").strip()


class Shelf:
    """The texts of a repository's trees; a blob that many trees share is read once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._texts: dict[str, str] = {}

    def tree(self, tree: str) -> dict[str, str]:
        entries = [entry for entry in self._repository.entries(tree) if entry[2] <= 400_000]
        missing = sorted({blob for _, blob, _ in entries if blob not in self._texts})
        for blob, content in zip(missing, self._repository.contents(missing), strict=True):
            text = "" if b"\0" in content[:8192] else content.decode(errors="replace")
            self._texts[blob] = text
        return {name: self._texts[blob] for name, blob, _ in entries if self._texts[blob]}


def ours(engine: Engine, repository: Repository, question: Question) -> list[str]:
    """What an attempt's map is made of: as many files as one shows, as it shows them, and the rest.

    What a file takes to show is counted by this engine alone: the others rank and no more.
    """
    code, found = ranking(engine, repository, question)
    entries = shown(engine, repository, code, found[:FILES_SHOWN], question.query, str)
    return [path for path, _ in entries] + [path for path, _ in found[FILES_SHOWN:]]


def ranking(
    engine: Engine, repository: Repository, question: Question
) -> tuple[CodeMap, list[tuple[str, float]]]:
    """The map of the question's tree, and its files by how much the question is about them."""
    code = read_tree(engine, repository, question.tree, str)
    changed = by_history(read_history(engine, repository, question.base, str), question.query)
    scores = engine.read(search_files, question.query, among=frozenset(code.blobs))
    return code, relevant(code, scores, question.query, changed=changed)


def recalls(
    ranked: Sequence[str], gold: frozenset[str], size: Callable[[str], int]
) -> dict[int, float]:
    """The share of `gold` whose name and outline fit each budget, as every system is rendered."""
    found, used = dict.fromkeys(BUDGETS, 0.0), 0
    for path in ranked:
        used += size(path)
        if used > BUDGETS[-1]:
            break
        for budget in BUDGETS:
            found[budget] += path in gold and used <= budget
    return {budget: hits / len(gold) for budget, hits in found.items()}


def sizer(query: str, texts: Mapping[str, str]) -> Callable[[str], int]:
    """Tokens of a file as it is rendered, counted once whichever systems show it."""

    @cache
    def size(path: str) -> int:
        return 1 + count_tokens(f"{path}\n{outline(path, texts[path], query)}")

    return size


def quality(
    kind: str, folder: Path, questions: Sequence[Question], engine: Engine, systems: Sequence[str]
) -> Iterator[Row]:
    """Recall at each budget and MRR of every system over the same questions."""
    repository = Repository.open(folder)
    shelf = Shelf(repository)
    peers = {system: Peer(system) for system in systems if system in PEERS}
    recall: dict[tuple[str, int], list[float]] = defaultdict(list)
    reciprocal: dict[str, list[float]] = defaultdict(list)
    for number, question in enumerate(questions, 1):
        texts = shelf.tree(question.tree)
        gold = question.gold & texts.keys()
        if not gold:
            continue
        for each in peers.values():
            each.ask(question.query, texts)
        found = {
            system: rank(system, engine, repository, question, texts)
            for system in systems
            if system not in peers
        } | {system: each.answer() for system, each in peers.items()}
        size = sizer(question.query, texts)
        for system in systems:
            ranked = [path for path in found[system] if path in texts]
            for budget, share in recalls(ranked, gold, size).items():
                recall[system, budget].append(share)
            place = next((n for n, path in enumerate(ranked, 1) if path in gold), 0)
            reciprocal[system].append(1 / place if place else 0.0)
        if number % 5 == 0 or number == len(questions):
            means = ", ".join(f"{system} {mean(reciprocal[system]):.3f}" for system in systems)
            note(f"{number} of {len(questions)}: MRR {means}")
    for each in peers.values():
        each.close()
    prefix = "" if kind == "git" else f"{kind}_"
    for system in systems:
        for budget in BUDGETS:
            value = tidy(mean(recall[system, budget]))
            yield Row(system, f"{prefix}recall_{budget // 1000}k", value, "share")
        yield Row(system, f"{prefix}mrr", tidy(mean(reciprocal[system])), "share")


def rank(
    system: str,
    engine: Engine,
    repository: Repository,
    question: Question,
    texts: Mapping[str, str],
) -> list[str]:
    if system == "holdfast":
        return ours(engine, repository, question)
    rankers: dict[str, Ranker] = {
        "plain_bm25": plain_bm25,
        "fts5": fts5_alone,
        "aider_map": aider_map,
        "random": shuffled,
    }
    return rankers[system](question.query, texts)


def timings(sizes: Sizes, folder: Path) -> Iterator[Row]:
    yield from map_times(sizes, folder / "many")
    yield from bundle_times(sizes, folder / "store")


def map_times(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """Cold: a tree nobody has read, from git through the redactor into facts, index and map.

    Warm: the map and a ranking. Shown: with what a map says of the best files, which is read from
    git, and which every bundle with a map pays for; first: where these were never parsed before.
    """
    sources = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    folder.mkdir()
    size = 0
    for number, source in enumerate(sources[: sizes.files]):
        content = source.read_bytes()
        size += len(content)
        (folder / f"{number:05}_{source.name}").write_bytes(content)
    note(f"map of {min(sizes.files, len(sources))} files, {size / 1e6:.1f} MB …")
    tree = commit_all(folder)
    repository = Repository.open(folder)
    with tempfile.TemporaryDirectory() as home:
        engine = Engine(Path(home) / "holdfast.db", SystemClock())
        try:
            yield Row("holdfast", "map_files", min(sizes.files, len(sources)), "files")
            yield Row("holdfast", "map_cold_s", tidy(timed(cold, engine, repository, tree)), "s")
            question = Question("close the event loop after a timeout", tree, frozenset())
            for metric, work, times in (
                ("map_warm_ms", ranking, sizes.repeats),
                ("map_first_ms", ours, 1),
                ("map_shown_ms", ours, sizes.repeats),
            ):
                took = [1000 * timed(work, engine, repository, question) for _ in range(times)]
                yield spread("holdfast", metric, took, "ms")
        finally:
            engine.close()


def cold(engine: Engine, repository: Repository, tree: str) -> None:
    read_tree(engine, repository, tree, Redactor(guess=False).text)


def timed(work: Callable[..., object], *given: object) -> float:
    started = perf_counter()
    work(*given)
    return perf_counter() - started


def bundle_times(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """A whole preview, git included, and the commit that indexes one output."""
    folder.mkdir()
    (folder / "app.py").write_text("def main():\n    return 1\n")
    commit_all(folder)
    app = build(
        load(folder, flags={"context": "curated"}, environ={}),
        home=folder / ".holdfast",
        environ={},
    )
    try:
        repository = Repository.open(folder)
        head = repository.head() or ""
        goal = GoalSpec(
            text="work",
            repository=str(folder),
            base_commit=head,
            base_tree=repository.tree_of(head),
            model="scripted:none",
        )
        words = [f"topic{number}" for number in range(2000)]
        chance = random.Random(7)
        for plan in range(1, sizes.plans + 1):
            tasks = tuple(
                TaskSpec(key=f"t{number}", kind="model", prompt=" ".join(chance.sample(words, 8)))
                for number in range(100)
            )
            app.engine.call(submit, goal, PlanSpec(tasks=tasks))
            app.engine.call(outputs, plan, words, chance)
        note(f"{sizes.plans * 100} tasks and outputs …")
        asked = [100 * chance.randrange(sizes.plans) + 50 for _ in range(sizes.repeats)]
        preview(app, asked[0])
        took = [1000 * timed(preview, app, task) for task in asked]
        yield Row("holdfast", "bundle_tasks", sizes.plans * 100, "tasks")
        yield spread("holdfast", "bundle_p50_ms", took, "ms")
        updates = [
            1000
            * timed(
                lambda number: app.engine.call(
                    add_document,
                    "output",
                    f"1.{number}",
                    title="t",
                    body=" ".join(chance.sample(words, 300)),
                    task=1,
                    plan=1,
                ),
                number,
            )
            for number in range(10, 10 + sizes.repeats)
        ]
        yield spread("holdfast", "index_update_ms", updates, "ms")
    finally:
        app.close()


def outputs(tx, plan: int, words: Sequence[str], chance: random.Random) -> None:
    for number in range(100):
        task = (plan - 1) * 100 + number + 1
        body = " ".join(chance.sample(words, 60))
        add_document(tx, "output", f"{task}.1", title="t", body=body, task=task, plan=plan)


def main() -> None:
    chosen = arguments(
        __doc__,
        repo="the repository whose commits are asked about",
        package="folder of a package for the synthetic history",
        only="git, docs, speed, with commas",
        half="odd (default), even (what the weights were set on), or all",
    )
    where = machine()
    sizes = QUICK if chosen.quick else FULL
    only = (chosen.only or "git,docs,speed").split(",")
    rankers = ["holdfast", "plain_bm25", "fts5", "aider_map", "random"]
    if peers_ready():
        rankers += PEERS
    half = chosen.half or "odd"
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        engine = Engine(place / "holdfast.db", SystemClock())
        try:
            if "git" in only:
                repo = Path(chosen.repo or ROOT).resolve()
                questions = commits(repo, sizes.commits, half)
                note(f"{len(questions)} commits of {repo.name} …")
                rows += quality("git", repo, questions, engine, rankers)
            if "docs" in only:
                library = Path(sysconfig.get_path("stdlib"))
                packages = (
                    [Path(chosen.package)]
                    if chosen.package
                    else [library / name for name in sizes.packages]
                )
                (place / "docs").mkdir()
                questions = documented(place / "docs", packages, sizes.docstrings, half)
                note(f"{len(questions)} docstrings …")
                rows += quality("docs", place / "docs", questions, engine, rankers)
        finally:
            engine.close()
        if "speed" in only:
            rows += timings(sizes, place)
    show(rows, as_json=chosen.json, where=where)


if __name__ == "__main__":
    main()
