"""The frame of the Python tests: a function is a fact, and run() prints a line for each, as tests/run.sh counts them."""
import sys
import traceback


def raises(kind, words, function, *arguments, **keywords):
    """The call raises that kind of exception, whose sentence has the words."""
    try:
        function(*arguments, **keywords)
    except kind as error:
        assert words in str(error), "it says %r" % str(error)
        return
    raise AssertionError("nothing is raised")


def run(module, skipped=()):
    """The facts of a module, in their order. skipped: lines of what cannot run."""
    passed = failed = 0
    for name, function in list(vars(module).items()):
        if not getattr(function, "is_fact", False):
            continue
        try:
            function()
            passed += 1
            print("ok   %s" % name)
        except Exception:
            failed += 1
            print("  " + "\n  ".join(traceback.format_exc().strip().split("\n")[-12:]))
            print("FAIL %s" % name)
    for line in skipped:
        print("skip " + line)
    print("%d passed, %d failed, %d skipped" % (passed, failed, len(skipped)))
    sys.exit(failed > 0)


def fact(function):
    function.is_fact = True
    return function
