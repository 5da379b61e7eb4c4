package python

import (
	"slices"
	"strings"
)

// packages maps the names under which standard packages are used to the import that binds them.
var packages = map[string]string{
	"np": "import numpy as np", "numpy": "import numpy", "scipy": "import scipy", "sp": "import scipy as sp",
	"sympy": "import sympy", "math": "import math", "cmath": "import cmath", "random": "import random",
	"itertools": "import itertools", "functools": "import functools", "collections": "import collections",
	"time": "import time", "heapq": "import heapq", "bisect": "import bisect", "copy": "import copy",
	"fractions": "import fractions", "decimal": "import decimal", "statistics": "import statistics",
	"operator": "import operator", "warnings": "import warnings", "sys": "import sys", "string": "import string",
	"re": "import re", "json": "import json", "os": "import os", "dataclasses": "import dataclasses",
	"typing": "import typing", "optimize": "from scipy import optimize", "spatial": "from scipy import spatial",
	"linalg": "from scipy import linalg", "sparse": "from scipy import sparse",
}

// Imports adds the imports of standard packages that a program uses by attribute (np.array) but binds nowhere,
// and returns the program with the lines it added, sorted. They go before everything but a doc string and
// imports from __future__.
func Imports(source string) (program string, added []string) {
	tokens := scan(source)
	bound := bindings(tokens)
	for i, t := range tokens {
		if t.kind != name || i+1 == len(tokens) || tokens[i+1].text != "." || i > 0 && tokens[i-1].text == "." {
			continue
		}
		line, known := packages[t.text]
		if known && !bound[t.text] && !slices.Contains(added, line) {
			added = append(added, line)
		}
	}
	if len(added) == 0 {
		return source, nil
	}
	slices.Sort(added)
	at := importsGoTo(source)
	return source[:at] + strings.Join(added, "\n") + "\n" + source[at:], added
}

// bindings collects every name that is imported, assigned, defined, or a parameter or loop variable anywhere: scopes are
// not told apart, since a wrongly added import of a bound name would be worse than a missing one.
func bindings(tokens []token) map[string]bool {
	bound := map[string]bool{}
	word, importing := "", false // first word of the line; inside the name list of an import
	for i, t := range tokens {
		if t.kind == newline {
			word, importing = "", false
			continue
		}
		if word == "" && t.kind == name {
			word = t.text
		}
		importing = importing || t.text == "import"
		if t.kind != name || i > 0 && tokens[i-1].text == "." {
			continue
		}
		after := ""
		if i+1 < len(tokens) {
			after = tokens[i+1].text
		}
		isTarget := word == "def" || word == "class" || word == "for" || word == "with" || word == "except" || word == "global"
		if importing || isTarget && after != "." || after == "=" || after == "," && t.depth == 0 {
			bound[t.text] = true
		}
	}
	return bound
}

// importsGoTo is the byte offset behind a leading doc string and imports from __future__.
func importsGoTo(source string) int {
	at := 0
	for i, line := range logicalLines(source) {
		docString := i == 0 && len(line) == 1 && line[0].kind == str
		future := len(line) > 1 && line[0].text == "from" && line[1].text == "__future__"
		if !docString && !future {
			break
		}
		end := line[len(line)-1].end
		at = end + lineEnd(source[end:])
		if at < len(source) {
			at++
		}
	}
	return at
}
