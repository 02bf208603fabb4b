#!/usr/bin/env python3
"""Whether the tests see small changes of meaning in src/: `make mutants`, from the repository's root.

    mutants.py [--check] [--line N] [--file REGEX] [--share N] [--jobs N] [--table FILE]

tests/mutants.txt lists the changes, a room after the other:

    [FILE] TESTS         a file of src/, and the tests of its room, in the order in which they run
    - FROM               the line or lines that are changed; they are there exactly once
    + TO                 what they become
    @ TESTS              of this change, in place of the room's
    = WHY                the change is equivalent: it is built, and neither tested nor counted

A test is a file of tests/ without its ending, or emulate:ARCH:TEST:ARGUMENT... for one on the emulated GPU of tests/emulator, which
needs NVRTC and is left out where there is none. What NVRTC compiles is kept in build/mutants/kernels.

Each change is built in a copy of src/ below build/mutants with -O0, and its tests run one after another on the host until one fails,
crashes or takes too long. A change that no test sees is a survivor. --check only looks whether each is where the table says. --line runs the change at that line of the table, --file those of
files whose name matches, --share one in N. The lines are those that tests/run.sh adds up, behind a line with the score.
"""
import argparse
import concurrent.futures
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

FOLDER = os.path.abspath("build/mutants")
MEMORY = 6 << 30


def source_of(test):
    """The file of a test's program."""
    return "tests/%s.c" % (test.split(":")[2] if test.startswith("emulate:") else test)


class Change:
    def __init__(self, line, file, tests):
        self.line, self.file, self.tests = line, file, tests
        self.before, self.after, self.why = [], [], None

    def text(self):
        return "\n".join(self.before), "\n".join(self.after)

    def __str__(self):
        before, after = self.text()
        return "%s: '%s' became '%s'" % (self.file, before.strip(), after.strip())


class TableError(Exception):
    pass


# >>the table


def read_table(path):
    changes, file, tests = [], None, []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        mark, rest = line[:1], line[2:]
        if not line or mark == "#":
            continue
        if mark == "[":
            file, _, names = line[1:].partition("]")
            tests = names.split()
        elif mark == "-":
            if not changes or changes[-1].after or changes[-1].file != file:
                changes.append(Change(number, file, tests))
            changes[-1].before.append(rest)
        elif mark == "+" and changes:
            changes[-1].after.append(rest)
        elif mark == "@" and changes:
            changes[-1].tests = rest.split()
        elif mark == "=" and changes:
            changes[-1].why = rest
        else:
            raise TableError("%s:%d: a line begins with [, -, +, @, = or #: %s" % (path, number, line))
    return changes


def changed_source(change):
    """The file with the change. Its text must be there exactly once."""
    before, after = change.text()
    path = os.path.join("src", change.file)
    if not os.path.exists(path):
        raise TableError("line %d: there is no %s" % (change.line, path))
    source = open(path, encoding="utf-8").read()
    if source.count(before) != 1 or before == after:
        raise TableError("line %d: '%s' is in %s %d times; it must be there once, and differ from what it becomes"
                         % (change.line, before.strip(), path, source.count(before)))
    for test in change.tests:
        if not os.path.exists(source_of(test)):
            raise TableError("line %d: there is no %s" % (change.line, source_of(test)))
    return source.replace(before, after)


# >>building and running


def compiler():
    """clang takes a third of gcc's time without optimisation."""
    return os.environ.get("MUTANTS_CC") or shutil.which("clang") or os.environ.get("CC") or "cc"


class Emulator:
    """The emulated GPU, and the kernels that NVRTC has made for it."""

    def __init__(self, is_wanted):
        self.nvrtc = None
        if is_wanted:
            said = subprocess.run(["sh", "tests/emulator/run.sh", "--build"], stdout=subprocess.PIPE, check=False)
            self.nvrtc = said.stdout.decode().strip() if said.returncode == 0 else None
        self.kernels = os.path.join(FOLDER, "kernels")
        os.makedirs(self.kernels, exist_ok=True)

    def environment(self, arch, cache):
        libraries = os.path.abspath("build/emulator") + ":" + os.path.dirname(self.nvrtc)
        return {"TEST_SHARE": "16", "EMULATOR_ARCH": arch, "EMULATOR_NVRTC": self.nvrtc, "GEMMEPI_TEST_DEVICE": "0", "XDG_CACHE_HOME": cache,
                "LD_LIBRARY_PATH": libraries}


