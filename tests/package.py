"""The package in python/ as this checkout has it, without installing it: from package import api, gemmepi.

Its library is that of `make shared`, which is made again if the header has changed; the environment variable GEMMEPI_LIBRARY names another.
"""
import ctypes
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if "GEMMEPI_LIBRARY" not in os.environ:
    library = "build/libgemmepi.%s" % ("dylib" if sys.platform == "darwin" else "so")
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run([os.environ.get("MAKE", "make"), "--no-print-directory", "-s", library], cwd=ROOT, env=outside, check=True)
    os.environ["GEMMEPI_LIBRARY"] = os.path.join(ROOT, library)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "python"))

import gemmepi  # noqa: E402
from gemmepi import api  # noqa: E402,F401


def plan_of(make, context, desc):
    """A plan that a gemmepi_plan_ function makes, until api.plan_destroy."""
    plan = ctypes.c_void_p()
    make(context, desc, ctypes.byref(plan))
    return plan


def plan_info(plan):
    details = api.plan_details()
    api.plan_info(plan, details)
    return details


def explained(plan):
    text = ctypes.create_string_buffer(api.plan_explain(plan, None, 0) + 1)
    api.plan_explain(plan, text, len(text))
    return text.value.decode()
