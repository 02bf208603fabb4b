"""gemmepi's C interface by ctypes, made of api.json when this module is imported.

Names are the header's without gemmepi_ and GEMMEPI_: api.matmul_desc is a struct, api.BF16 a constant, api.matmul a function. A function that
returns a status raises Error where that is not OK, with the library's sentence. Structs are passed as they are, texts as bytes, and pointers
as integers, ctypes objects or None; a gemmepi.Context is its handle.
"""
import ctypes
import json
import os
import re
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_SIMPLE = {"int": ctypes.c_int, "unsigned": ctypes.c_uint, "float": ctypes.c_float, "double": ctypes.c_double, "char": ctypes.c_char,
           "size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "void": None}


class Error(RuntimeError):
    """What gemmepi says of a call that failed; `status` is its gemmepi_status, as api.INVALID_ARGUMENT."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


def _short(name):
    return name[len("gemmepi_"):]


def _load():
    path = os.environ.get("GEMMEPI_LIBRARY") or os.path.join(
        _FOLDER, {"win32": "gemmepi.dll", "darwin": "libgemmepi.dylib"}.get(sys.platform, "libgemmepi.so"))
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError("gemmepi's shared library cannot be loaded: %s. pip install ./python builds it; "
                          "the environment variable GEMMEPI_LIBRARY names another" % error) from None
    version, expected = getattr(library, "gemmepi_version", lambda: "none")(), _description["constants"]["GEMMEPI_VERSION"]
    if version != expected:
        raise ImportError("%s has version %s of gemmepi, and this package is made for version %d: build both from one checkout"
                          % (path, version, expected))
    return library


class _Struct(ctypes.Structure):
    """A struct that takes no field that it has not, and no number that the field cannot hold, as ctypes does in silence."""

    def __setattr__(self, name, value):
        if name not in self._names:
            raise AttributeError("%s has no field %s; it has %s" % (type(self).__name__, name, ", ".join(self._names)))
        super().__setattr__(name, value)
        if type(value) is int and getattr(self, name) != value and isinstance(getattr(self, name), int):
            raise OverflowError("%s.%s cannot be %d: it holds %d bytes" % (type(self).__name__, name, value, getattr(type(self), name).size))


class _Types:
    """ctypes' types of api.json's, structs among them, each made once."""

    def __init__(self, description):
        self.description, self.made = description, dict(_SIMPLE)

    def function(self, kind):
        result, parameters = re.fullmatch(r"(.*?) ?\(\*\)\((.*)\)", kind).groups()
        return ctypes.CFUNCTYPE(self.field(result), *[self.field(parameter) for parameter in parameters.split(", ")])

    def field(self, kind):
        """The type of a struct's field."""
        kind = kind.replace("const ", "", 1) if kind.startswith("const ") else kind
        array = re.fullmatch(r"(.*)\[(\d+)\]", kind)
        if array:
            return self.field(array[1]) * int(array[2])
        if "(*)" in kind:
            return self.function(kind)
        if kind.endswith("*"):
            target = kind[:-1].strip()
            if target == "char":
                return ctypes.c_char_p
            if "*" in target or target == "int64_t":  # arrays on the host
                return ctypes.POINTER(ctypes.c_int64 if target == "int64_t" else ctypes.c_void_p)
            return ctypes.POINTER(self.field(target)) if target in self.description["structs"] else ctypes.c_void_p
        return self.named(kind)

    def named(self, name):
        if name not in self.made:
            if name in self.description["enums"]:
                self.made[name] = ctypes.c_int
            elif name in self.description["structs"]:
                self.struct(name, self.description["structs"][name])
            else:
                self.made[name] = self.field(self.description["types"][name])
        return self.made[name]

    def struct(self, name, content):
        self.made[name] = made = type(_short(name), (_Struct,), {"__module__": __name__})  # before its fields, which may point to such
        made._fields_ = [(field, self.field(kind)) for field, kind, _, _ in content["fields"]]
        made._names = dict.fromkeys(field for field, _ in made._fields_)  # in their order
        places = [[field, getattr(made, field).offset, getattr(made, field).size] for field, _, _, _ in content["fields"]]
        if ctypes.sizeof(made) != content["size"] or places != [[field, *place] for field, _, *place in content["fields"]]:
            raise ImportError("this Python lays %s out otherwise than api.json says: it needs a 64-bit Python" % name)

    def parameter(self, kind):
        """The type of a function's parameter: structs are passed by reference, and all other pointers are addresses."""
        target = kind.replace("const ", "").rstrip("*").strip()
        if kind.endswith("*") and not kind.endswith("**"):
            if target in self.description["structs"]:
                return ctypes.POINTER(self.named(target))
            return ctypes.c_char_p if kind == "const char *" else ctypes.c_void_p
        if "*" in kind or "(*)" in self.description["types"].get(kind, ""):
            return ctypes.c_void_p
        return self.named(kind)


def fail(status):
    raise Error(status, _library.gemmepi_last_error().decode("utf-8", "replace"))


def _check(status, function, arguments):
    if status:
        fail(status)


def unchecked(name, *parameters):
    """A function of the library that returns its status, with parameters of these types."""
    function = _library["gemmepi_" + name]
    function.argtypes = parameters
    return function


def _fill(module):
    types = _Types(_description)
    for values in [_description["constants"], *_description["enums"].values()]:
        module.update((_short(name), value) for name, value in values.items())
    for name in [*_description["structs"], *_description["types"]]:
        module[_short(name)] = types.named(name)
    for name, content in _description["functions"].items():
        function = getattr(_library, name)
        function.argtypes = [types.parameter(kind) for _, kind in content["parameters"]]
        if content["returns"] == "gemmepi_status":
            function.errcheck = _check
        else:
            function.restype = types.field(content["returns"])
        module[_short(name)] = function


_places = [os.path.join(_FOLDER, "api.json"), os.path.join(_FOLDER, "..", "..", "docs", "api.json")]  # as installed, and in a checkout
with open(next(filter(os.path.exists, _places), _places[0]), encoding="utf-8") as _file:
    _description = json.load(_file)
_library = _load()
_library.gemmepi_last_error.restype = ctypes.c_char_p
_fill(globals())
SIZES = (ctypes.c_size_t * len(_description["sizes"]))(*[_description["structs"][_name]["size"] for _name in _description["sizes"]])  # for create_for
