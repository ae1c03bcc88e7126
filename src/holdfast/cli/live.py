"""A goal as it runs, drawn in place on a terminal: plan, tasks, what each does, spend and checks.

Owns the terminal while a goal runs. It draws the store's own snapshot (`engine.board`) and keeps
nothing beside it but each attempt's newest progress, which is lossy: losing it loses a word on the
screen. Drawing has a thread of its own at a few frames a second, so neither a slow terminal nor a
stopped one (Ctrl-S) ever waits in the loop that holds a lease.

Invariants: a frame never has more lines than the screen nor wider ones; every text that came from
outside is made safe before it is measured; the cursor stays visible, below the frame, so that a
process that is killed leaves a usable terminal.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, OverflowMethod
from rich.control import Control
from rich.live import Live
from rich.text import Text

from holdfast.cli import look
from holdfast.domain.ports import Clock, Progress, Sink
from holdfast.engine import Engine
from holdfast.engine.board import Board, PlanLine, TaskLine, board, log_end
from holdfast.errors import HoldfastError

FRAMES_PER_S = 4
NOTES_MAX = 200
# Below these widths a line leaves out what matters least.
WIDE, NARROW = 72, 40
_KEPT = ("note", "model", "branch", "lease")
_OVER = ("succeeded", "cancelled")


class Tree:
    """A sink that draws. Outside `watching` it writes lines like any other."""

    def __init__(self, lines: Sink) -> None:
        self._lines = lines
        self._drawing: _Drawing | None = None

    def show(self, progress: Progress) -> None:
        """Never waits for the terminal while a goal is drawn."""
        if self._drawing is None:
            self._lines.show(progress)
        else:
            self._drawing.hear(progress)

    @contextmanager
    def watching(self, engine: Engine, clock: Clock, goal: int) -> Iterator[None]:
        """Draw a goal until the block ends; then nothing of the drawing is left."""
        self._drawing = _Drawing(engine, clock, goal)
        try:
            with self._drawing.live:
                yield
        finally:
            drawing, self._drawing = self._drawing, None
            drawing.say_the_rest()


class _Terminal(Console):
    """A terminal whose cursor stays where a person sees it."""

    def show_cursor(self, show: bool = True) -> bool:
        return False


class _Drawing:
    """One goal's picture. `hear` is called by the loop, everything else by the drawing thread."""

    def __init__(self, engine: Engine, clock: Clock, goal: int) -> None:
        self._engine, self._clock, self._goal = engine, clock, goal
        self._doing: dict[str, Progress] = {}
        self._notes: deque[Progress] = deque(maxlen=NOTES_MAX)
        self._board: Board | None = None
        self._terminal = _Terminal(
            file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=False
        )
        self._size = self._terminal.size
        self._ready = False  # a display asks for its first picture while it is being made
        self.live = Live(
            console=self._terminal,
            get_renderable=self._frame,
            refresh_per_second=FRAMES_PER_S,
            transient=True,
            redirect_stdout=False,
        )
        self._ready = True

    def hear(self, progress: Progress) -> None:
        if progress.kind in _KEPT:
            self._notes.append(progress)
        elif progress.attempt:
            self._doing[progress.attempt] = progress

    def say_the_rest(self) -> None:
        while self._notes:
            self._terminal.print(Text(look.note(self._notes.popleft())))

    def _frame(self) -> Group:
        """The picture as it is now. Called with the display's lock held, once a frame."""
        if not self._ready:
            return Group()
        if self._terminal.size != self._size:
            # What was drawn may be wrapped anew or cut by now; nobody knows where it lies.
            self._size = self._terminal.size
            self._terminal.control(Control.clear(), Control.home())
        if self.live.is_started:
            self.say_the_rest()
        self._look()
        if self._board is None:
            return Group()
        width, height = self._size
        lines = draw(
            self._board,
            self._doing,
            now_ms=self._clock.now_ms(),
            width=width,
            height=height - 1,
            ascii_only=self._terminal.options.ascii_only,
        )
        return Group(*lines, Text())

    def _look(self) -> None:
        """Read the store again if anything happened; a store in trouble leaves the old picture."""
        try:
            if self._board is None or self._engine.read(log_end) != self._board.seq:
                self._board = self._engine.read(board, self._goal)
        except HoldfastError:
            return


