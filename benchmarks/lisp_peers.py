"""The programs of lisp.py in the peers: pydantic-monty, smolagents, quickjs and CPython itself."""

import json
import os
import subprocess
import sys
import time
from functools import partial

import pydantic_monty
import quickjs
from smolagents.local_python_executor import LocalPythonExecutor

from measure import Row, row, timed

ROWS = [
    {"id": i, "region": f"r{i % 7}", "amount": i * 3 % 101, "active": i % 3 != 0}
    for i in range(1000)
]
PIPELINE = """
groups = {}
for row in rows:
    if row["active"]:
        groups.setdefault(row["region"], []).append(row["amount"])
totals = {region: sum(amounts) for region, amounts in groups.items()}
totals
"""
LOOP = """
total = 0
for i in range(1000000):
    total = total + i
total
"""
FIB = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(22)
"""
HOST = """
for i in range(1000):
    echo(i)
"""
JS = {
    "pipeline_ms": """(() => { const groups = {}; for (const row of rows) if (row.active)
        (groups[row.region] = groups[row.region] || []).push(row.amount);
        const totals = {}; for (const [k, v] of Object.entries(groups))
        totals[k] = v.reduce((a, b) => a + b, 0); return JSON.stringify(totals) })()""",
    "loop_ms": "(() => { let t = 0; for (let i = 0; i < 1000000; i++) t = t + i; return t })()",
    "fib_ms": "(() => { function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }"
    " return fib(22) })()",
}
PROGRAMS = {"pipeline_ms": PIPELINE, "loop_ms": LOOP, "fib_ms": FIB}
ROUNDS = {"pipeline_ms": 50, "loop_ms": 5, "fib_ms": 10}


def main() -> None:
    rows = [*cpython(), *monty(), *smolagents(), *quick()]
    sys.stdout.write(json.dumps(rows))


def cpython() -> list[Row]:
    rows = []
    for metric, source in PROGRAMS.items():
        code = compile(source, metric, "exec")
        rows.append(
            timed(
                "cpython",
                metric,
                lambda code=code: exec(code, {"rows": ROWS}),
                rounds=ROUNDS[metric],
            )
        )
    start = [sys.executable, "-I", "-c", "1 + 2"]
    rows.append(timed("cpython", "cold_start_ms", lambda: subprocess.run(start), rounds=10))
    return rows


def monty() -> list[Row]:
    def cold() -> None:
        with pydantic_monty.Monty() as pool, pool.checkout() as session:
            session.feed_run("1 + 2")

    rows = [timed("monty", "cold_start_ms", cold, rounds=10)]
    with pydantic_monty.Monty() as pool:

        def fresh() -> None:
            with pool.checkout() as session:
                session.feed_run("1 + 2")

        rows.append(timed("monty", "fresh_call_ms", fresh, rounds=50))
        with pool.checkout(limits={"max_suspensions": 1_000_000}) as session:
            session.feed_run("rows = given", inputs={"given": ROWS})
            rows.append(
                timed("monty", "warm_call_ms", lambda: session.feed_run("1 + 2"), rounds=200)
            )
            for metric, source in PROGRAMS.items():
                rows.append(
                    timed(
                        "monty", metric, lambda s=source: session.feed_run(s), rounds=ROUNDS[metric]
                    )
                )
            tools = {"echo": lambda x: x}
            work = partial(session.feed_run, HOST, external_lookup=tools)
            rows.append(timed("monty", "host_call_ms", work, rounds=10, per=1000))
        rows.append(row("monty", "resume_ms", [monty_resume(pool) for _ in range(10)]))
    return rows


def monty_resume(pool: pydantic_monty.Monty) -> float:
    """Stop a program of 50 calls at its 25th, dump it, load it elsewhere: the time to its 26th."""
    source = "for i in range(50):\n    echo(i)\n"
    with pool.checkout() as session:
        snapshot = session.feed_start(source)
        for _ in range(25):
            while snapshot.__class__.__name__ == "NameLookupSnapshot":
                snapshot = snapshot.resume_auto()
            snapshot = snapshot.resume({"return_value": 1})
        state = snapshot.dump()
    with pool.checkout() as session:
        start = time.perf_counter()
        session.load_snapshot(state).resume({"return_value": 1})
        return (time.perf_counter() - start) * 1e3


def smolagents() -> list[Row]:
    def executor() -> LocalPythonExecutor:
        made = LocalPythonExecutor([], additional_functions={"echo": lambda x: x})
        made.send_tools({})
        made.state["rows"] = ROWS
        return made

    rows = []
    for metric, source in PROGRAMS.items():
        local = executor()
        try:
            work, rounds = partial(local, source), 3 if metric != "pipeline_ms" else 20
            rows.append(timed("smolagents", metric, work, rounds=rounds))
        except Exception as error:
            note = (
                "over its cap"
                if "operations" in str(error) or "iterations" in str(error)
                else "fails"
            )
            rows.append(
                {
                    "system": "smolagents",
                    "metric": metric,
                    "value": None,
                    "unit": "ms",
                    "note": note,
                }
            )
    local = executor()
    rows.append(timed("smolagents", "warm_call_ms", lambda: local("1 + 2"), rounds=100))
    rows.append(timed("smolagents", "host_call_ms", lambda: local(HOST), rounds=5, per=1000))
    return rows


def quick() -> list[Row]:
    context = quickjs.Context()
    context.add_callable("echo", lambda x: x)
    context.eval(f"globalThis.rows = {json.dumps(ROWS)}; 0")
    rows = [
        timed("quickjs", metric, lambda s=source: context.eval(s), rounds=ROUNDS[metric])
        for metric, source in JS.items()
    ]
    rows.append(timed("quickjs", "warm_call_ms", lambda: context.eval("1 + 2"), rounds=200))
    rows.append(
        timed("quickjs", "fresh_call_ms", lambda: quickjs.Context().eval("1 + 2"), rounds=50)
    )
    host = "for (let i = 0; i < 1000; i++) echo(i); 0"
    rows.append(timed("quickjs", "host_call_ms", lambda: context.eval(host), rounds=10, per=1000))
    return rows


if __name__ == "__main__":
    os.chdir("/")
    main()
