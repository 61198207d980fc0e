"""A program under the system call filter of a systemd unit, made by libseccomp as systemd makes it."""

import ctypes
import errno
import re
import socket
import subprocess

ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000


class Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`."""
    _fields_ = [
        ("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("value", ctypes.c_uint64), ("other", ctypes.c_uint64)]


LESS, EQUAL, GREATER = 2, 4, 6


def system_calls(name):
    """The names of the system calls in a set of systemd's, or that of a single one."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
    return set().union(*map(system_calls, re.findall(r"(?m)^ +([@\w-]+)$", listed.stdout)))


def allowed(unit):
    """The system calls that a unit's text allows. The first of its lines has no `~`."""
    calls = system_calls("@default")
    for denies, names in re.findall(r"(?m)^SystemCallFilter=(~?)(.+)$", unit):
        for name in names.split():
            calls = calls - system_calls(name) if denies else calls | system_calls(name)
    return calls


class Filter:
    """The filter of a unit's text: of its `SystemCallFilter`, and of its `RestrictAddressFamilies`.

    A system call that is not allowed kills the process, unless the unit gives an error. One that this systemd does
    not know fails with ENOSYS, and a socket of another family with EAFNOSUPPORT.
    """

    def __init__(self, unit):
        """Raises OSError where there is no libseccomp."""
        self.library = ctypes.CDLL("libseccomp.so.2")
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(ctypes.c_uint32(ERROR | errno.ENOSYS)))
        number = re.search(r"(?m)^SystemCallErrorNumber=(\w+)$", unit)
        refusal = ERROR | getattr(errno, number[1]) if number else KILL
        calls = allowed(unit)
        for name in calls - {"socket"}:
            self.rule(ALLOW, name)
        for name in system_calls("@known") - calls:
            self.rule(refusal, name)
        families = re.search(r"(?m)^RestrictAddressFamilies=(.+)$", unit)[1].split()
        families = sorted(getattr(socket, name).value for name in families)
        for family in families:
            self.rule(ALLOW, "socket", (EQUAL, family))
        for family in set(range(families[-1])) - set(families):
            self.rule(ERROR | errno.EAFNOSUPPORT, "socket", (EQUAL, family))
        self.rule(ERROR | errno.EAFNOSUPPORT, "socket", (GREATER, families[-1]))

    def rule(self, action, name, *comparisons):
        number = self.library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return  # This machine has no such call.
        array = (Comparison * len(comparisons))(*(Comparison(0, operator, value, 0) for operator, value in comparisons))
        code = self.library.seccomp_rule_add_array(
            self.context, ctypes.c_uint32(action), number, len(comparisons), array)
        assert code == 0, f"{name}: {code}"

    def load(self):
        """Confines this process for good, and what it starts."""
        code = self.library.seccomp_load(self.context)
        if code:
            raise OSError(-code, "seccomp_load")
