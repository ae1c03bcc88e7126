"""Gather: everything a task could be shown, read from the store and from the base tree.

Owns which sources there are; `agent.briefing` makes candidates of them and `context.bundle` decides
what fits. An attempt and `holdfast context preview` call the same function, so a preview is what an
attempt would get. Deterministic: the same store, tree and settings give the same surroundings.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.adapters.repository import Repository
from holdfast.agent.briefing import Conflict, Related, Surroundings, brief, reflection
from holdfast.agent.conversation import encode
from holdfast.context.bundle import INDEX_TOKENS_MIN, ORDERS, Bundle, Candidate, ItemKind, Rules
from holdfast.context.codemap import CodeMap, affordable, relevant
from holdfast.context.history import by_history, evidence
from holdfast.context.limits import conversation_tokens, resolved
from holdfast.context.retrieve import Hit, diverse, fused, newest, search, search_files
from holdfast.context.rules import rules_of
from holdfast.context.steer import Steer
from holdfast.context.tokens import count_tokens
from holdfast.context.words import terms
from holdfast.domain.model import Claim, ContextOptions
from holdfast.domain.ports import Progress
from holdfast.engine import Engine
from holdfast.engine import brief as store_bundle
from holdfast.engine.listing import plan_specs
from holdfast.engine.outlook import answer_of, last_report, neighbours
from holdfast.engine.rows import need
from holdfast.engine.steering import INDEX, IndexPage, get_index, steers_of
from holdfast.engine.undo import trees_to_undo
from holdfast.errors import Corrupt, Unavailable
from holdfast.store import Tx
from holdfast.worker.library import outlines, read_history, read_tree, redacted, shown_names
from holdfast.worker.merging import begin
from holdfast.worker.summaries import Summaries, summed_up
from holdfast.worker.workshop import Workshop

OUTPUTS_WEIGHED = 10  # beside those that are shown, so that near-duplicates can be passed over
FILES_SHOWN = 40
INDEXING_S = 1.0  # between two words about a tree that nobody has read before
FILES_EXPLAINED = 3
NEWEST = 2000  # outputs that are compared by meaning
NEAR_MIN = 0.3
_TASK = re.compile(r"Task (\d{1,18})")


async def briefed(
    shop: Workshop, claim: Claim, repository: Repository, git_dir: Path
) -> tuple[Bundle, str, Claim]:
    """A new take's bundle and base tree, recorded; the claim has the steps that briefing took."""
    base = await asyncio.to_thread(begin, shop, claim, repository, git_dir)

    def gathered(known: Summaries) -> Bundle:
        return gather(
            shop, claim, base.repository, base.tree, conflict=base.conflict, summaries=known
        )

    made, owned = await summed_up(shop, claim, gathered)
    commits = {"base_commit": claim.base_commit, "base_tree": base.tree}
    await shop.engine.acall(store_bundle, claim.fence, encode(made), **commits)
    return made, base.tree, owned


def gather(
    shop: Workshop,
    claim: Claim,
    repository: Repository,
    base_tree: str,
    *,
    options: ContextOptions | None = None,
    conflict: Conflict | None = None,
    summaries: Summaries | None = None,
) -> Bundle:
    """The bundle that a new take of this task begins with; `options` tries others than its own.

    `repository` holds the objects of `base_tree`, which has the markers of a `conflict` in it.
    `summaries` collects what a model is to be asked for; without it what is known is used.
    """
    if conflict is not None:
        claim = replace(claim, spec=replace(claim.spec, files=conflict.files))
    model = claim.spec.model or claim.model
    options = resolved(options or claim.spec.policy.context, shop.settings, model)
    made = brief(
        claim,
        replace(
            _surroundings(shop, claim, repository, base_tree, options, summaries),
            conflict=conflict,
        ),
        model=model,
        tools=[tool.spec for tool in shop.tools.values()],
        budget_tokens=options.tokens,
        conversation_tokens=conversation_tokens(model, shop.settings.conversation_tokens),
        counter=shop.settings.token_counter,
    )
    return replace(made, options=options, order=shop.settings.context_order)


