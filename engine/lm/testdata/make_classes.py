"""Makes classes.json.gz: which code points Hugging Face tokenizers 0.23.3 takes for letters, numbers, white space and
digits, as lists of [first, last]. Run: python make_classes.py
"""
import gzip, json
from tokenizers import Regex, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]

def matched(pattern):
    step, found = pre_tokenizers.Split(Regex(pattern), "removed"), []
    for i in range(0, len(POINTS), 8192):
        chunk = POINTS[i:i + 8192]
        kept = {j for _, (a, b) in step.pre_tokenize_str("".join(map(chr, chunk))) for j in range(a, b)}
        found += [c for j, c in enumerate(chunk) if j not in kept]
    return found

def digits():
    step, found = pre_tokenizers.Digits(individual_digits=True), []
    for i in range(0, len(POINTS), 4096):
        chunk = POINTS[i:i + 4096]
        starts = {a for _, (a, _) in step.pre_tokenize_str("".join("a" + chr(c) for c in chunk))}
        found += [c for j, c in enumerate(chunk) if 2 * j + 1 in starts]
    return found

def ranges(points):
    out = []
    for c in points:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out

classes = {"letter": matched(r"\p{L}"), "number": matched(r"\p{N}"), "space": matched(r"\s"), "digit": digits()}
with gzip.GzipFile("classes.json.gz", "wb", mtime=0) as f:
    f.write(json.dumps({name: ranges(points) for name, points in classes.items()}).encode())
