# Prints what the judge needs to know of the interpreter that runs this, as JSON.
import json
import os
import sys

fault, version = "", ""
try:
    import numpy

    version = numpy.__version__
except BaseException as error:
    fault = "%s: %s" % (type(error).__name__, str(error).split("\n")[0])

prefixes = sorted({os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)})
inside = [p + os.sep for p in prefixes]


def mine(path):
    """Says whether a path belongs to the installation; a project that a .pth file adds does not."""
    real = os.path.realpath(path)
    return os.path.exists(real) and any(real.startswith(p) for p in inside)


print(json.dumps({
    "Executable": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "Version": sys.version_info[:3],
    "Prefixes": prefixes,
    "Path": [os.path.realpath(p) for p in sys.path if mine(p)],
    "Numpy": version,
    "Fault": fault,
}))
