"""The outer wall: what the kernel refuses to a process, whatever the Python inside it has become.

Owns resource limits, privilege drop, Landlock and seccomp, applied to the calling thread through
ctypes, and the probe that says which level this machine can reach. It starts no process and decides
no policy: `pool` demands a level, `worker` walks through the doors.

The inner wall (the meter) keeps honest programs honest. This one assumes that the inner wall fell
and that the attacker runs Python or machine code in the worker: there is no file to open, no
socket to make, no program to start, no process to signal, no page to make executable, and memory
and processor time end at a number. What is left is the one channel to the parent.

Levels, each including the ones before: `rlimits` (limits, no capabilities, no new privileges),
`seccomp` (an allow-list of system calls), `landlock+seccomp`. A level is reached only if every
step of it succeeded; a kernel or architecture that lacks a step is said so, never passed over.
Nothing here can be undone by the process that did it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

Level = Literal["none", "rlimits", "seccomp", "landlock+seccomp"]
LEVELS: tuple[Level, ...] = ("none", "rlimits", "seccomp", "landlock+seccomp")

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_CAPBSET_DROP = 24
SIGKILL = 9
REUSE_FACTOR = 4


class WallError(OSError):
    """The kernel refused to build a part of the wall; the process must not run a program."""


@dataclass(frozen=True)
class Probe:
    """The level this machine can reach and, for each part, why it can or cannot."""

    level: Level
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The system calls of one architecture by name: those that pass and those that kill."""

    name: str
    audit_arch: int
    allowed: dict[str, int]
    fatal: dict[str, int]


# name, x86-64, aarch64; source: asm/unistd_64.h and asm-generic/unistd.h of Linux 6.12.
# What a warm interpreter with threads needs; a call that is in neither table gets EPERM.
_ALLOWED = """
read 0 63|write 1 64|recvfrom 45 207|sendto 44 206|futex 202 98|mmap 9 222|munmap 11 215
mremap 25 216|brk 12 214|mprotect 10 226|madvise 28 233|clone 56 220|prlimit64 302 261
clock_gettime 228 113|getrandom 318 278|close 3 57|pread64 17 67|poll 7 -|ppoll 271 73
set_robust_list 273 99|rseq 334 293|membarrier 324 283|exit 60 93|exit_group 231 94
sched_yield 24 124|sched_getaffinity 204 123|clock_getres 229 114|clock_nanosleep 230 115
nanosleep 35 101|gettimeofday 96 169|time 201 -|getpid 39 172|gettid 186 178|getrusage 98 165
rt_sigreturn 15 139|rt_sigprocmask 14 135|restart_syscall 219 128
"""

# No honest program comes near these: the process ends at once with SIGSYS.
_FATAL = """
execve 59 221|execveat 322 281|fork 57 -|vfork 58 -|ptrace 101 117|kill 62 129|tkill 200 130
rt_sigqueueinfo 129 138|pidfd_send_signal 424 424|pidfd_getfd 438 438|pidfd_open 434 434
process_vm_readv 310 270|process_vm_writev 311 271|socket 41 198|socketpair 53 199
connect 42 203|bind 49 200|sendmsg 46 211|recvmsg 47 212|bpf 321 280|perf_event_open 298 241
keyctl 250 219|add_key 248 217|userfaultfd 323 282|io_uring_setup 425 425|memfd_create 319 279
open_by_handle_at 304 265|mount 165 40|umount2 166 39|unshare 272 97|setns 308 268
chroot 161 51|pivot_root 155 41|init_module 175 105|finit_module 313 273|kexec_load 246 104
"""
_CLONE3 = 435

# What pthread_create of glibc and of musl pass to clone; any other set of flags makes a process.
_THREAD_FLAGS = (0x3D0F00, 0x7D0F00)
_MAP_KIND, _MAP_PRIVATE, _PROT_EXEC = 0x0F | 0x0100, 0x02, 0x04  # with MAP_GROWSDOWN

# Without capabilities a limit only falls; these two do when a program's inputs are in.
_LOWERED = (resource.RLIMIT_CPU, resource.RLIMIT_DATA)

