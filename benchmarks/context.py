"""Which files a task is about: this engine, plain BM25, FTS5 alone, an aider-style map, random.

Two kinds of question, each asked of every system:

- `git`: real commits of a repository (`--repo`, default this one). Query: the commit's message;
  gold: the files it touched that its parent had; tree: the parent's.
- `docs`: a synthetic history made from a package's source (`--package`, default the standard
  library's `asyncio`, `email`, `http`, `json`, `logging`, `xml` and `unittest`): docstrings are
  taken out of the tree, and the first paragraph of one is the query; gold: the file it came from.

A system ranks files; all rankings are rendered alike (name and outline of each file) until a budget
of 1k to 8k tokens is full, so recall compares ranking alone. Recall is the share of gold files that
made it, MRR the reciprocal rank of the first. The weights in context/codemap.py were set on the
even-numbered questions; what is printed is measured on the odd ones.

    make bench-setup                            # rank-bm25, bm25s and LlamaIndex, once
    .venv/bin/python benchmarks/context.py [--json] [--quick] [--repo DIR] [--only git,docs,speed]
"""

from __future__ import annotations

import ast
import random
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter

from common import ROOT, Row, arguments, machine, note, peers_ready, show, spread, tidy
from context_rankers import aider_map, fts5_alone, peer, plain_bm25, shuffled
from holdfast.adapters.clock import SystemClock
from holdfast.adapters.repository import Repository
from holdfast.app import build
from holdfast.app.context import preview
from holdfast.config import load
from holdfast.context.codemap import outline, relevant
from holdfast.context.retrieve import add_document, search_files
from holdfast.context.tokens import count_tokens
from holdfast.domain.model import GoalSpec, PlanSpec, TaskSpec
from holdfast.engine import Engine, submit
from holdfast.worker.library import read_tree

BUDGETS = (1000, 2000, 4000, 8000)
PACKAGES = ("asyncio", "email", "http", "json", "logging", "xml", "unittest")
PEERS = ("rank_bm25", "bm25s", "llamaindex")


@dataclass(frozen=True)
class Sizes:
    """Packages and questions, plans of 100 tasks and files for the timings, and repeats."""

    packages: Sequence[str]
    questions: int
    plans: int
    files: int
    repeats: int


FULL = Sizes(packages=PACKAGES, questions=80, plans=1000, files=5000, repeats=15)
QUICK = Sizes(packages=("json", "http"), questions=6, plans=3, files=60, repeats=3)


@dataclass(frozen=True)
class Question:
    """What is asked of a tree, and the files that are the answer."""

    query: str
    tree: str
    gold: frozenset[str]


Ranker = Callable[[str, Mapping[str, str]], list[str]]


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def commits(folder: Path, count: int) -> list[Question]:
    """Questions from real commits, newest first; merges, roots and sweeping changes left out."""
    found = []
    for commit in git(folder, "rev-list", "--no-merges", "HEAD").split():
        parents = git(folder, "rev-list", "--parents", "-n1", commit).split()[1:]
        if not parents:
            continue
        touched = git(folder, "diff", "--name-only", "--diff-filter=MD", parents[0], commit)
        gold = frozenset(touched.splitlines())
        if 1 <= len(gold) <= 10:
            message = git(folder, "show", "-s", "--format=%B", commit)
            tree = git(folder, "rev-parse", f"{parents[0]}^{{tree}}").strip()
            found.append(Question(message, tree, gold))
        if len(found) == 2 * count:
            break
    return found


def documented(folder: Path, packages: Sequence[Path], count: int) -> list[Question]:
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
    chosen = random.Random(7).sample(sorted(said), min(2 * count, len(said)))
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


def texts_of(repository: Repository, tree: str) -> dict[str, str]:
    entries = [entry for entry in repository.entries(tree) if entry[2] <= 400_000]
    contents = repository.contents([blob for _, blob, _ in entries])
    return {
        name: content.decode(errors="replace")
        for (name, _, _), content in zip(entries, contents, strict=True)
        if b"\0" not in content[:8192]
    }


def ours(engine: Engine, repository: Repository, question: Question) -> list[str]:
    """What an attempt's map is made of."""
    code = read_tree(engine, repository, question.tree, str)
    scores = engine.read(search_files, question.query, among=frozenset(code.blobs))
    found = relevant(code, scores, question.query)
    return [path for path, _ in found]


