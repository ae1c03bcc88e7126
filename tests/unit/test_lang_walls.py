"""The outer wall, part by part: the real kernel on a thread that ends, and the filter by hand."""

import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from holdfast.lang import walls
from lang.confined import on_a_thread_of_its_own, refuse_call, refuse_landlock

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
THREAD, FORK = 0x3D0F00, 0x01200011


def verdict(host: walls.Machine, name: str, *arguments: int, arch: int | None = None) -> int:
    """What the assembled filter answers, by a small interpreter of classic BPF."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    number = {**host.allowed, **host.fatal}[name]
    return interpret(walls.assemble(host), number, arch or host.audit_arch, words)


def interpret(program: bytes, number: int, arch: int, arguments: list[int]) -> int:
    data = struct.pack("<IIQ6Q", number, arch, 0, *arguments)
    code = list(struct.iter_unpack("=HBBI", program))
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, k = code[at]
        at += 1
        match operation:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, k)[0]
            case 0x54:
                accumulator &= k
            case 0x15:
                at += if_true if accumulator == k else if_false
            case 0x35:
                at += if_true if accumulator >= k else if_false
            case 0x06:
                return k
            case other:
                raise AssertionError(f"unknown BPF operation {other:#x}")


@pytest.fixture(params=["x86_64", "aarch64"])
def host(request: pytest.FixtureRequest) -> walls.Machine:
    machine = walls.machine(request.param)
    assert machine is not None
    return machine


def test_the_filter_allows_what_it_lists_and_kills_what_no_program_needs(
    host: walls.Machine,
) -> None:
    checked = {"clone", "mmap", "mprotect", "prlimit64"}
    for name in set(host.allowed) - checked:
        assert verdict(host, name) == ALLOW, name
    for name in host.fatal:
        assert verdict(host, name) == KILL, name
    assert interpret(walls.assemble(host), 435, host.audit_arch, [0] * 6) == ERRNO | errno.ENOSYS


def test_a_call_in_no_list_is_refused_with_an_error(host: walls.Machine) -> None:
    known = {*host.allowed.values(), *host.fatal.values(), 435}
    strangers = [number for number in range(460) if number not in known]
    assert len(strangers) > 300
    for number in strangers:
        assert interpret(walls.assemble(host), number, host.audit_arch, [0] * 6) == (
            ERRNO | errno.EPERM
        )


def test_another_architecture_and_x32_are_killed(host: walls.Machine) -> None:
    assert verdict(host, "read", arch=0x40000003) == KILL
    program = walls.assemble(host)
    assert interpret(program, 0x40000000 | host.allowed["read"], host.audit_arch, [0] * 6) == KILL


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone", (THREAD,), ALLOW),
        ("clone", (THREAD | 0x400000,), ALLOW),
        ("clone", (FORK,), KILL),
        ("clone", (THREAD | 0x10000000,), KILL),  # CLONE_NEWUSER beside the flags of a thread
        ("clone", (THREAD | 1 << 40,), KILL),
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 7, 0x22), ERRNO | errno.EPERM),  # executable
        ("mmap", (0, 4096, 3, 0x21), ERRNO | errno.EPERM),  # shared: not counted by RLIMIT_DATA
        ("mmap", (0, 4096, 3, 0x122), ERRNO | errno.EPERM),  # grows down: not counted either
        ("mprotect", (0, 4096, 3), ALLOW),
        ("mprotect", (0, 4096, 5), ERRNO | errno.EPERM),
        ("prlimit64", (0, resource.RLIMIT_DATA), ALLOW),
        ("prlimit64", (0, resource.RLIMIT_CPU), ALLOW),
        ("prlimit64", (0, resource.RLIMIT_NOFILE), ERRNO | errno.EPERM),
        ("prlimit64", (1, resource.RLIMIT_DATA), ERRNO | errno.EPERM),
    ],
)
def test_an_argument_decides(
    host: walls.Machine, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert verdict(host, name, *arguments) == expected


def test_a_jump_never_leaves_the_filter(host: walls.Machine) -> None:
    code = list(struct.iter_unpack("=HBBI", walls.assemble(host)))
    for at, (operation, if_true, if_false, _) in enumerate(code):
        if operation in (0x15, 0x35):
            assert at + 1 + max(if_true, if_false) < len(code)
    assert code[-1][0] == 0x06


def test_an_unknown_architecture_has_no_table_and_no_level_by_accident() -> None:
    assert walls.machine("riscv64") is None
    assert walls.reaches("seccomp", "rlimits")
    assert walls.reaches("none", "none")
    assert not walls.reaches("rlimits", "seccomp")
    assert not walls.reaches("seccomp", "landlock+seccomp")


def test_the_probe_gives_a_reason_for_every_part_and_restricts_nothing() -> None:
    probe = walls.probe()
    assert probe.level in walls.LEVELS
    assert probe.reasons[0].startswith("rlimits")
    with open("/proc/self/status") as status:
        assert "Seccomp:\t0" in status.read() or probe.level in ("none", "rlimits")


def test_a_kernel_without_landlock_is_said_so_and_the_level_is_lower() -> None:
    def work() -> walls.Probe:
        refuse_landlock()
        return walls.probe()

    probe = on_a_thread_of_its_own(work)
    assert isinstance(probe, walls.Probe)
    assert probe.level == "seccomp"
    assert any(reason.startswith("landlock: ") for reason in probe.reasons)


def test_landlock_refuses_every_path_and_port_on_its_thread_only() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def work() -> list[int | None]:
        ctypes.CDLL(None).prctl(walls.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        walls.restrict_files()
        return [
            refusal(lambda: os.open("/etc/hostname", os.O_RDONLY)),
            refusal(lambda: os.listdir("/")),
            refusal(lambda: os.mkdir("/tmp/never-made")),
            refusal(lambda: os.open("/tmp", os.O_TMPFILE | os.O_RDWR)),
            refusal(lambda: socket.create_connection(("127.0.0.1", port), 1)),
            refusal(lambda: subprocess.run(["/bin/true"], check=True)),
        ]

    with listener:
        assert on_a_thread_of_its_own(work) == [errno.EACCES] * 6
        assert os.listdir("/")


def refusal(act: Callable[[], object]) -> int | None:
    try:
        act()
    except OSError as error:
        return error.errno
    return None


def test_seccomp_refuses_files_on_its_thread_only() -> None:
    host = walls.machine()
    assert host is not None

    def work() -> int | None:
        ctypes.CDLL(None).prctl(walls.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        walls.restrict_calls(walls.assemble(host))
        return refusal(lambda: os.open("/etc/hostname", os.O_RDONLY))

    assert on_a_thread_of_its_own(work) == errno.EPERM
    assert os.listdir("/")


def test_a_wall_that_the_kernel_refuses_is_an_error_and_never_passed_over() -> None:
    def work() -> object:
        refuse_landlock()
        walls.restrict_files()
        return None

    refused = on_a_thread_of_its_own(work)
    assert isinstance(refused, walls.WallError)
    # An empty filter is no program the kernel takes.
    empty = on_a_thread_of_its_own(lambda: walls.restrict_calls(b""))
    assert isinstance(empty, walls.WallError)


CHILD = """
import os, resource, sys, threading
from holdfast.lang import walls
walls.die_with_parent()
walls.drop_privileges()
"""


def child(body: str) -> subprocess.CompletedProcess[str]:
    script = CHILD + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30
    )


def test_memory_ends_at_the_allowance_above_the_baseline_and_not_before() -> None:
    done = child(
        """
        granted = bytearray(80_000_000)
        walls.limit_memory(90_000_000, 30_000_000)
        bytearray(20_000_000)
        try:
            bytearray(60_000_000)
        except MemoryError:
            sys.stdout.write("refused")
        """
    )
    assert (done.returncode, done.stdout) == (0, "refused"), done.stderr


def test_processor_time_ends_with_a_signal_of_its_own() -> None:
    done = child("walls.limit_time(0)\nwhile True: pass")
    assert done.returncode == -signal.SIGXCPU


def test_a_lowered_limit_cannot_be_raised_again_even_by_root() -> None:
    done = child(
        """
        walls.limit_memory(0, 500_000_000)
        for again in (
            lambda: walls.limit_memory(0, 900_000_000),
            lambda: resource.setrlimit(resource.RLIMIT_DATA, (900_000_000, 900_000_000)),
        ):
            try:
                again()
            except ValueError:
                sys.stdout.write("refused ")
        """
    )
    assert done.stdout == "refused refused ", done.stderr


def test_a_limit_that_is_not_final_can_be_lifted_and_set_anew_but_not_without_end() -> None:
    done = child(
        """
        walls.limit_memory(200_000_000, 10_000_000, final=False)
        walls.lift_memory()
        bytearray(40_000_000)
        walls.limit_memory(200_000_000, 20_000_000, final=False)
        walls.limit_time(5, final=False)
        walls.limit_time(9, final=False)
        try:
            walls.limit_memory(500_000_000, 10_000_000, final=False)
        except ValueError:
            sys.stdout.write("refused")
        """
    )
    assert done.stdout == "refused", done.stderr


def test_no_file_descriptor_can_be_made_and_none_written() -> None:
    done = child(
        """
        walls.limit_resources()
        try:
            os.pipe()
        except OSError as error:
            sys.stdout.write(str(error.errno))
            sys.stdout.flush()
        os._exit(0)
        """
    )
    assert done.stdout == str(errno.EMFILE), done.stderr


def test_a_process_that_enters_says_which_level_it_reached() -> None:
    done = child("probe = walls.enter()\nos.write(1, probe.level.encode())\nos._exit(0)")
    assert done.stdout == walls.probe().level, done.stderr


def test_a_part_that_was_built_but_leaves_a_door_open_does_not_count() -> None:
    reasons: list[str] = []
    assert not walls._stands("seccomp", reasons, lambda: None, shut=errno.EPERM)
    assert reasons == ["seccomp: built, but a file could still be opened"]

    def refused() -> None:
        raise walls.WallError(errno.ENOSYS, "the kernel has none")

    assert not walls._stands("landlock", reasons, refused)
    assert "the kernel has none" in reasons[1]
    assert walls._stands("rlimits", reasons, lambda: None)


def test_parts_that_a_machine_lacks_lower_the_level_of_the_probe() -> None:
    assert on_a_thread_of_its_own(lambda: under_refusal(444)) == "seccomp"
    seccomp = walls._SYS_SECCOMP[walls.machine().name]  # type: ignore[union-attr]
    assert on_a_thread_of_its_own(lambda: under_refusal(seccomp)) == "rlimits"


def under_refusal(number: int) -> str:
    refuse_call(number)
    return walls.probe().level


def test_the_private_memory_of_a_process_is_read_from_an_open_descriptor() -> None:
    statm = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        before = walls.data_bytes(statm)
        block = bytearray(50_000_000)
        after = walls.data_bytes(statm)
    finally:
        os.close(statm)
    assert len(block) <= after - before < 70_000_000


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A machine that may be given another name; what is remembered of it is forgotten."""
    caches = (walls.machine, walls.prepared_filter)
    for each in caches:
        each.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for each in caches:
        each.cache_clear()