_RET_KILL, _RET_ERRNO, _RET_ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LD_W_ABS, _AND_K, _JEQ, _JGE, _RET = 0x20, 0x54, 0x15, 0x35, 0x06
_NR_AT, _ARCH_AT, _ARGS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_SECCOMP_SET_FILTER, _SECCOMP_ACTION_AVAIL = 1, 2

_SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_RESTRICT = 444, 446
_CAPABILITY_V3 = 0x20080522

Instruction = tuple[int, int, int, int]


@cache
def machine(name: str = "") -> Machine | None:
    """The call table of an architecture (default: this one); None if its table is not known."""
    known = {"x86_64": (1, 0xC000003E), "aarch64": (2, 0xC00000B7)}
    name = name or platform.machine()
    if name not in known or sys.platform != "linux" or struct.calcsize("P") != 8:
        return None
    column, audit_arch = known[name]
    return Machine(
        name=name,
        audit_arch=audit_arch,
        allowed=_numbers(_ALLOWED, column),
        fatal=_numbers(_FATAL, column),
    )


def probe() -> Probe:
    """Which level a child of this process can reach. Asks the kernel, restricts nothing."""
    if sys.platform != "linux":
        return Probe("none", (f"{sys.platform} has none of the parts of the wall",))
    reasons = ["rlimits: yes"]
    host = machine()
    if host is None:
        reasons.append(f"seccomp: no call table for {platform.machine()}")
        return Probe("rlimits", tuple(reasons))
    action = ctypes.c_uint32(_RET_KILL)
    if _syscall(_SYS_SECCOMP[host.name], _SECCOMP_ACTION_AVAIL, 0, ctypes.byref(action)) != 0:
        reasons.append(f"seccomp: {_why()}")
        return Probe("rlimits", tuple(reasons))
    reasons.append(f"seccomp: yes ({host.name})")
    version = landlock_version()
    if version < 1:
        reasons.append(f"landlock: {_why()}")
        return Probe("seccomp", tuple(reasons))
    reasons.append(f"landlock: ABI {version}")
    return Probe("landlock+seccomp", tuple(reasons))


def enter() -> Probe:  # pragma: no cover  # whoever enters can save no measurement
    """Build every part this machine has around the calling thread, and say what now stands.

    A part counts only when its door was tried and found shut. One thread may enter once; memory and
    processor time are limited later, by `limit_memory` and `limit_time`.
    """
    reasons: list[str] = []
    if not _stands("rlimits", reasons, drop_privileges):
        return Probe("none", tuple(reasons))
    filed = _stands("landlock", reasons, restrict_files, shut=errno.EACCES)
    if not _stands("rlimits", reasons, limit_resources):
        return Probe("none", tuple(reasons))
    program = prepared_filter()
    if program is None:
        reasons.append(f"seccomp: no call table for {platform.machine()}")
        return Probe("rlimits", tuple(reasons))
    if not _stands("seccomp", reasons, lambda: restrict_calls(program), shut=errno.EPERM):
        return Probe("rlimits", tuple(reasons))
    return Probe("landlock+seccomp" if filed else "seccomp", tuple(reasons))


def reaches(level: Level, demanded: Level) -> bool:
    """Whether a wall of `level` satisfies a policy that demands `demanded`."""
    return LEVELS.index(level) >= LEVELS.index(demanded)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies; call first thing after a fork."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL, "parent death signal")


def drop_privileges() -> None:
    """Give up every capability for good; no program started from here could regain one."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1, "no_new_privs")
    prctl = _libc().prctl
    for capability in range(64):
        if prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # past the last capability, or not allowed to drop what we do not hold
    host = platform.machine()
    if host in _SYS_CAPSET:
        header = struct.pack("=Ii", _CAPABILITY_V3, 0)
        if _syscall(_SYS_CAPSET[host], header, bytes(24)) != 0:
            raise WallError(ctypes.get_errno(), "capset failed")
    _prctl(PR_SET_DUMPABLE, 0, "dumpable")


def limit_resources() -> None:  # pragma: no cover  # whoever enters can save no measurement
    """No core dumps, written files, new descriptors, locked memory or message queues."""
    for kind in (
        resource.RLIMIT_CORE,
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_NOFILE,
        resource.RLIMIT_MEMLOCK,
        resource.RLIMIT_MSGQUEUE,
    ):
        resource.setrlimit(kind, (0, 0))


def limit_time(cpu_s: int, *, final: bool = True) -> None:
    """End the process with SIGXCPU once it has used `cpu_s` more seconds of processor time.

    A limit that is not final can be set anew by the same process.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    number = int(used.ru_utime + used.ru_stime) + 1 + cpu_s
    hard = number + 1 if final else resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (number, hard))


