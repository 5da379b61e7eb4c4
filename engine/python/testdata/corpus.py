"""Prints, one JSON line per file of Python's standard library, what Python's own tools say of it."""
import ast, io, json, pathlib, sys, sysconfig, tokenize

KNOWN = set(sys.argv[2:])


def files(n):
    lib = pathlib.Path(sysconfig.get_paths()["stdlib"])
    found = []
    for path in sorted(lib.glob("*.py")) + sorted(lib.glob("[a-k]*/*.py")):
        if "site-packages" in path.parts or "lib2to3" in path.parts or path.stat().st_size > 60000:
            continue
        source = path.read_bytes().decode("utf-8", "replace")
        try:
            ast.parse(source)
            tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        except (SyntaxError, ValueError, tokenize.TokenError):
            continue
        if "\ufffd" not in source:
            found.append((path, source, tokens))
    return found[:n]


def functions(tree):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [[n.name, min([n.lineno] + [d.lineno for d in n.decorator_list]), n.end_lineno] for n in tree.body if isinstance(n, kinds)]


def reformatted(tokens):
    """The same program with other white space: indentation of three, no comments, no blank lines, spaces between tokens."""
    out, depth, line = [], 0, []
    for t in tokens:
        if t.type == tokenize.INDENT:
            depth += 1
        elif t.type == tokenize.DEDENT:
            depth -= 1
        elif t.type == tokenize.NEWLINE:
            out.append("   " * depth + " ".join(line))
            line = []
        elif t.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER):
            line.append(t.string)
    return "\n".join(out) + "\n"


def without_imports(source):
    """The program without its plain imports of known names at the top level, so that names are missing."""
    lines = source.split("\n")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import) and node.lineno == node.end_lineno and len(node.names) == 1 and (node.names[0].asname or node.names[0].name) in KNOWN:
            lines[node.lineno - 1] = "pass"
    return "\n".join(lines)


def missing(source):
    """Known names that are used by attribute and bound in no scope; None when "import *" makes it unknown."""
    bound, used = set(), set()
    for n in ast.walk(ast.parse(source)):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            bound.add(n.id)
        elif isinstance(n, ast.arg):
            bound.add(n.arg)
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(n.name)
        elif isinstance(n, ast.ExceptHandler) and n.name:
            bound.add(n.name)
        elif isinstance(n, (ast.Global, ast.Nonlocal)):
            bound.update(n.names)
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            for a in n.names:
                if a.name == "*":
                    return None
                bound.add(a.asname or a.name.split(".")[0])
        elif isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name:
            bound.add(n.name)
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
            used.add(n.value.id)
    return sorted((used & KNOWN) - bound)


for path, source, tokens in files(int(sys.argv[1])):
    bare = without_imports(source)
    print(json.dumps({
        "Path": path.name, "Source": source, "Functions": functions(ast.parse(source)),
        "Numbers": [[t.string, t.start[0]] for t in tokens if t.type == tokenize.NUMBER],
        "Reformatted": reformatted(tokens), "Bare": bare, "Missing": missing(bare), "MissingWhole": missing(source),
    }))