class Place:
    """A copy of src/ in which a change is made at a time, and a folder for what tests write."""

    def __init__(self, number, emulator):
        self.emulator = emulator
        self.folder = os.path.join(FOLDER, str(number))
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree("src", os.path.join(self.folder, "src"))
        shutil.copyfile("kernels_src.h", os.path.join(self.folder, "kernels_src.h"))
        os.makedirs(os.path.join(self.folder, "home"))
        with open(os.path.join(self.folder, "gemmepi.h"), "w", encoding="utf-8") as header:
            header.write('#include "gemmepi.in.h"\n')
        home = os.path.join(self.folder, "home")
        self.environment = dict(os.environ, GEMMEPI_TEST_DEVICE="host", TEST_SHARE="4", TEST_STOP="1", HOME=home,
                                XDG_CACHE_HOME=home, TMPDIR=home)

    def write(self, file, source):
        with open(os.path.join(self.folder, "src", file), "w", encoding="utf-8") as out:
            out.write(source)
        self.embed(file)

    def restore(self, file):
        shutil.copyfile(os.path.join("src", file), os.path.join(self.folder, "src", file))
        self.embed(file)

    def embed(self, file):
        """Kernels are what the copy's sources make, too."""
        if file.startswith("kernels/"):
            made = "import embed; open('kernels_src.h', 'w', encoding='utf-8').write(embed.kernels_source())"
            subprocess.run([sys.executable, "-c", made], cwd=self.folder, env=dict(os.environ, PYTHONPATH="src"), check=True)

    def build(self, test):
        """What the compiler says, or an empty text."""
        program = os.path.join(self.folder, "program")
        implementation = [] if test.startswith("unit/") else ["-DGEMMEPI_IMPLEMENTATION="]
        command = [compiler(), "-std=c99", "-O0", "-w", *implementation, "-I" + self.folder, "-I" + self.folder + "/src",
                   "-Itests", "-I.", source_of(test), "-o", program, "-lm", "-ldl", "-lpthread"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return "" if done.returncode == 0 else done.stdout.decode(errors="replace")[:2000]

    def started_as(self, test, keeps_kernels):
        """Environment and arguments. A change has the kernels that there are, but leaves none of its own."""
        if not test.startswith("emulate:"):
            return self.environment, []
        _, arch, _, *arguments = test.split(":")
        cache = self.emulator.kernels
        if not keeps_kernels:
            cache = os.path.join(self.folder, "kernels")
            shutil.rmtree(cache, ignore_errors=True)
            shutil.copytree(self.emulator.kernels, cache, copy_function=os.link)
        return dict(self.environment, **self.emulator.environment(arch, cache)), arguments

    def run(self, test, limit, keeps_kernels=False):
        """None if all tests passed, else what was seen."""
        environment, arguments = self.started_as(test, keeps_kernels)

        def begin():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        said = os.path.join(self.folder, "said.txt")
        with open(said, "wb") as out:
            process = subprocess.Popen([os.path.join(self.folder, "program"), *arguments], stdout=out, stderr=out,
                                       env=environment, preexec_fn=begin)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if status is None:
            return "it hangs"
        if status is not None and status < 0:
            return "it ends by signal %d" % -status
        lines = [line for line in open(said, errors="replace")
                 if line.startswith(("emulator: ", "FAIL ")) or " in " in line and ": not (" in line]
        if status == 0 and not lines:
            return None
        return lines[0].strip()[:160] if lines else "it ends with status %d" % status


class Runner:
    def __init__(self, jobs, wants_emulator=True):
        self.places = queue.Queue()
        self.emulator = Emulator(wants_emulator)
        for number in range(jobs):
            self.places.put(Place(number, self.emulator))
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.limits = {}

    def unchanged(self, test):
        """How long a test may take, and None; or 0 and what it says where it fails without a change."""
        place = self.places.get()
        try:
            said = place.build(test)
            if test.startswith("emulate:"):
                said = said or place.run(test, 3600, True)
            begun = time.time()
            said = said or place.run(test, 600)
            if said:
                return 0, said
            return (60 if test.startswith("emulate:") else 10) + 5 * (time.time() - begun), None
        finally:
            self.places.put(place)

    def measure(self, changes):
        """How many tests are skipped, and how many fail without a change: these are left out."""
        skipped = 0
        if not self.emulator.nvrtc and any(test.startswith("emulate:") for change in changes for test in change.tests):
            skipped = 1
            print("skip mutants on the emulated GPU: there is no NVRTC")
            for change in changes:
                change.tests = [test for test in change.tests if not test.startswith("emulate:")]
        tests = sorted({test for change in changes if change.why is None for test in change.tests})
        failed = 0
        for test, (limit, said) in zip(tests, self.pool.map(self.unchanged, tests)):
            self.limits[test] = limit
            if said:
                failed += 1
                print("FAIL %s fails without a change: %s" % (test, said), flush=True)
        for change in changes:
            change.tests = [test for test in change.tests if self.limits.get(test, 1)]
        return skipped, failed

    def attempt(self, change):
        """(seen, what is said of it). None: it could not be tested."""
        place = self.places.get()
        try:
            place.write(change.file, changed_source(change))
            for test in change.tests:
                said = place.build(test)
                if said:
                    return None, "it does not compile:\n" + said
                if change.why is not None:
                    return True, "it is equivalent: " + change.why
                said = place.run(test, self.limits[test])
                if said:
                    return True, "%s sees it: %s" % (test, said)
            return False, "no test sees it: " + " ".join(change.tests)
        finally:
            place.restore(change.file)
            self.places.put(place)


def chosen(changes, options):
    changes = [change for change in changes if re.search(options.file, change.file)]
    if options.line:
        changes = [change for change in changes if change.line <= options.line][-1:]
    return changes[options.share // 2 :: options.share]


def report(runner, changes):
    """Runs all; the lines that tests/run.sh adds up, and the changes that no test sees."""
    survivors, failed, passed = [], 0, 0
    for change, (is_seen, said) in zip(changes, runner.pool.map(runner.attempt, changes)):
        if is_seen:
            passed += 1
            print("ok   mutant of line %d, %s: %s" % (change.line, change.file, said), flush=True)
            continue
        failed += 1
        if is_seen is False:
            survivors.append(change)
        print("FAIL mutant of line %d, %s: %s" % (change.line, change, said), flush=True)
    return survivors, passed, failed


def main():
    parser = argparse.ArgumentParser(description="whether the tests see small changes of src/")
    parser.add_argument("--check", action="store_true", help="only look whether the changes are where the table says")
    parser.add_argument("--line", type=int, default=0, help="the change at this line of the table alone")
    parser.add_argument("--file", default="", help="those of files whose name matches this")
    parser.add_argument("--share", type=int, default=1, help="one in so many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many at a time")
    parser.add_argument("--table", default="tests/mutants.txt")
    options = parser.parse_args()
    try:
        changes = read_table(options.table)
        for change in changes:
            changed_source(change)
    except TableError as error:
        print("FAIL mutants: %s\n0 passed, 1 failed, 0 skipped" % error)
        return 1
    if options.check:
        return 0
    changes = chosen(changes, options)
    runner = Runner(max(1, options.jobs), any(test.startswith("emulate:") for change in changes for test in change.tests))
    skipped, broken = runner.measure(changes)
    survivors, passed, failed = report(runner, changes)
    counted = [change for change in changes if change.why is None]
    for change in survivors:
        print("not seen: %s:%d: %s" % (options.table, change.line, change))
    print("%d of %d seen, %d equivalent" % (len(counted) - failed, len(counted), len(changes) - len(counted)))
    print("%d passed, %d failed, %d skipped" % (passed, failed + broken, skipped))
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
