#!/usr/bin/env python3
"""Plants each fault of tests/planted/*.toml and checks that its tests find it.

    tests/plant.py                    all faults, but those that need a server
    tests/plant.py threads loom       those of threads.toml, and those that loom finds
    tests/plant.py no-second-scan     one
    tests/plant.py --list | --check   names them, or looks whether each has its place and its tests

All faults are compiled once, into a copy of the tree: a function with faults gets one more body for each, and
PLANTED in the environment says which one runs. tests/planted/README.md explains the format.
"""

import json, os, re, shutil, signal, subprocess, sys, threading, time, tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "target/planted"
# Seconds for a run, those after which one that never ends is believed, and tries: threads meet as they like.
LIMIT, ENDLESS, TRIES = 120, 15, 3
# For each way what cargo builds, where the tests are, and where the unit tests.
PLAIN = ("-p tickwheel", "tests", "src")
BUILDS = dict.fromkeys("lib promises oracle compat liveness resources".split(), PLAIN) | {
    "loom": ("-p tickwheel-loom-tests --release", "loom-tests/tests", None),
    "shuttle": ("-p tickwheel-shuttle-tests --release", "loom-tests/shuttle/tests", None),
    "await": ("-p tickwheel-await-tests", "tests/await/tests", None),
    "durable": ("-p tickwheel-durable", "durable/tests", "durable/src"),
    "postgres": ("-p tickwheel-durable --features postgres", "durable/tests", "durable/src"),
}
SWITCH = """
pub fn planted(fault: usize) -> bool {
    static PLANTED: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PLANTED.get_or_init(|| std::env::var("PLANTED").map_or(0, |it| it.parse().unwrap())) == fault
}
"""
# What may hold braces that are none, array types, and what begins a function.
TOKEN = re.compile(r'''//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])\''''
                   r'''|\[[^][{}]*;[^][{}]*\]|[{};]|\bfn\s+\w+''', re.S)


def functions(text):
    """Yields start, end and name of the body of each function, braces included."""
    opened, name = [], None
    for token in TOKEN.finditer(text):
        if token[0] == "{":
            opened.append((token.start(), name))
        elif token[0] == "}":
            start, of = opened.pop()
            if of:
                yield start, token.end(), of
        name = token[0][2:].strip() if token[0].startswith("fn") else None if token[0] in "{};" else name


