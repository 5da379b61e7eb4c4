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

// Imports adds the imports of standard packages that a program uses by attribute (np.array) but binds nowhere, in no scope,
// since a wrongly added import of a bound name would be worse than a missing one; so after "import *" of a module that
// may bind anything none is added. It returns the program with the lines it added, sorted. They go before everything but a doc string and
// imports from __future__.
func Imports(source string) (program string, added []string) {
	n := namesOf(source)
	if slices.ContainsFunc(n.stars, mayBind) {
		return source, nil
	}
	for _, used := range n.used {
		if line, known := packages[used]; known && !n.bound[used] && !slices.Contains(added, line) {
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

// mayBind says whether "from module import *" may bind names under which packages are used: only a few modules of the
// standard library certainly do not.
func mayBind(module string) bool {
	return !slices.Contains([]string{"math", "cmath", "random", "itertools", "functools", "collections", "typing", "dataclasses", "time"}, module)
}

// importsGoTo is the byte offset behind a leading doc string and imports from __future__.
func importsGoTo(source string) int {
	at := len(source) - len(strings.TrimPrefix(source, byteOrderMark))
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