def _surroundings(
    shop: Workshop,
    claim: Claim,
    repository: Repository,
    base_tree: str,
    options: ContextOptions,
    summaries: Summaries | None,
) -> Surroundings:
    before = None
    if claim.fence.take > 1:
        before = shop.engine.read(last_report, claim.fence.task, before=claim.fence.attempt)
    names = repository.files(base_tree)
    there = dict(zip([*shown_names(names, shop.redact), *names], names * 2, strict=True))

    def read(path: str) -> str | None:  # a name git has not told is never a question to git
        content = repository.blob(base_tree, there[path]) if path in there else None
        if content is None or b"\0" in content[:8192]:
            return None
        return shop.redact(content.decode(errors="replace"))

    def find(source: str) -> str | None:
        task = _TASK.fullmatch(source)
        return shop.engine.read(answer_of, int(task.group(1))) if task else read(source)

    rules = _rules(shop, claim, options, summaries)
    steers = _with_manual(
        shop.engine.read(steers_of, claim.fence.task, claim.fence.take), options.manual
    )
    hidden = frozenset(steer.source for steer in steers if steer.verb == "exclude")
    page = shop.engine.read(get_index, claim.fence.goal)
    asks = claim.spec.kind in ("agent", "model")
    rejected = shop.engine.read(_rejected, claim) if claim.spec.kind == "plan" else ()
    return Surroundings(
        files=redacted(names, shop.redact),
        read=read,
        related=[
            Related(
                key=other.key,
                kind=other.kind,
                title=other.title,
                state=other.state,
                answer=other.answer,
                id=other.id,
                outside=other.outside,
            )
            for other in shop.engine.read(neighbours, claim.fence.task)
        ],
        reflection=reflection(before) if before is not None else "",
        undo=_undo(shop, claim, repository, base_tree),
        rules=rules,
        steers=steers,
        more=[
            *_index(page, claim),
            *rejected,
            *(
                _found(shop, claim, repository, base_tree, rules.query, options.k, hidden)
                if rules.fenced
                else ()
            ),
        ],
        find=find,
        index_rules=rules_of(page.text) if asks and claim.spec.key != INDEX else "",
    )


def _undo(shop: Workshop, claim: Claim, repository: Repository, base_tree: str) -> tuple[str, ...]:
    """The trees that a compensating task walks back."""
    if claim.spec.kind != "compensate":
        return ()
    undo, commit, parent = shop.engine.read(trees_to_undo, claim.spec.compensates)
    gone = not shop.git_dir(claim.spec.compensates).is_dir()
    whole = repository.tree_of(parent) if parent else undo[-1]
    if gone or undo[0] != base_tree or undo[-1] != whole:
        # No step trees, or merged: its commit is the one step.
        return (repository.tree_of(commit), whole)
    return undo


def _with_manual(steers: Sequence[Steer], manual: Sequence[str]) -> list[Steer]:
    """What people decided, and above it what the run itself names."""
    named = [
        Steer(verb="pin", source=source, author="the run", reason="named by its options")
        for source in dict.fromkeys(manual)
    ]
    return [*(steer for steer in steers if steer.source not in manual), *named]


def _rules(
    shop: Workshop, claim: Claim, options: ContextOptions, summaries: Summaries | None
) -> Rules:
    spec = claim.spec
    query = f"{spec.title}\n{spec.prompt or claim.goal_text}\n{claim.goal_text}"
    fenced = options.mode == "curated" and spec.kind in ("agent", "model", "plan")
    without: set[ItemKind] = set()
    if not options.include_deps:
        without |= {"requires", "refers"}
    if not options.include_plan:
        without |= {"plan"}
    order = ORDERS[shop.settings.context_order]
    rules = Rules(order=order, fenced=fenced, query=query, without=frozenset(without))
    if options.summary != "model" or not fenced:
        return rules
    return replace(rules, summaries=summaries or Summaries(shop, claim))


