#!/usr/bin/env python3
"""Weighs the repository: lines of library code, of tests and of documents.

Blank lines and lines that hold only a comment don't count. Fails if a part is heavier than
its limit below; lower a limit when its part has become lighter.
"""
import re
import subprocess
import sys

LIMITS = {
    "library": 10_415,
    "wheel": 1_766,
    "tests": 11_992,
    "tests and models": 14_696,
    "documents": 3_269,
}


def code_lines(path):
    lines = (line.strip() for line in open(path, encoding="utf-8"))
    return [line for line in lines if line and not line.startswith("//")]


def is_test_file(path):
    return "/tests/" in path or path.endswith("/tests.rs")


def library_lines(path):
    """Code without the items under `#[cfg(test)]`, which end where their braces balance."""
    count, depth, in_test, opened = 0, 0, False, False
    for line in code_lines(path):
        if not in_test and re.match(r"#\[cfg\((all\()?test\b", line):
            depth, in_test, opened = 0, True, False
            continue
        if not in_test:
            count += 1
            continue
        if line.startswith("#[") and not opened:
            continue
        line = re.sub(r'//.*|"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', "", line)
        depth += line.count("{") - line.count("}")
        opened |= "{" in line
        in_test = depth > 0 if opened else not line.endswith((";", ","))
    return count


def main():
    files = subprocess.check_output(["git", "ls-files"], text=True).split("\n")
    rust = [file for file in files if file.endswith(".rs")]
    library = [file for file in rust if file.startswith("src/") and not is_test_file(file)]
    tests = [file for file in rust if file.startswith("tests/")]
    models = [file for file in rust if file.startswith("loom-tests/")]
    documents = [file for file in files if file.endswith(".md") and not file.startswith("durable/")]

    weights = {
        "library": sum(map(library_lines, library)),
        "wheel": sum(library_lines(file) for file in library if file.startswith("src/wheel/")),
        "tests": sum(len(code_lines(file)) for file in tests),
    }
    weights["tests and models"] = weights["tests"] + sum(len(code_lines(file)) for file in models)
    weights["documents"] = sum(sum(1 for _ in open(file, encoding="utf-8")) for file in documents)
    for part, weight in weights.items():
        print(f"{part:17}{weight:7,} lines, at most {LIMITS[part]:,}")
    print(f"{'library files':17}{len(library):7,}")
    return any(weights[part] > LIMITS[part] for part in weights)


if __name__ == "__main__":
    sys.exit(main())
