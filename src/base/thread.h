/* Mutexes and conditions, threads of our own, and the few atomic operations that the lock-free paths need. */
#ifndef GEMMEPI_BASE_THREAD_H
#define GEMMEPI_BASE_THREAD_H

#include "platform.h"

#if GPI__WINDOWS
typedef SRWLOCK gpi__mutex;

static int gpi__mutex_init(gpi__mutex *mutex) {
    InitializeSRWLock(mutex);
    return 1;
}
static void gpi__mutex_destroy(gpi__mutex *mutex) {
    (void)mutex;
}
static void gpi__lock(gpi__mutex *mutex) {
    AcquireSRWLockExclusive(mutex);
}
static void gpi__unlock(gpi__mutex *mutex) {
    ReleaseSRWLockExclusive(mutex);
}

typedef CONDITION_VARIABLE gpi__condition;

static int gpi__condition_init(gpi__condition *condition) {
    InitializeConditionVariable(condition);
    return 1;
}
static void gpi__condition_destroy(gpi__condition *condition) {
    (void)condition;
}
static void gpi__wait(gpi__condition *condition, gpi__mutex *mutex) {
    SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}
static void gpi__wake_all(gpi__condition *condition) {
    WakeAllConditionVariable(condition);
}

typedef HANDLE gpi__thread;
#define GPI__THREAD_BODY(name) static DWORD WINAPI name(void *user)

/* 0 if the system gives no thread. */
static int gpi__thread_start(gpi__thread *thread, DWORD(WINAPI *body)(void *), void *user) {
    *thread = CreateThread(NULL, 0, body, user, 0, NULL);
    return *thread != NULL;
}
static void gpi__thread_join(gpi__thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}
static void gpi__rest(int milliseconds) {
    Sleep((DWORD)milliseconds);
}
/* Since some moment. */
static double gpi__seconds(void) {
    return 1e-3 * (double)GetTickCount64();
}
static int gpi__core_count(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwNumberOfProcessors;
}
#else
#include <poll.h>
#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>
typedef pthread_mutex_t gpi__mutex;

static int gpi__mutex_init(gpi__mutex *mutex) {
    return pthread_mutex_init(mutex, NULL) == 0;
}
static void gpi__mutex_destroy(gpi__mutex *mutex) {
    pthread_mutex_destroy(mutex);
}
static void gpi__lock(gpi__mutex *mutex) {
    pthread_mutex_lock(mutex);
}
static void gpi__unlock(gpi__mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

typedef pthread_cond_t gpi__condition;

static int gpi__condition_init(gpi__condition *condition) {
    return pthread_cond_init(condition, NULL) == 0;
}
static void gpi__condition_destroy(gpi__condition *condition) {
    pthread_cond_destroy(condition);
}
/* Lets go of the mutex while it waits. May wake up early. */
static void gpi__wait(gpi__condition *condition, gpi__mutex *mutex) {
    pthread_cond_wait(condition, mutex);
}
static void gpi__wake_all(gpi__condition *condition) {
    pthread_cond_broadcast(condition);
}

typedef pthread_t gpi__thread;
#define GPI__THREAD_BODY(name) static void *name(void *user)

/* 0 if the system gives no thread. */
static int gpi__thread_start(gpi__thread *thread, void *(*body)(void *), void *user) {
    return pthread_create(thread, NULL, body, user) == 0;
}
static void gpi__thread_join(gpi__thread thread) {
    pthread_join(thread, NULL);
}
static void gpi__rest(int milliseconds) {
    poll(NULL, 0, milliseconds);
}
/* Since some moment. */
static double gpi__seconds(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
}
static int gpi__core_count(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > 1024 ? 1024 : (int)count;
}
#endif

/* A pointer that one thread publishes under a lock and others follow without one. */
typedef void *gpi__atomic_pointer;

#if defined(_MSC_VER) && !defined(__clang__)
static void *gpi__load_pointer(gpi__atomic_pointer const *place) {
    void *pointer = *(void *const volatile *)place;
    MemoryBarrier();
    return pointer;
}
static void gpi__publish_pointer(gpi__atomic_pointer *place, void *pointer) {
    InterlockedExchangePointer(place, pointer);
}
static long gpi__add(long *counter, long amount) {
    return InterlockedExchangeAdd((volatile LONG *)counter, amount) + amount;
}
static long gpi__read(const long *counter) {
    long value = *(const volatile long *)counter;
    MemoryBarrier();
    return value;
}
#else
static void *gpi__load_pointer(gpi__atomic_pointer const *place) {
    return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static void gpi__publish_pointer(gpi__atomic_pointer *place, void *pointer) {
    __atomic_store_n(place, pointer, __ATOMIC_RELEASE);
}
static long gpi__add(long *counter, long amount) {
    return __atomic_add_fetch(counter, amount, __ATOMIC_ACQ_REL);
}
/* Returns a counter that other threads add to. */
static long gpi__read(const long *counter) {
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}
#endif

/* How often this process is the child of a fork() since gpi__watch_forks was first called. A child has none of its
   parent's other threads, so a lock that one of them held stays held: what belongs to an earlier count must not be used.
   Counting costs a run nothing, where getpid is a system call. */
static long gpi__forks;

#if GPI__WINDOWS
static int gpi__watch_forks(void) {
    return 1;
}
#else
static gpi__atomic_pointer gpi__forks_are_watched;

static void gpi__count_fork(void) {
    gpi__forks++; /* no other thread is there yet */
}

/* 0 if the system has no memory for it. Without a lock: threads that call it at once count twice, which does not matter. */
static int gpi__watch_forks(void) {
    if (gpi__load_pointer(&gpi__forks_are_watched))
        return 1;
    if (pthread_atfork(NULL, NULL, gpi__count_fork) != 0)
        return 0;
    gpi__publish_pointer(&gpi__forks_are_watched, &gpi__forks);
    return 1;
}
#endif

static long gpi__threads_numbered; /* by this file: with GEMMEPI_STATIC each has its own numbers */

/* A number that this file gave no other thread of the process. */
static uintptr_t gpi__thread_number(void) {
    static GPI__THREAD_LOCAL long mine;
    if (!mine)
        mine = gpi__add(&gpi__threads_numbered, 1);
    return (uintptr_t)mine;
}

#endif
