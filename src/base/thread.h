/* Mutexes, and the few atomic operations that the lock-free paths need. */
#ifndef GEMMEPI_BASE_THREAD_H
#define GEMMEPI_BASE_THREAD_H

#include "platform.h"

#if GEMMEPI__WINDOWS
typedef SRWLOCK gemmepi__mutex;

static int gemmepi__mutex_init(gemmepi__mutex *mutex) {
    InitializeSRWLock(mutex);
    return 1;
}
static void gemmepi__mutex_destroy(gemmepi__mutex *mutex) {
    (void)mutex;
}
static void gemmepi__lock(gemmepi__mutex *mutex) {
    AcquireSRWLockExclusive(mutex);
}
static void gemmepi__unlock(gemmepi__mutex *mutex) {
    ReleaseSRWLockExclusive(mutex);
}
#else
#include <pthread.h>
typedef pthread_mutex_t gemmepi__mutex;

static int gemmepi__mutex_init(gemmepi__mutex *mutex) {
    return pthread_mutex_init(mutex, NULL) == 0;
}
static void gemmepi__mutex_destroy(gemmepi__mutex *mutex) {
    pthread_mutex_destroy(mutex);
}
static void gemmepi__lock(gemmepi__mutex *mutex) {
    pthread_mutex_lock(mutex);
}
static void gemmepi__unlock(gemmepi__mutex *mutex) {
    pthread_mutex_unlock(mutex);
}
#endif

/* A pointer that one thread publishes under a lock and others follow without one. */
typedef void *gemmepi__atomic_pointer;

#if defined(_MSC_VER) && !defined(__clang__)
static void *gemmepi__load_pointer(gemmepi__atomic_pointer const *place) {
    void *pointer = *(void *const volatile *)place;
    MemoryBarrier();
    return pointer;
}
static void gemmepi__publish_pointer(gemmepi__atomic_pointer *place, void *pointer) {
    InterlockedExchangePointer(place, pointer);
}
static long gemmepi__add(long *counter, long amount) {
    return InterlockedExchangeAdd((volatile LONG *)counter, amount) + amount;
}
#else
static void *gemmepi__load_pointer(gemmepi__atomic_pointer const *place) {
    return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static void gemmepi__publish_pointer(gemmepi__atomic_pointer *place, void *pointer) {
    __atomic_store_n(place, pointer, __ATOMIC_RELEASE);
}
static long gemmepi__add(long *counter, long amount) {
    return __atomic_add_fetch(counter, amount, __ATOMIC_ACQ_REL);
}
#endif

/* A number that no other thread of the process has, or had before. */
static uintptr_t gemmepi__thread_number(void) {
    static long last;
    static GEMMEPI__THREAD_LOCAL long mine;
    if (!mine)
        mine = gemmepi__add(&last, 1);
    return (uintptr_t)mine;
}

#endif
