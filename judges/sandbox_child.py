"""Runs a program with limits; `judges.sandbox` starts it in a Python of its own, by this path.

It must not import anything of ours: the Python that runs it sees the standard library only.

The process that is started stays outside as the supervisor: it forks, the child walls itself in and
runs the program, and the supervisor kills it when its time is up. Exit codes say how it ended,
because anything printed could be the program's own.

Three walls, each where the kernel has it: namespaces (no network but a loopback that is down, every
file system read-only but a small one in the folder, no sight of other processes), a system call
filter (no new process, no socket), and resource limits.
"""

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

DONE, FAILED, FAILED_TESTS, OUT_OF_TIME, OUT_OF_CPU, KILLED, UNFIT = 87, 86, 88, 89, 90, 91, 92
NOBODY = 65534

_NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWNS, NEWIPC, NEWUSER, NEWPID and NEWNET of <sched.h>."""
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _MOUNT_READ_ONLY = 442, -100, 0x8000, 1
_MS_PRIVATE, _MS_NO_SUID_NO_DEV = 0x4000 | 0x40000, 2 | 4
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_CAPABILITY_VERSION = 0x20080522

_CLONE3, _CLONE_THREAD = 435, 0x10000
_X32 = 0x40000000
SYSTEM_CALLS = {
    # fork, vfork, socket, ptrace, unshare, perf_event_open, bpf, io_uring_setup
    "x86_64": (0xC000003E, 56, (57, 58, 41, 101, 272, 298, 321, 425)),
    # There is neither fork nor vfork.
    "aarch64": (0xC00000B7, 220, (198, 117, 97, 241, 280, 425)),
}
"""By machine: its AUDIT_ARCH, the number of clone, and what is refused."""


def main() -> None:
    """Read what to run from standard input, run it, and exit with how it ended."""
    job = json.load(sys.stdin)
    _give_up_root()
    walled = _unshare()
    child = os.fork()
    if child == 0:
        try:
            _wall_in(job, walled=walled)
        except OSError:
            os._exit(UNFIT)
        _run(job)
    sys.exit(_supervise(child, job["seconds"]))


def _supervise(child: int, seconds: float) -> int:
    expired = False

    def expire(*_: object) -> None:
        nonlocal expired
        expired = True
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if expired:
        return OUT_OF_TIME
    if os.WIFSIGNALED(status):
        return OUT_OF_CPU if os.WTERMSIG(status) == signal.SIGXCPU else KILLED
    return os.WEXITSTATUS(status)


def _give_up_root() -> None:
    """As root, become nobody, unless nobody may read the standard library."""
    if os.geteuid() != 0:
        return
    os.chown(".", NOBODY, NOBODY)
    os.seteuid(NOBODY)
    readable = os.access(os.__file__, os.R_OK, effective_ids=True)
    os.seteuid(0)
    if readable:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _unshare() -> bool:
    """Whether the next child gets namespaces of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if not hasattr(libc, "unshare") or libc.unshare(_NEW_NAMESPACES) != 0:
        return False
    # Without this a process that changed its user may not write its own maps.
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{NOBODY} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{NOBODY} {gid} 1")
    except OSError:
        return False
    return True


