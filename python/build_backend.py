"""Builds the package gemmepi for pip: compiles the header into a shared library and packs it with the modules and api.json.

Needs a C compiler (CC, else cc, gcc or clang; CFLAGS, else -O2) and nothing else: no setuptools, no CUDA, no network. The header and api.json are those of the
checkout that this folder is in, in an sdist those in its `source`.
"""
import base64
import hashlib
import io
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = {"gemmepi.h": "gemmepi.h", "shared.c": "src/shared.c", "api.json": "docs/api.json", "LICENSE": "LICENSE"}  # in an sdist: in a checkout
LIBRARIES = {"win32": "gemmepi.dll", "darwin": "libgemmepi.dylib"}
METADATA = """Metadata-Version: 2.1
Name: gemmepi
Version: %s
Summary: Matrix products with their epilogue in one pass, on NVIDIA GPUs and on the host
License: MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown

`gemmepi.linear`, `gemmepi.network` and `gemmepi.formula` for PyTorch, and the C interface by ctypes. docs/python.md of the repository says more.
"""


def source(name):
    packed, checkout = HERE / "source" / name, HERE.parent / SOURCES[name]
    for path in (packed, checkout):
        if path.is_file():
            return path
    sys.exit("%s is missing: build from a checkout of gemmepi (pip install ./python), or from its sdist" % checkout)


def version():
    return json.loads(source("api.json").read_text(encoding="utf-8"))["version"]


def compiler():
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    sys.exit("there is no C compiler (cc, gcc, clang): install one, or name it in the environment variable CC")


def library(folder):
    """Compiles the shared library, and returns its path."""
    path = pathlib.Path(folder) / LIBRARIES.get(sys.platform, "libgemmepi.so")
    kind = ["-shared", "-static"] if sys.platform == "win32" else ["-shared", "-fPIC", "-fvisibility=hidden"]
    libraries = ["-lpthread"] if sys.platform == "win32" else ["-lm", "-ldl", "-lpthread"]
    command = [*compiler(), "-std=c99", *shlex.split(os.environ.get("CFLAGS", "-O2")), *kind, "-I", str(source("gemmepi.h").parent), str(source("shared.c")), "-o", str(path), *libraries]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit("gemmepi.h does not compile with %s: %s" % (command[0], error))
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    information = "gemmepi-%s.dist-info/" % version()
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    name = "gemmepi-%s-%s.whl" % (version(), tag)
    record = []
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, content):
            wheel.writestr(path, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append("%s,sha256=%s,%d" % (path, digest, len(content)))

        for path in [*sorted((HERE / "gemmepi").glob("*.py")), source("api.json"), library(folder)]:
            add("gemmepi/" + path.name, path.read_bytes())
        add(information + "licenses/LICENSE", source("LICENSE").read_bytes())
        add(information + "METADATA", (METADATA % version()).encode())
        add(information + "WHEEL", ("Wheel-Version: 1.0\nGenerator: gemmepi\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode())
        wheel.writestr(information + "RECORD", "\n".join([*record, information + "RECORD,,", ""]))
    return name


def build_sdist(sdist_directory, config_settings=None):
    top = "gemmepi-%s" % version()
    files = {"pyproject.toml": HERE / "pyproject.toml", "build_backend.py": HERE / "build_backend.py"}
    files.update(("gemmepi/" + path.name, path) for path in sorted((HERE / "gemmepi").glob("*.py")))
    files.update(("source/" + name, source(name)) for name in SOURCES)
    with tarfile.open(os.path.join(sdist_directory, top + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, path in files.items():
            archive.add(path, "%s/%s" % (top, name))
        information = tarfile.TarInfo(top + "/PKG-INFO")
        information.size = len((METADATA % version()).encode())
        archive.addfile(information, io.BytesIO((METADATA % version()).encode()))
    return top + ".tar.gz"