def limit_memory(baseline_bytes: int, allowance_bytes: int, *, final: bool = True) -> None:
    """Refuse private memory beyond `allowance_bytes` above what the process had at the baseline.

    A limit that is not final can be set anew, up to REUSE_FACTOR allowances above the first
    baseline; ValueError beyond that.
    """
    number = baseline_bytes + allowance_bytes
    before = resource.getrlimit(resource.RLIMIT_DATA)[1]
    hard = number if final else number + REUSE_FACTOR * allowance_bytes
    if before != resource.RLIM_INFINITY:
        hard = min(hard, before)
    resource.setrlimit(resource.RLIMIT_DATA, (number, hard))


def lift_memory() -> None:
    """Give back what a limit that was not final had taken, so that new inputs can be loaded."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def data_bytes(statm: int) -> int:
    """Private writable memory of the process, from an open descriptor of /proc/self/statm."""
    return int(os.pread(statm, 256, 0).split()[5]) * resource.getpagesize()


def landlock_version() -> int:
    """The Landlock ABI of this kernel; negative where it has none or it is switched off."""
    return _syscall(_SYS_LANDLOCK_CREATE, None, 0, 1)


def restrict_files() -> None:
    """Landlock with no rule at all: no path can be opened, made, run or removed, no TCP port used.

    Needs no_new_privs. Where the ABI knows scopes, signals and abstract sockets end there too.
    """
    version = landlock_version()
    if version < 1:
        raise WallError(ctypes.get_errno(), "landlock is not available")
    files = (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1
    network = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    attributes = struct.pack("=QQQ", files, network, scopes)[:size]
    ruleset = _syscall(_SYS_LANDLOCK_CREATE, attributes, size, 0)
    if ruleset < 0:
        raise WallError(ctypes.get_errno(), "landlock_create_ruleset failed")
    try:
        if _syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0) != 0:
            raise WallError(ctypes.get_errno(), "landlock_restrict_self failed")
    finally:
        os.close(ruleset)


def restrict_calls(program: bytes) -> None:
    """Install an assembled filter on the calling thread and all it will start.

    Needs no_new_privs.
    """
    host = machine()
    if host is None:
        raise WallError(errno.ENOSYS, f"no call table for {platform.machine()}")
    buffer = ctypes.create_string_buffer(program, len(program))
    prog = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    if _syscall(_SYS_SECCOMP[host.name], _SECCOMP_SET_FILTER, 0, prog) != 0:
        raise WallError(ctypes.get_errno(), "seccomp failed")


@cache
def prepared_filter() -> bytes | None:
    """The filter for this machine, assembled once per process; a fork inherits it."""
    host = machine()
    return assemble(host) if host is not None else None


def assemble(host: Machine) -> bytes:
    """The seccomp filter for `host` as BPF machine code (struct sock_filter, 8 bytes each).

    A foreign architecture or x32 call kills; a fatal call kills; an allowed one passes, four of
    them only with harmless arguments; clone3 claims not to exist, because its flags lie in memory
    that no filter can read and libc then falls back to clone; everything else is EPERM.
    """
    code: list[Instruction] = [
        (_LD_W_ABS, 0, 0, _ARCH_AT),
        (_JEQ, 1, 0, host.audit_arch),
        (_RET, 0, 0, _RET_KILL),
        (_LD_W_ABS, 0, 0, _NR_AT),
        (_JGE, 0, 1, _X32_BIT),
        (_RET, 0, 0, _RET_KILL),
    ]
    checked = {
        "clone": _only_threads(),
        "mmap": _only_private(),
        "mprotect": _no_code(),
        "prlimit64": _only_own_limits(),
    }
    for name, number in host.allowed.items():
        code += _when(number, checked.get(name, [(_RET, 0, 0, _RET_ALLOW)]))
    code += _when(_CLONE3, [(_RET, 0, 0, _RET_ERRNO | errno.ENOSYS)])
    for number in host.fatal.values():
        code += _when(number, [(_RET, 0, 0, _RET_KILL)])
    code.append((_RET, 0, 0, _RET_ERRNO | errno.EPERM))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _numbers(table: str, column: int) -> dict[str, int]:
    rows = (row.split() for row in table.replace("\n", "|").split("|") if row)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def _when(number: int, block: list[Instruction]) -> list[Instruction]:
    """Run `block`, which must end in a return, if the call number in the accumulator is this."""
    return [(_JEQ, 0, len(block), number), *block]


def _only_threads() -> list[Instruction]:
    """Allow clone with exactly the flags of a new thread; anything else is a new process: die."""
    low, high = _argument(0)
    return [
        high,
        (_JEQ, 1, 0, 0),
        (_RET, 0, 0, _RET_KILL),
        low,
        (_JEQ, 2, 0, _THREAD_FLAGS[0]),
        (_JEQ, 1, 0, _THREAD_FLAGS[1]),
        (_RET, 0, 0, _RET_KILL),
        (_RET, 0, 0, _RET_ALLOW),
    ]


def _only_private() -> list[Instruction]:
    """Allow mmap of plain private memory; RLIMIT_DATA counts neither shared pages nor stacks."""
    return [
        *_no_code()[:-1],
        _argument(3)[0],
        (_AND_K, 0, 0, _MAP_KIND),
        (_JEQ, 1, 0, _MAP_PRIVATE),
        (_RET, 0, 0, _RET_ERRNO | errno.EPERM),
        (_RET, 0, 0, _RET_ALLOW),
    ]


def _no_code() -> list[Instruction]:
    """Allow a protection (third argument) without the executable bit."""
    return [
        _argument(2)[0],
        (_AND_K, 0, 0, _PROT_EXEC),
        (_JEQ, 1, 0, 0),
        (_RET, 0, 0, _RET_ERRNO | errno.EPERM),
        (_RET, 0, 0, _RET_ALLOW),
    ]


def _only_own_limits() -> list[Instruction]:
    """Allow this process (pid 0) to set the two limits that are lowered late."""
    return [
        _argument(0)[0],
        (_JEQ, 0, 3, 0),
        _argument(1)[0],
        (_JEQ, 2, 0, _LOWERED[0]),
        (_JEQ, 1, 0, _LOWERED[1]),
        (_RET, 0, 0, _RET_ERRNO | errno.EPERM),
        (_RET, 0, 0, _RET_ALLOW),
    ]


def _argument(index: int) -> tuple[Instruction, Instruction]:
    """Loads of the low and the high half of a call's argument; both machines are little-endian."""
    at = _ARGS_AT + 8 * index
    return (_LD_W_ABS, 0, 0, at), (_LD_W_ABS, 0, 0, at + 4)


def _stands(part: str, reasons: list[str], build: Callable[[], None], shut: int = 0) -> bool:
    """Whether a part was built and, where `shut` is given, opening a file now fails with it."""
    try:
        build()
    except (OSError, ValueError) as error:
        reasons.append(f"{part}: {error}")
        return False
    if shut:
        try:
            os.close(os.open("/", os.O_RDONLY))
        except OSError as error:
            if error.errno == shut:
                return True
        reasons.append(f"{part}: built, but a file could still be opened")
        return False
    return True


def _prctl(option: int, value: int, what: str) -> None:
    if _libc().prctl(option, value, 0, 0, 0) != 0:
        raise WallError(ctypes.get_errno(), f"{what} could not be set")


def _syscall(number: int, *arguments: object) -> int:
    return int(_libc().syscall(ctypes.c_long(number), *_words(arguments)))


def _words(arguments: Iterable[object]) -> list[object]:
    """Integers as full words: ctypes passes a bare int as 32 bits to a variadic function."""
    return [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]


def _why() -> str:
    return os.strerror(ctypes.get_errno())


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
