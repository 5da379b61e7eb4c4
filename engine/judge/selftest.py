"""Tries the walls from inside: returns the names of those that are open."""
import ctypes
import os
import socket
import subprocess

import numpy


def refused(action):
    """Says whether an action fails as a wall makes it fail."""
    try:
        action()
    except OSError:
        return True
    return False


def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")


def write_scratch():
    with open("probe", "w") as file:
        file.write("x")
    os.unlink("probe")


def probe():
    outside = os.path.join(os.path.dirname(os.getcwd()), "skep-probe-%d" % os.getpid())
    attempts = {
        "fork": os.fork,
        "exec": lambda: os.execv("/proc/self/exe", ["python"]),
        "subprocess": lambda: subprocess.run(["/bin/true"]),
        "socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "kill": lambda: os.kill(os.getppid(), 0),
        "read /etc/passwd": lambda: open("/etc/passwd"),
        "list /proc": lambda: os.listdir("/proc"),
        "write outside": lambda: open(outside, "w"),
        "chmod": lambda: os.chmod(numpy.__file__, 0o644),
    }
    open_walls = [name for name, action in attempts.items() if not refused(action)]
    if refused(write_scratch):
        open_walls.append("the scratch folder cannot be written")
    return open_walls