def draw(
    found: Board,
    doing: Mapping[str, Progress],
    *,
    now_ms: int,
    width: int,
    height: int,
    ascii_only: bool = False,
) -> list[Text]:
    """A goal as at most `height` lines of at most `width` cells. Pure.

    What does not fit is folded into one line that says what it hides; tasks that run come first,
    then those a person should look at, then what comes next, then what is done.
    """
    pen = _Pen(now_ms=now_ms, width=max(width, 8), ascii_only=ascii_only, doing=doing)
    plans = _live_plans(found)
    tasks = [task for task in found.tasks if task.plan in {plan.id for plan in plans}]
    lines = [*pen.goal(found, tasks), *(pen.plan(plan) for plan in plans)]
    shown = _chosen(tasks, pen, room=height - len(lines))
    for task in tasks:
        if task.id in shown:
            lines += [pen.task(task), *shown[task.id]]
    hidden = [task for task in tasks if task.id not in shown]
    if hidden:
        lines.append(pen.folded(hidden))
    return lines[: max(height, 1)]


def _chosen(tasks: Sequence[TaskLine], pen: _Pen, *, room: int) -> dict[int, list[Text]]:
    """The tasks that get a line, each with the details that fit, most urgent first.

    First the checks of what is over give way, then all but what a running task does, then tasks.
    """
    if len(tasks) <= room:
        details = {task.id: pen.details(task) for task in tasks}
        for spare in (
            details,
            {task.id: [] if task.state in _OVER else details[task.id] for task in tasks},
            {task.id: details[task.id][:1] if task.state == "running" else [] for task in tasks},
        ):
            if len(tasks) + sum(map(len, spare.values())) <= room:
                return spare
    left = room - 1  # the line that tells what is hidden
    chosen: dict[int, list[Text]] = {}
    for task in sorted(tasks, key=_urgency):
        if left < 1:
            break
        doing = pen.details(task)[:1] if task.state == "running" else []
        chosen[task.id] = doing if len(doing) < left else []
        left -= 1 + len(chosen[task.id])
    return chosen


def _urgency(task: TaskLine) -> tuple[int, int]:
    """Smallest first; of what is over, the newest."""
    order = ("running", "waiting", "failed", "ready", "blocked")
    if task.state in order:
        return order.index(task.state), task.id
    return len(order), -task.id


def _live_plans(found: Board) -> list[PlanLine]:
    """The newest plan, and older ones that still run."""
    return [plan for plan in found.plans if plan is found.plans[-1] or plan.state == "running"]