class Finder:
    """`way filter`, `way target filter` or, for one test, `way file::test`."""
    def __init__(self, text):
        self.text = text
        self.way, rest = text.split(" ", 1)
        self.build = _, tests, src = BUILDS.get(self.way) or sys.exit(f"no way to find a fault: {text}")
        self.exact = not src
        self.target, self.filter = (self.way, rest) if self.build == PLAIN else re.split("::| ", rest, maxsplit=1)
        self.sources = ROOT / (src if self.target == "lib" else f"{tests}/{self.target}")
        if self.way == "loom":
            self.target, self.filter = "models", rest

    def exists(self):
        test = re.compile(r"\b(fn|mod) \w*" + self.filter.split("::")[-1] + r"\b" * self.exact)
        files = [self.sources.with_suffix(".rs"), *self.sources.rglob("*.rs")]
        return any(file.is_file() and test.search(file.read_text()) for file in files)

    def run(self, binaries, filters, fault=0, limit=600):
        """Returns how the tests end: passes, never ends, or with the test that fails first."""
        binary, folder = binaries[self.build, self.target]
        beside = [TREE / "durable/tests/postgres.sh"] * (self.way == "postgres")
        tests = subprocess.Popen([*beside, binary, *filters, *["--exact"] * self.exact], cwd=folder, text=True, errors="replace",
                                 env=os.environ | {"PLANTED": str(fault), "PROPTEST_MAX_SHRINK_ITERS": "0"},
                                 start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        end, timer = time.monotonic() + limit, threading.Timer(limit, os.killpg, [tests.pid, signal.SIGKILL])
        timer.start()
        failed = next((line.split()[1] for line in tests.stdout if line.endswith("... FAILED\n")), None)
        timer.cancel()
        if failed:
            os.killpg(tests.pid, signal.SIGKILL)
        ends = "never ends" if time.monotonic() >= end else "ends the process"
        return failed or (ends if tests.wait() else "passes")


class Fault:
    def __init__(self, number, area, table):
        self.number, self.within, self.endless = number, None, False
        vars(self).update(table)
        self.finders = [Finder(text) for text in self.found_by]
        self.words = {self.name, area, *(finder.way for finder in self.finders)}

    def places(self, text):
        """Returns where the sound text begins, and the start and end of the function around it; once, if all is well."""
        around = [(hit, body) for hit in re.finditer(re.escape(self.sound), text) for body in functions(text)
                  if body[0] < hit.start() and hit.end() < body[1]]
        hits = {hit.start() for hit, body in around if self.within in (None, body[2])}
        return [(start, *min(body for hit, body in around if hit.start() == start)[:2]) for start in hits]

    def misfits(self):
        path = ROOT / self.file
        if (times := len(self.places(path.read_text())) if path.is_file() else 0) != 1:
            yield f"{self.name}: the sound text is {times} times in {self.within or 'the functions'} of {self.file}"
        yield from [f"{self.name}: no test {finder.text}" for finder in self.finders if not finder.exists()]

    def find(self, binaries):
        """Plants the fault, prints a line, and returns whether all its tests have found it."""
        begun, found, missed = time.monotonic(), [], []
        for finder in self.finders:
            runs = (finder.run(binaries, [finder.filter], self.number, ENDLESS if self.endless else LIMIT) for _ in range(TRIES))
            how = next((how for how in runs if how != "passes"), "passes")
            is_found = how == "never ends" if self.endless else how not in ("passes", "never ends")
            (found if is_found else missed).append(f"{finder.text}: {how}")
        line = f"NOT FOUND by {'; '.join(missed)}" if missed else f"found by {'; '.join(found)}"
        print(f"{self.name} {line} ({time.monotonic() - begun:.1f} s)", flush=True)
        return not missed


def with_switches(file, text, faults):
    bodies = defaultdict(str)
    planted = "crate::planted" if file.startswith("src/") else "tickwheel::planted"
    for fault in faults:
        [(hit, start, end)] = fault.places(text)
        broken = text[start:hit] + fault.broken + text[hit + len(fault.sound) : end]
        bodies[start, end] += f"if {planted}({fault.number}) {broken} else "
    for (start, end), broken in sorted(bodies.items(), reverse=True):
        text = f"{text[:start]}{{ {broken}{text[start:end]} }}{text[end:]}"
    return text + (SWITCH if file == "src/lib.rs" else "")


def make_copy(faults):
    """Copies the tree with all faults. Writes only what has changed, so that cargo builds no more."""
    listed = subprocess.check_output("git ls-files -co --exclude-standard".split(), cwd=ROOT, text=True).splitlines()
    for old in TREE.rglob("*.rs"):
        if str(old.relative_to(TREE)) not in listed:
            old.unlink()
    for file in filter(lambda file: (ROOT / file).is_file(), listed):
        content = (ROOT / file).read_bytes()
        if file.endswith(".rs"):
            content = with_switches(file, content.decode(), [fault for fault in faults if fault.file == file]).encode()
        if file.endswith("Cargo.toml"):
            # Otherwise cargo would take what it made of the tree for that of the copy, and the other way round.
            content = re.sub(rb'^version = "([^"]*)"', rb'version = "\1+planted"', content, count=1, flags=re.M)
        copy = TREE / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.is_file() or copy.read_bytes() != content:
            copy.write_bytes(content)
            shutil.copymode(ROOT / file, copy)


def build(finders):
    """Builds each way once. Returns the binary of each test target, and its folder."""
    binaries = {}
    for a_build in dict.fromkeys(finder.build for finder in finders):
        mine = [finder for finder in finders if finder.build == a_build]
        way, begun = "plain" if a_build == PLAIN else mine[0].way, time.monotonic()
        is_model = way in ("loom", "shuttle")
        cargo = ["cargo", "test", "-q", "--no-run", "--message-format=json-render-diagnostics", *a_build[0].split(),
                 f"--target-dir={ROOT / 'target' / (way if is_model else '')}",
                 *sorted({"--lib" if finder.target == "lib" else f"--test={finder.target}" for finder in mine})]
        flags = {"RUSTFLAGS": f"--cfg {way}", "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1"} if is_model else {}
        built = subprocess.run(cargo, cwd=TREE, env={"CARGO_INCREMENTAL": "1"} | os.environ | flags, capture_output=True, text=True)
        if built.returncode:
            sys.exit(f"{built.stderr}\n{way} does not build")
        for made in map(json.loads, built.stdout.splitlines()):
            if made.get("executable"):
                target = "lib" if "lib" in made["target"]["kind"] else made["target"]["name"]
                binaries[a_build, target] = made["executable"], Path(made["manifest_path"]).parent
        print(f"built {way} in {time.monotonic() - begun:.0f} s", flush=True)
    return binaries


def main(words):
    tables = [(path.stem, table) for path in sorted((ROOT / "tests/planted").glob("*.toml"))
              for table in tomllib.loads(path.read_text())["fault"]]
    faults = [Fault(number, area, table) for number, (area, table) in enumerate(tables, 1)]
    meant = words - {"--list", "--check"}
    if unknown := meant - {word for fault in faults for word in fault.words}:
        sys.exit(f"no fault, file or way: {', '.join(unknown)}")
    chosen = [fault for fault in faults if (fault.words & meant if meant else "postgres" not in fault.words)]
    if "--list" in words:
        return print(*(f"{it.name}: {it.says} ({', '.join(it.found_by)})" for it in chosen), sep="\n")
    misfits = [problem for fault in faults for problem in fault.misfits()]
    print(*misfits, f"{len(chosen)} of {len(faults)} faults chosen, {len(misfits)} do not fit", sep="\n", flush=True)
    if misfits or "--check" in words:
        return bool(misfits)
    make_copy(faults)
    of_target = defaultdict(list)
    for finder in [finder for fault in chosen for finder in fault.finders]:
        of_target[finder.build, finder.target].append(finder)
    binaries = build(sum(of_target.values(), []))
    # More than processors, because those that never end only wait; they begin first.
    with ThreadPoolExecutor(4) as four:
        sound = four.map(lambda same: same[0].run(binaries, {finder.filter for finder in same}), of_target.values())
        if failures := [f"{target}: {how}" for (_, target), how in zip(of_target, sound) if how != "passes"]:
            sys.exit(f"without a fault, {'; '.join(failures)}")
        chosen.sort(key=lambda fault: not fault.endless)
        found = sum(four.map(lambda fault: fault.find(binaries), chosen))
    print(f"{found} found, {len(chosen) - found} not found")
    return found < len(chosen)


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
