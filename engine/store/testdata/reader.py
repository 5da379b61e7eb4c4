"""Reads the run in argv[1] with Python's sqlite3 until a line comes on stdin; prints how many programs it saw last."""
import select
import sqlite3
import sys

seen, reads = 0, 0
print("reading", flush=True)
while True:
    stop = select.select([sys.stdin], [], [], 0)[0]
    con = sqlite3.connect(f"file:{sys.argv[1]}/run.db?mode=ro", uri=True)
    con.execute("BEGIN")
    programs, last = con.execute("SELECT count(*), coalesce(max(id), 0) FROM programs").fetchone()
    whole = con.execute("SELECT count(*) FROM programs JOIN evaluations ON program = programs.id AND code = message").fetchone()[0]
    con.close()
    assert seen <= programs == last == whole, (seen, programs, last, whole)
    seen, reads = programs, reads + 1
    if stop:
        break
con = sqlite3.connect(f"file:{sys.argv[1]}/run.db?mode=ro", uri=True)
assert con.execute("PRAGMA integrity_check").fetchone() == ("ok",)
print(seen, reads)