def shown(ranked: Sequence[str], texts: Mapping[str, str], query: str, budget: int) -> set[str]:
    """The files whose name and outline fit, in order, as every system is rendered here."""
    found, used = set(), 0
    for path in ranked:
        used += 1 + count_tokens(f"{path}\n{outline(path, texts[path], query)}")
        if used > budget:
            break
        found.add(path)
    return found


def quality(
    kind: str, folder: Path, questions: Sequence[Question], engine: Engine, rankers: Sequence[str]
) -> Iterator[Row]:
    """Recall at each budget and MRR of every system over the same questions."""
    repository = Repository.open(folder)
    known: dict[str, dict[str, str]] = {}
    for question in questions:
        known.setdefault(question.tree, texts_of(repository, question.tree))
    for system in rankers:
        rank = ranking(system, engine, repository)
        recall: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
        reciprocal = []
        for question in questions:
            texts = known[question.tree]
            gold = question.gold & texts.keys()
            if not gold:
                continue
            ranked = [path for path in rank(question, texts) if path in texts]
            for budget in BUDGETS:
                got = shown(ranked, texts, question.query, budget)
                recall[budget].append(len(got & gold) / len(gold))
            place = next((n for n, path in enumerate(ranked, 1) if path in gold), 0)
            reciprocal.append(1 / place if place else 0.0)
        prefix = "" if kind == "git" else f"{kind}_"
        for budget, values in recall.items():
            yield Row(system, f"{prefix}recall_{budget // 1000}k", tidy(mean(values)), "share")
        yield Row(system, f"{prefix}mrr", tidy(mean(reciprocal)), "share")


def ranking(
    system: str, engine: Engine, repository: Repository
) -> Callable[[Question, Mapping[str, str]], list[str]]:
    if system == "holdfast":
        return lambda question, texts: ours(engine, repository, question)
    if system in PEERS:
        return lambda question, texts: peer(system, question.query, texts)
    rankers: dict[str, Ranker] = {
        "plain_bm25": plain_bm25,
        "fts5": fts5_alone,
        "aider_map": aider_map,
        "random": shuffled,
    }
    return lambda question, texts: rankers[system](question.query, texts)


def timings(sizes: Sizes, folder: Path) -> Iterator[Row]:
    yield from map_times(sizes, folder / "many")
    yield from bundle_times(sizes, folder / "store")


def map_times(sizes: Sizes, folder: Path) -> Iterator[Row]:
    """Cold: a tree nobody has read, out of git into facts, index and map. Warm: map and ranking."""
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
            warm = [1000 * timed(ours, engine, repository, question) for _ in range(sizes.repeats)]
            yield spread("holdfast", "map_warm_ms", warm, "ms")
        finally:
            engine.close()


def cold(engine: Engine, repository: Repository, tree: str) -> None:
    read_tree(engine, repository, tree, str)


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
        half="odd (printed numbers) or even (what the weights were set on)",
    )
    where = machine()
    sizes = QUICK if chosen.quick else FULL
    only = (chosen.only or "git,docs,speed").split(",")
    rankers = ["holdfast", "plain_bm25", "fts5", "aider_map", "random"]
    if peers_ready():
        rankers += PEERS
    offset = 0 if chosen.half == "even" else 1
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        engine = Engine(place / "holdfast.db", SystemClock())
        try:
            if "git" in only:
                repo = Path(chosen.repo or ROOT).resolve()
                asked = commits(repo, sizes.questions)[offset::2]
                note(f"{len(asked)} commits of {repo.name} …")
                rows += quality("git", repo, asked, engine, rankers)
            if "docs" in only:
                library = Path(sysconfig.get_path("stdlib"))
                packages = (
                    [Path(chosen.package)]
                    if chosen.package
                    else [library / name for name in sizes.packages]
                )
                (place / "docs").mkdir()
                asked = documented(place / "docs", packages, sizes.questions)[offset::2]
                note(f"{len(asked)} docstrings …")
                rows += quality("docs", place / "docs", asked, engine, rankers)
        finally:
            engine.close()
        if "speed" in only:
            rows += timings(sizes, place)
    show(rows, as_json=chosen.json, where=where)


if __name__ == "__main__":
    main()