def _index(page: IndexPage, claim: Claim) -> list[Candidate]:
    if not page.version:
        return []
    stale = "; stale: the plan has changed since" if page.stale else ""
    reason = f"version {page.version} by {page.author}, {page.sha256[:12]}{stale}"
    must = 0 if claim.spec.kind in ("shell", "compensate") else INDEX_TOKENS_MIN
    found = Candidate(
        source=INDEX, kind="index", reason=reason, text=page.text, cite=INDEX, must_tokens=must
    )
    return [found if page.text.strip() else replace(found, excluded="it is empty")]


def _rejected(tx: Tx, claim: Claim) -> list[Candidate]:
    """The newest plan that a person rejected, for whoever plans again."""
    plans = tx.all("plan.of_goal", goal=claim.fence.goal)
    rejected = [plan for plan in plans if plan["state"] == "rejected"]
    return [
        Candidate(
            source=f"Plan {plan['revision']}",
            kind="reflection",
            reason=f"a person rejected it: {plan['reason']}",
            text="\n".join(
                f"- {spec.key}: {spec.label} (after {', '.join(spec.requires) or 'nothing'})"
                for spec in plan_specs(tx, plan["id"])
            ),
        )
        for plan in rejected[-1:]
    ]


def _found(
    shop: Workshop,
    claim: Claim,
    repository: Repository,
    base_tree: str,
    query: str,
    k: int,
    hidden: Collection[str],
) -> list[Candidate]:
    """What retrieval finds; a search that fails is an item that says so. No map shows `hidden`."""
    found: list[Candidate] = []
    try:
        found += _outputs(shop, claim, query, k)
    except (Corrupt, Unavailable) as error:
        found.append(_failed("Past outputs", "retrieved", str(error)))
    try:
        found += _map(shop, claim, repository, base_tree, query, hidden)
    except (Corrupt, Unavailable) as error:
        found.append(_failed("Repository map", "map", str(error)))
    return found


def _outputs(shop: Workshop, claim: Claim, query: str, k: int) -> list[Candidate]:
    """Outputs and incidents of the same plan, near-duplicates last; linked tasks have their own."""
    hits, others = shop.engine.read(_hits, claim, query, k, by_meaning=shop.near is not None)
    by_source = {hit.source: hit for hit in (*others, *hits)}
    ranked = [(hit.source, hit.score) for hit in hits]
    near: Mapping[str, float] = {}
    failed = []
    if shop.near is not None and others:
        try:
            found = shop.near(query, [hit.body for hit in others])
            near = {hit.source: found[hit.body] for hit in others if found[hit.body] >= NEAR_MIN}
        except Unavailable as error:
            failed.append(_failed("By meaning", "retrieved", str(error)))
        closest = sorted(near, key=lambda source: (-near[source], source))[: OUTPUTS_WEIGHED + k]
        ranked = fused([source for source, _ in ranked], closest)
    chosen = diverse(
        ranked,
        {source: frozenset(terms(by_source[source].body)) for source, _ in ranked},
        len(ranked),
    )
    worth = dict(ranked)
    top = max(worth.values(), default=1.0)
    return [
        *failed,
        *(
            replace(
                _output(
                    by_source[source], rank, k, near.get(source), twin if alike > 0.9 else None
                ),
                worth=worth[source] / top,
            )
            for rank, (source, alike, twin) in enumerate(chosen)
        ),
    ]


def _hits(
    tx: Tx, claim: Claim, query: str, k: int, *, by_meaning: bool
) -> tuple[list[Hit], list[Hit]]:
    """What the words of the query find, and all that its meaning could."""
    task = claim.fence.task
    links = tx.all("link.of_task", id=task)
    without = {task, *(row["id"] for row in links if row["kind"] in ("requires", "refers"))}
    plan = need(tx, "task", id=task)["plan_id"]
    hits = search(tx, query, plan=plan, k=OUTPUTS_WEIGHED + k, without=without)
    return hits, newest(tx, plan=plan, k=NEWEST, without=without) if by_meaning else []


