/* The shared library: `make shared`, CMake's gemmepi::shared and the package in python/ compile this file. Its public functions are exported,
   and nothing else. */
#if defined(_WIN32)
#define GEMMEPI_API __declspec(dllexport)
#else
#define GEMMEPI_API __attribute__((visibility("default")))
#endif
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