def _wall_in(job: Mapping[str, Any], *, walled: bool) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if walled:
        # A group of its own, or a signal to its group would reach the supervisor.
        os.setpgid(0, 0)
        _freeze_files(libc, job["disk_mib"])
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        _must(libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())))
    if sys.platform == "linux":
        _must(libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))
        _must(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    _limit(job)
    if not _filter_system_calls(libc):
        if job["isolation"] == "full":
            os._exit(UNFIT)
        sys.addaudithook(_refuse)
    if not walled and job["isolation"] == "full":
        os._exit(UNFIT)


def _limit(job: Mapping[str, Any]) -> None:
    for limit, wanted in (
        (resource.RLIMIT_CPU, int(job["seconds"]) + 1),
        (resource.RLIMIT_AS, job["memory_mib"] << 20),
        (resource.RLIMIT_FSIZE, job["disk_mib"] << 20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(limit, (value, value))


def _freeze_files(libc: Any, mib: int) -> None:
    """Everything read-only, then a small file system in memory over the current folder."""
    here = os.getcwd()  # noqa: PTH109  # a path object would not be bytes any sooner
    _must(libc.mount(None, b"/", None, _MS_PRIVATE, None))
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_READ_ONLY, 0, 0, 0)
    _must(
        libc.syscall(
            ctypes.c_long(_MOUNT_SETATTR),
            ctypes.c_int(_AT_FDCWD),
            ctypes.c_char_p(b"/"),
            ctypes.c_uint(_AT_RECURSIVE),
            ctypes.byref(attributes),
            ctypes.c_size_t(ctypes.sizeof(attributes)),
        )
    )
    options = f"size={mib}m,mode=0700,nr_inodes=1000".encode()
    _must(libc.mount(b"tmpfs", os.fsencode(here), b"tmpfs", _MS_NO_SUID_NO_DEV, options))
    os.chdir(here)


def _filter_system_calls(libc: Any) -> bool:
    """Whether the kernel refuses this process new processes and sockets from now on.

    RLIMIT_NPROC would not do: it does not bind root, and it counts the user's other processes.
    """
    if sys.platform != "linux" or platform.machine() not in SYSTEM_CALLS:
        return False
    program = filter_program(*SYSTEM_CALLS[platform.machine()])
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    result: int = libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(header), 0, 0)
    return result == 0


def filter_program(architecture: int, clone: int, refused: tuple[int, ...]) -> bytes:
    """The filter in classic BPF: (code, jump if true, jump if false, operand) an instruction."""
    load, equal, at_least, has_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    deny, missing, allow = 0x00050000 | 1, 0x00050000 | 38, 0x7FFF0000
    number, arch, first_argument = 0, 4, 16
    calls = [(equal, len(refused) - at + 4, 0, call) for at, call in enumerate(refused)]
    program = [
        (load, 0, 0, arch),
        (equal, 0, len(calls) + 7, architecture),
        (load, 0, 0, number),
        (at_least, len(calls) + 5, 0, _X32),
        *calls,
        (equal, 5, 0, _CLONE3),
        (equal, 0, 2, clone),
        (load, 0, 0, first_argument),
        (has_bit, 0, 1, _CLONE_THREAD),
        (give, 0, 0, allow),
        (give, 0, 0, deny),
        (give, 0, 0, missing),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in program)


def _must(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "the kernel refused")


def _refuse(event: str, _: tuple[object, ...]) -> None:
    if event.startswith("socket.") or event in {"os.fork", "os.posix_spawn", "subprocess.Popen"}:
        raise PermissionError("no network and no processes here")


def _run(job: Mapping[str, Any]) -> None:
    """Run the source and then its tests in one namespace; does not return."""
    module = ModuleType("__main__")
    sys.modules["__main__"] = sys.modules["answer"] = module
    sys.argv = ["answer"]
    ended = FAILED
    try:
        if job["tests"]:
            module.__dict__["__name__"] = "answer"
            _execute(job["source"], "<answer>", module)
            ended = FAILED_TESTS
            module.__dict__["__name__"] = "__main__"
        _execute(job["tests"] or job["source"], "<tests>" if job["tests"] else "<answer>", module)
        ended = DONE
    except SystemExit as error:
        # A script may end so; an answer that does spares itself its tests.
        if error.code in {None, 0} and not (job["tests"] and ended == FAILED):
            ended = DONE
        else:
            _tell(f"it exited with {error.code!r} before its end")
    except BaseException as error:  # noqa: BLE001
        _tell("".join(traceback.format_exception(error.with_traceback(_ours_left_out(error)))))
    finally:
        _tell("")
        os._exit(ended)


def _execute(source: str, name: str, module: ModuleType) -> None:
    exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)  # noqa: S102


def _ours_left_out(error: BaseException) -> Any:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _tell(text: str) -> None:
    """Print to standard error, after what the program itself has printed."""
    for stream, more in ((sys.stdout, ""), (sys.stderr, text)):
        try:
            stream.write(more)
            stream.flush()
        except (OSError, ValueError):
            continue


if __name__ == "__main__":
    main()