def _output(hit: Hit, rank: int, k: int, near: float | None, twin: str | None) -> Candidate:
    late = f"rank {rank + 1}, only {k} are shown" if rank >= k else ""
    words = f", BM25 {hit.score:.2f}" if hit.score else ""
    meaning = "" if near is None else f", similarity {near:.2f}"
    return Candidate(
        source=f"{hit.kind.capitalize()} {hit.source}",
        kind="retrieved",
        reason=f"{hit.kind} of {hit.title!r}{words}{meaning}",
        text=hit.body,
        cite=f"task {hit.task}",
        rank=rank,
        excluded=f"repeats {twin}" if twin else late,
    )


def _map(
    shop: Workshop,
    claim: Claim,
    repository: Repository,
    tree: str,
    query: str,
    hidden: Collection[str],
) -> list[Candidate]:
    code = read_tree(shop.engine, repository, tree, shop.redact, _indexing(shop, claim))
    reason = "files near the task and short, by words, definitions, mentions and earlier commits"
    try:
        known = read_history(shop.engine, repository, claim.base_commit, shop.redact)
    except Unavailable as error:
        known, reason = (), f"{reason} (none: {error})"
    scores = shop.engine.read(search_files, query, among=frozenset(code.blobs))
    found = relevant(code, scores, query, changed=by_history(known, query))
    ranked = [pair for pair in found if pair[0] not in hidden][:FILES_SHOWN]
    entries = shown(shop.engine, repository, code, ranked, query, shop.redact)
    if not entries:
        return []
    told = [evidence(known, query, path) for path, _ in entries[:FILES_EXPLAINED]]
    because = "; ".join(filter(None, told))
    return [
        Candidate(
            source="Repository map",
            kind="map",
            reason=f"{reason}; changed by commits that speak of it: {because}"
            if because
            else reason,
            text="\n".join(entry for _, entry in entries),
        )
    ]


def shown(
    engine: Engine,
    repository: Repository,
    code: CodeMap,
    ranked: Sequence[tuple[str, float]],
    query: str,
    redact: Callable[[str], str],
) -> list[tuple[str, str]]:
    """What a map says of files with their scores, as (path, entry), in the order of showing."""
    blob_of = dict(zip(code.paths, code.blobs, strict=True))
    contents = repository.contents([blob_of[path] for path, _ in ranked])
    files = [
        (path, blob_of[path], redact(content.decode(errors="replace")))
        for (path, _), content in zip(ranked, contents, strict=True)
    ]
    found = outlines(engine, files, query)
    entries = {path: f"{path}\n{_indented(lines)}" for path, lines in found.items()}
    # Counted in pieces whatever counts the budget: a map's order is no matter of a vocabulary.
    sizes = {path: count_tokens(entry) for path, entry in entries.items()}
    return [(path, entries[path]) for path in affordable(ranked, sizes)]


def _indexing(shop: Workshop, claim: Claim) -> Callable[[int, int], None]:
    """Says how far a tree is read, each time that `INDEXING_S` have passed without a word."""
    said, at = shop.clock.monotonic_s(), claim.fence

    def heard(read: int, of: int) -> None:
        nonlocal said
        if shop.clock.monotonic_s() - said >= INDEXING_S:
            said = shop.clock.monotonic_s()
            text = f"indexing {of:,} files: {read:,} read"
            what = Progress(
                kind="indexing", goal=at.goal, task=claim.spec.label, text=text, attempt=at.session
            )
            shop.sink.show(what)

    return heard


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _failed(source: str, kind: ItemKind, why: str) -> Candidate:
    failed = f"the search failed: {why}"
    return Candidate(source=source, kind=kind, reason="looked for", text="", excluded=failed)
