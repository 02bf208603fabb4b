/* What compilers and systems call the same things. Everything above speaks only these names. */
#ifndef GEMMEPI_BASE_PLATFORM_H
#define GEMMEPI_BASE_PLATFORM_H

#include "../api/functions.h"

#if defined(__TINYC__)
#error \
    "gemmepi: tcc has no thread-local variables and no atomics: compile the file with GEMMEPI_IMPLEMENTATION with gcc or clang, and link with it"
#endif

#include <limits.h>
#include <stdarg.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#define GPI__WINDOWS 1
#else
#define GPI__WINDOWS 0
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define GPI__THREAD_LOCAL __declspec(thread)
#define GPI__PRINTF(at, first)
#else
#define GPI__THREAD_LOCAL __thread
#if GPI__WINDOWS && !defined(__clang__)
#define GPI__PRINTF(at, first) __attribute__((format(gnu_printf, at, first)))
#else
#define GPI__PRINTF(at, first) __attribute__((format(printf, at, first)))
#endif
#endif

/* The calling convention of the CUDA libraries' functions and of their callbacks. */
#if GPI__WINDOWS
#define GPI__CUDA_CALL __stdcall
#else
#define GPI__CUDA_CALL
#endif

/* A system function that strict C99 hides from its own header, declared privately: the linker's name is given, so
   that a declaration the header does make cannot disagree. On macOS, where some of these functions have several names,
   the headers hide nothing, and theirs are used (GPI__HEADERS_HIDE 0). */
#if !GPI__WINDOWS
#define GPI__SYSTEM_NAME(name) __asm__(name)
#endif
#if defined(__APPLE__)
#define GPI__HEADERS_HIDE 0
#else
#define GPI__HEADERS_HIDE 1
#endif

/* GCC at -O2 spends most of its time on what runs once for a plan or a call. What stands between these two it optimises as for a
   debugger (-Og), which takes it a third of the time. What runs for each element never stands there: functions of different
   options are not inlined into each other. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__EDG__) && !defined(__CUDACC__) && \
    defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define GPI__OPTIMIZE_LITTLE_BEGIN \
    _Pragma("GCC push_options") _Pragma("GCC optimize (\"Og\", \"inline-small-functions\")")
#define GPI__OPTIMIZE_LITTLE_END _Pragma("GCC pop_options")
#else
#define GPI__OPTIMIZE_LITTLE_BEGIN
#define GPI__OPTIMIZE_LITTLE_END
#endif

/* Where formulas are left out nobody has one (`of`: what may), so that compilers drop what asks. */
#ifdef GEMMEPI_NO_FORMULA
#define GPI__HAS_FORMULAS 0
#else
#define GPI__HAS_FORMULAS 1
#endif
#define GPI__FORMULA(of) (GPI__HAS_FORMULAS ? (of)->formula : NULL)
#define GPI__NO_FORMULAS "desc.formula is given, but formulas are left out of this build (GEMMEPI_NO_FORMULA)"

/* room for a path that the system gives, with its final zero: Linux's PATH_MAX, which strict C99 hides */
#define GPI__PATH_SIZE 4096

static int gpi__is_slash(char c) {
    return c == '/' || (GPI__WINDOWS && c == '\\');
}

static int gpi__is_absolute(const char *path) {
    if (GPI__WINDOWS && path[0] && path[1] == ':')
        return gpi__is_slash(path[2]);
    return gpi__is_slash(path[0]);
}

#define GPI__COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* sizes are printed as unsigned long long everywhere: %zu is unknown to older Windows runtimes */
typedef unsigned long long gpi__ull;

#endif
