# The first and only trusted Python of a candidate's process: limits, system call filter, then the candidate, then one
# frame on file descriptor 3. Its request comes on stdin: u32 length, JSON, the source. Python 3.9 and later.
import sys
import resource
import os
import signal
from json import JSONEncoder, loads
from struct import pack, pack_into, unpack_from

encode = JSONEncoder(allow_nan=False).encode

MAX_HEADER, MAX_ARRAYS = 1 << 20, 16 << 20
MAX_DEPTH, MAX_NODES, MAX_DIGITS = 64, 1_000_000, 100_000


def read_request():
    """Returns the configuration and the source, and leaves stdin at its end."""
    data = b""
    while chunk := os.read(0, 1 << 16):
        data += chunk
    (size,) = unpack_from("<I", data)
    return loads(data[4:4 + size]), data[4 + size:]


def set_limits(limits):
    for name, value in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        resource.setrlimit(kind, (value, value + (name == "CPU")))


def install_filter(hexadecimal, placeholder):
    """Installs the seccomp program, in which the constant placeholder stands for this process's id."""
    import ctypes

    code = bytearray.fromhex(hexadecimal)
    for at in range(0, len(code), 8):
        (constant,) = unpack_from("<I", code, at + 4)
        if constant == placeholder:
            pack_into("<I", code, at + 4, os.getpid())

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    buffer = (ctypes.c_char * len(code)).from_buffer(code)
    program = Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    number = [ctypes.c_ulong(n) for n in (38, 1, 0, 0, 0)]  # PR_SET_NO_NEW_PRIVS
    if libc.prctl(ctypes.c_int(38), *number[1:]) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    if libc.prctl(ctypes.c_int(22), ctypes.c_ulong(2), ctypes.byref(program), number[2], number[2]) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")


class Unfit(Exception):
    """The result is no plain data; args[0] is the status."""


class Packer:
    """Turns a returned value into a header with tags and a list of buffers."""

    def __init__(self):
        self.arrays, self.buffers, self.bytes, self.nodes, self.letters = [], [], 0, 0, 0

    def pack(self, x, depth=0):
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise Unfit("bad_result", "the result is nested deeper than %d" % MAX_DEPTH)
        if self.nodes > MAX_NODES:
            raise Unfit("result_limit", "the result holds more than %d values" % MAX_NODES)
        kind = type(x)
        if x is None or kind is bool:
            return x
        if kind is str:
            return self.text(x)
        if kind is float:
            return x if x - x == 0 else {"$f": repr(x)}
        if kind is int:
            return {"$int": self.digits(x)}
        if kind is complex:
            return {"$c": [self.pack(x.real, depth), self.pack(x.imag, depth)]}
        if kind is list:
            return [self.pack(item, depth + 1) for item in x]
        if kind is tuple:
            return {"$tuple": [self.pack(item, depth + 1) for item in x]}
        if kind is set or kind is frozenset:
            return {"$set": [self.pack(item, depth + 1) for item in x]}
        if kind is dict:
            return self.pack_dict(x, depth)
        return self.pack_foreign(x, kind)

    def text(self, x):
        """Counts, so that one long text a thousand times is refused before it is written out."""
        self.letters += len(x)
        if self.letters > MAX_HEADER:
            raise Unfit("result_limit", "the result's text form has more than %d bytes" % MAX_HEADER)
        return x

    def digits(self, x):
        if x.bit_length() > MAX_DIGITS * 3.32:
            raise Unfit("result_limit", "the result holds an integer of more than %d digits" % MAX_DIGITS)
        if hasattr(sys, "set_int_max_str_digits"):
            sys.set_int_max_str_digits(0)
        self.letters += x.bit_length() // 4 if x.bit_length() > 1000 else 0
        self.text("")
        return str(x)

    def pack_dict(self, x, depth):
        for key in x:
            if type(key) is not str or key.startswith("$"):
                raise Unfit("bad_result", "the result holds a dict with a key that is no text, or starts with $")
        return {self.text(key): self.pack(item, depth + 1) for key, item in x.items()}

    def pack_foreign(self, x, kind):
        numpy, fractions = sys.modules.get("numpy"), sys.modules.get("fractions")
        if fractions is not None and kind is fractions.Fraction:
            return {"$frac": [self.digits(x.numerator), self.digits(x.denominator)]}
        if numpy is not None and (kind is numpy.ndarray or issubclass(kind, numpy.generic) and numpy.dtype(kind).type is kind):
            return self.pack_array(numpy.asarray(x))
        raise Unfit("bad_result", "the result holds a %s.%s, which is no plain data; return floats, lists and arrays"
                    % (kind.__module__, kind.__qualname__))

    def pack_array(self, x):
        sizes = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}
        if x.dtype.itemsize not in sizes.get(x.dtype.kind, ()) or x.ndim > 8:
            raise Unfit("bad_result", "the result holds an array of %s with %d dimensions, which is no plain data"
                        % (x.dtype, x.ndim))
        self.bytes += x.nbytes
        if self.bytes > MAX_ARRAYS:
            raise Unfit("result_limit", "the result's arrays have more than %d bytes" % MAX_ARRAYS)
        self.arrays.append({"dtype": x.dtype.kind + str(x.dtype.itemsize), "shape": list(x.shape)})
        self.buffers.append(x.astype(x.dtype.newbyteorder("<"), copy=False).tobytes())
        return {"$nd": len(self.arrays) - 1}