def test_an_architecture_without_a_table_has_resource_limits_alone(
    strange: pytest.MonkeyPatch,
) -> None:
    strange.setattr(platform, "machine", lambda: "riscv64")
    assert walls.probe().level == "rlimits"
    assert walls.probe().reasons[-1] == "seccomp: no call table for riscv64"
    assert walls.prepared_filter() is None
    with pytest.raises(walls.WallError, match="riscv64"):
        walls.restrict_calls(b"")


def test_another_system_has_no_wall_at_all(strange: pytest.MonkeyPatch) -> None:
    strange.setattr(sys, "platform", "darwin")
    assert walls.probe() == walls.Probe("none", ("darwin has none of the parts of the wall",))
    assert walls.machine("x86_64") is None
    assert not walls.reaches(walls.probe().level, "rlimits")


def test_a_privilege_that_cannot_be_dropped_is_an_error() -> None:
    with pytest.raises(walls.WallError, match="nothing of the kind could not be set"):
        walls._prctl(9_999, 1, "nothing of the kind")
    assert on_a_thread_of_its_own(without_capset).errno == errno.ENOSYS  # type: ignore[attr-defined]  # a WallError


def without_capset() -> None:
    refuse_call(walls._SYS_CAPSET[platform.machine()])
    walls.drop_privileges()