class _Pen:
    """Writes the lines of one frame: all of one width, moment and alphabet."""

    def __init__(
        self, *, now_ms: int, width: int, ascii_only: bool, doing: Mapping[str, Progress]
    ) -> None:
        self._now_ms, self._width, self._doing = now_ms, width, doing
        self._ascii = ascii_only

    def goal(self, found: Board, tasks: Sequence[TaskLine]) -> list[Text]:
        took = look.span((found.ended_ms or self._now_ms) - found.created_ms)
        name = [(f"goal {found.goal}", "bold"), (f"  {look.line(found.text)}", "")]
        lines = [self._row(name, [(found.state, look.style(found.state)), (f"  {took}", "dim")])]
        spent = found.usage
        usd = None if spent.cost_nusd is None else spent.cost_nusd / 1e9
        tokens_max = f" of {found.budget_tokens:,}" if found.budget_tokens else ""
        usd_max = f" of {look.money(found.budget_usd)}" if found.budget_usd else ""
        words = f"{look.count(spent.tokens, 'token')}{tokens_max}, {look.money(usd)}{usd_max}"
        done = sum(task.state == "succeeded" for task in tasks)
        progress = f"{done} of {look.count(len(tasks), 'task')} done"
        if len(progress) + len(words) + 1 > self._width:
            return [*lines, self._row([(progress, "")]), self._row([(words, "")])]
        return [*lines, self._row([(progress, "")], [(words, "")])]

    def plan(self, plan: PlanLine) -> Text:
        words = [("plan ", "bold"), (f"{plan.revision} ({look.line(plan.source)})", "")]
        if plan.reason:
            words.append((f"  {look.line(plan.reason)}", "dim"))
        return self._row(words, [(plan.state, look.style(plan.state))])

    def task(self, task: TaskLine) -> Text:
        mark = (f" {look.glyph(task.state, ascii_only=self._ascii)} ", look.style(task.state))
        left = [mark, (look.line(task.key), "bold" if task.state == "running" else "")]
        if self._width >= NARROW and task.title != task.key:
            left.append((f"  {look.line(task.title)}", "dim"))
        if task.state == "blocked" and task.blocked_by:
            left.append((f"  after {', '.join(map(look.line, task.blocked_by))}", "dim"))
        elif task.state not in ("running", *_OVER) and task.reason:
            left.append((f"  {look.line(task.reason)}", look.style(task.state)))
        return self._row(left, self._spent(task))

    def details(self, task: TaskLine) -> list[Text]:
        """What a running task is doing, and the checks of one that began, with their verdicts."""
        lines: list[Text] = []
        if task.state == "running":
            lines.append(self._row([("     ", ""), *self._activity(task)]))
        if task.attempt:
            lines += [self._check(command, verdict) for command, verdict in task.checks]
        return lines

    def _check(self, command: str, verdict: str) -> Text:
        mark = look.glyph(verdict, ascii_only=self._ascii)
        words = (f"check {look.line(command)}", "" if verdict else "dim")
        return self._row([(f"     {mark} ", look.style(verdict)), words])

    def folded(self, hidden: Sequence[TaskLine]) -> Text:
        states = Counter(task.state for task in hidden)
        words = ", ".join(f"{number} {state}" for state, number in states.items())
        more = ".." if self._ascii else "…"
        return self._row([(f" {more} {len(hidden)} more: {words}", "dim")])

    def _activity(self, task: TaskLine) -> list[tuple[str, str]]:
        now = self._doing.get(f"{task.id}.{task.attempt}")
        tier = "" if task.tier == "unknown" else f" ({task.tier})"
        model = look.line(f"{task.model}{tier}")
        if now is None:
            return [(f"attempt {task.id}.{task.attempt} of {task.worker}  {model}", "dim")]
        turn = f"turn {now.turn} of {task.turns_max}  " if now.turn else ""
        verb = {"asking": "asks ", "calling": "calls ", "checking": "checks "}.get(now.kind, "")
        text = now.text.removeprefix(f"t{now.turn:03} ") if now.turn else now.text
        words = [(turn, "cyan"), (verb + look.line(text), "" if verb else "dim")]
        if self._width >= WIDE:
            words.append((tier if now.kind == "asking" else f"  {model}", "dim"))
        return words

    def _spent(self, task: TaskLine) -> list[tuple[str, str]]:
        """Attempt, tokens, money and time, as many as the width allows."""
        if not task.attempt:
            return []
        since = 0 if task.open_ms is None else self._now_ms - task.open_ms
        took = look.span(task.worked_ms + max(since, 0))
        if self._width < NARROW:
            return [(f" {took}", "dim")]
        words = f"  {took:>7}"
        if self._width >= WIDE:
            spent = f"{task.tokens:>9,} tok  {look.cash(task.cost_usd):>9}"
            words = f"  #{task.attempt}  {spent}{words}"
        return [(words, "dim")]

    def _row(self, left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]] = ()) -> Text:
        """One line: the left part gives way to the right one, and both to the width."""
        begin, end = Text.assemble(*left), Text.assemble(*right)
        if end.cell_len > self._width // 2 and self._width < NARROW:
            end = Text()
        overflow: OverflowMethod = "crop" if self._ascii else "ellipsis"
        begin.truncate(self._width - end.cell_len, overflow=overflow, pad=bool(end))
        line = begin + end
        line.no_wrap = True
        line.truncate(self._width)
        return line