def frame(header, buffers=()):
    text = encode(header).encode()
    if len(text) > MAX_HEADER:
        return failure("result_limit", "", "the result's text form has more than %d bytes" % MAX_HEADER)
    return b"".join((b"SKEPFR1\n", pack("<I", len(text)), text, *buffers, b"SKEPEND\n"))


def failure(status, kind, message, traceback=""):
    clean = [s.encode("utf-8", "replace").decode() for s in (kind, message, traceback)]
    return frame({"status": status, "type": clean[0][:200], "message": clean[1][:2000], "traceback": clean[2][-4000:]})


LAST_RESORT = failure("exception", "", "an error that cannot be described")


def calm():
    """Keeps what the candidate set up, an alarm above all, from interrupting or ending what follows."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    sys.setrecursionlimit(1000)
    os.set_blocking(3, True)


def raised(status, error, source):
    """The frame of an exception: its text, and where in the candidate's own code it was raised."""
    kind = ""
    try:
        calm()
        kind = type(error).__name__
        import io
        import linecache
        import traceback

        text = source.decode("utf-8-sig")
        lines = io.StringIO(text, newline=None).readlines()  # ends only where Python's own lines end
        linecache.cache["candidate.py"] = (len(text), None, lines, "candidate.py")
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != "candidate.py":
            frames = frames.tb_next
        where = traceback.format_tb(frames, limit=-8)
        if status == "syntax_error":
            where = traceback.format_exception_only(type(error), error)[:-1]
        return failure(status, kind, str(error), "".join(where))
    except BaseException:  # an exception whose __str__ raises, no memory left, …
        return failure(status, kind, "")


def evaluate(entry, source):
    """Runs the candidate and returns the frame that says what came of it."""
    try:
        code = compile(source, "candidate.py", "exec", dont_inherit=True)
    except BaseException as error:
        return raised("syntax_error", error, source)
    try:
        candidate = type(sys)("candidate")
        candidate.__file__ = "candidate.py"  # programs ask for their folder; there is no such file
        sys.modules["candidate"] = candidate
        exec(code, candidate.__dict__)
        function = candidate.__dict__.get(entry)
        if function is None:
            return failure("exception", "NameError", "the program defines no function %s" % entry)
        result = function()
        calm()
        packer = Packer()
        header = {"status": "ok", "value": packer.pack(result), "arrays": packer.arrays}
        return frame(header, packer.buffers)
    except Unfit as error:
        return failure(error.args[0], "", error.args[1])
    except MemoryError as error:
        return raised("oom", error, source)
    except BaseException as error:
        return raised("exception", error, source)


def main():
    config, source = read_request()
    set_limits(config["limits"])
    sys.path[:] = config["path"]
    if config["filter"]:
        install_filter(config["filter"], config["placeholder"])
    write, leave = os.write, os._exit
    write(3, b"R")
    try:
        data = evaluate(config["entry"], source)
    except:  # noqa: E722: the very names of the exceptions may have been replaced
        data = LAST_RESORT
    data = memoryview(data)
    while data:
        data = data[write(3, data):]
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    leave(0)


main()
