"""Tries to take the write lock of the run in argv[1]; prints "taken" or SQLite's refusal."""
import sqlite3
import sys

con = sqlite3.connect(f"{sys.argv[1]}/run.db", timeout=0.2, isolation_level=None)
try:
    con.execute("BEGIN IMMEDIATE")
    con.execute("ROLLBACK")
    print("taken")
except sqlite3.OperationalError as e:
    print(e)
