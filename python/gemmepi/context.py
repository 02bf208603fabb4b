"""A context of gemmepi: one GPU, or the host."""
import ctypes
import sys

from . import api

HOST = api.DEVICE_HOST


class Context:
    """Opens a device: gemmepi.HOST, or the number of a CUDA device from 0; None is a GPU if there is one, else the host. Other fields of
    gemmepi_config are keywords, as log or cache_path. Pass it where a function of gemmepi.api has a context. It closes with `with`, by
    close(), or when nothing refers to it any more."""

    def __init__(self, device=None, **config):
        self._as_parameter_ = ctypes.c_void_p()
        self.config = api.config(device=0 if device is None else device if device == HOST else device + 1, **config)
        api.create_for(api.VERSION, api.SIZES, len(api.SIZES), self.config, ctypes.byref(self._as_parameter_))

    def details(self):
        found = api.context_details()
        api.context_info(self, found)
        return found

    def close(self):
        handle, self._as_parameter_ = self._as_parameter_, ctypes.c_void_p()
        api.destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_as_parameter_", None) and not sys.is_finalizing():
            self.close()
