"""The package without PyTorch: the C interface by ctypes."""
import array
import ast
import ctypes
import glob
import os
import subprocess
import sys

sys.modules["torch"] = None  # an import of it fails, whether it is installed or not

import gemmepi  # noqa: E402
from facts import fact, raises, run  # noqa: E402
from gemmepi import api  # noqa: E402


def numbers(values):
    made = array.array("f", values)
    return made, made.buffer_info()[0]


def run_python(text, **environment):
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@fact
def a_product_of_pointers_on_the_host():
    (a, at_a), (b, at_b), (d, at_d) = numbers([1, 2, 3, -4]), numbers([1, 1, 0, 1]), numbers([9] * 4)
    with gemmepi.Context(gemmepi.HOST) as host:
        api.matmul(host, api.matmul_desc(m=2, n=2, k=2), api.matmul_args(a=at_a, b=at_b, d=at_d), None)
        assert host.details().is_host == 1
    assert list(d) == [1, 3, 3, -1] and len(a) == len(b) == 4


@fact
def a_formula_with_operands():
    (a, at_a), (b, at_b), (d, at_d), (bias, at_bias) = numbers([1, 2, 3, -4]), numbers([1, 1, 0, 1]), numbers([9] * 4), numbers([.5, 1])
    operands = (api.operand * 1)(api.operand(name=b"bias", kind=api.PER_COLUMN))
    desc = api.matmul_desc(m=2, n=2, k=2, formula=b"d = max(v + bias, 0)", operands=operands, operand_count=1)
    with gemmepi.Context(gemmepi.HOST) as host:
        api.matmul(host, desc, api.matmul_args(a=at_a, b=at_b, d=at_d, operands=(ctypes.c_void_p * 1)(at_bias)), None)
    assert list(d) == [1.5, 4, 3.5, 0] and len(a) == len(b) == 2 * len(bias)


@fact
def a_layer_behind_another_by_pointers_to_structs():
    (a, at_a), (w, at_w), (p, at_p), (y, at_y) = numbers([1, -1]), numbers([2]), numbers([9] * 2), numbers([9] * 2)
    (w2, at_w2), (dy, at_dy), (g, at_g), (dw, at_dw) = numbers([3]), numbers([1, 1]), numbers([9] * 2), numbers([9])
    first = api.linear_desc(m=2, n=1, k=1, activation=api.SQUARED_RELU, flags=api.LINEAR_SAVED | api.LINEAR_DB | api.LINEAR_DY_IS_G)
    second = api.linear_desc(m=2, n=1, k=1, flags=api.LINEAR_DA, before=ctypes.pointer(first))
    of_first = api.linear_args(a=at_a, b=at_w, y=at_y, preact=at_p, dy=at_g, db=at_dw)
    of_second = api.linear_args(a=at_y, b=at_w2, dy=at_dy, da=at_g, before=ctypes.pointer(of_first))
    with gemmepi.Context(gemmepi.HOST) as host:
        api.linear(host, first, of_first, None)
        api.linear_backward(host, second, of_second, None)
        api.linear_backward(host, first, of_first, None)
    assert list(y) == [4, 0] and list(g) == [12, 0] and list(dw) == [12]
    assert len(a) == len(p) == len(dy) == 2 * len(w) == 2 * len(w2)


@fact
def what_is_refused_is_raised_with_the_sentence_and_the_status():
    with gemmepi.Context(gemmepi.HOST) as host:
        raises(gemmepi.Error, "desc.m is -2; accepted are 0 to 2^56", api.matmul, host, api.matmul_desc(m=-2), api.matmul_args(), None)
        try:
            api.plan_matmul(host, api.matmul_desc(m=-2), ctypes.byref(ctypes.c_void_p()))
        except gemmepi.Error as error:
            assert error.status == api.INVALID_ARGUMENT


@fact
def fields_that_are_not_there_and_numbers_that_do_not_fit_are_refused():
    desc = api.matmul_desc(m=2)
    raises(AttributeError, "matmul_desc has no field epilog; it has m, n, k", api.matmul_desc, m=2, epilog=api.RELU)
    raises(AttributeError, "matmul_desc has no field epilogues", setattr, desc, "epilogues", api.RELU)
    raises(AttributeError, "matrix has no field transpose; it has dtype, transposed", setattr, desc.a, "transpose", 1)
    raises(AttributeError, "matmul_args has no field bais", api.matmul_args, bais=8)
    raises(OverflowError, "matmul_desc.m cannot be 18446744073709551616: it holds 8 bytes", setattr, desc, "m", 2**64)
    raises(OverflowError, "matrix.transposed cannot be 4294967297", setattr, desc.a, "transposed", 2**32 + 1)
    desc.m, desc.a.transposed = -1, 1
    assert desc.m == -1 and desc.a.transposed == 1


@fact
def a_log_function_is_called():
    said = []
    log = api.log_function(lambda user, level, message: said.append(message))
    with gemmepi.Context(log=log):
        pass
    assert any(message.startswith((b"device ", b"no GPU can be used")) for message in said), said


@fact
def constants_structs_and_functions_have_the_names_of_the_header():
    assert api.VERSION == api.version() and api.BF16 == 4 and api.ACCUMULATE == 0x20000000
    assert gemmepi.__version__ == "%d.%d.%d" % (api.VERSION_MAJOR, api.VERSION_MINOR, api.VERSION_PATCH)
    assert api.status_name(api.NO_DEVICE) == b"GEMMEPI_NO_DEVICE" and api.dtype_size(api.E4M3) == 1


@fact
def what_tests_and_the_package_call_is_there():
    used = {}
    for path in [*glob.glob("tests/*/*.py"), "tests/package.py", *glob.glob("python/gemmepi/*.py")]:
        with open(path, encoding="utf-8") as file:
            nodes = ast.walk(ast.parse(file.read()))
        used.update((node.attr, "%s:%d" % (path, node.lineno)) for node in nodes
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "api")
    missing = sorted("%s has api.%s" % (place, name) for name, place in used.items() if not hasattr(api, name))
    assert len(used) > 80 and not missing, missing or len(used)


@fact
def without_pytorch_linear_and_formula_say_what_to_install():
    raises(ImportError, "pip install torch", lambda: gemmepi.linear)
    raises(ImportError, "pip install torch", lambda: gemmepi.formula)


@fact
def a_library_that_is_missing_or_of_another_version_is_named():
    code, said = run_python("import gemmepi", GEMMEPI_LIBRARY="/nowhere/libgemmepi.so")
    assert code == 1 and "/nowhere/libgemmepi.so" in said and "pip install" in said
    for other in "libm.so.6", os.environ["GEMMEPI_OTHER_VERSION"]:
        code, said = run_python("import gemmepi", GEMMEPI_LIBRARY=other)
        assert code == 1 and "%s has version" % other in said


@fact
def a_context_ends_once():
    context = gemmepi.Context(gemmepi.HOST)
    context.close()
    context.close()


run(sys.modules[__name__])
