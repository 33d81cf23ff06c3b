/*
 * What the standard library's locks and counts order, told to ThreadSanitizer.
 *
 * A mutex's fast path is inlined into instrumented code; but whoever has to
 * wait does so inside the standard library, which is not instrumented: there
 * the lock is taken unseen, and everything behind it looks like a race. The
 * linker puts these functions around those (--wrap), and they say what
 * happened. The names are the toolchain's: see sanitize.sh.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void __tsan_acquire(void *place);
void __tsan_release(void *place);

#define NAMED(prefix, name) __asm__(prefix name)

void real_lock(void *mutex) NAMED("__real_", LOCK_CONTENDED);
void lock(void *mutex) NAMED("__wrap_", LOCK_CONTENDED);

void lock(void *mutex)
{
	real_lock(mutex);
	__tsan_acquire(mutex);
}

void real_wait(void *condvar, void *mutex) NAMED("__real_", WAIT);
void wait_on(void *condvar, void *mutex) NAMED("__wrap_", WAIT);

void wait_on(void *condvar, void *mutex)
{
	__tsan_release(mutex);
	real_wait(condvar, mutex);
	__tsan_acquire(mutex);
}

bool real_wait_timeout(void *condvar, void *mutex, uint64_t secs, uint32_t nanos)
	NAMED("__real_", WAIT_TIMEOUT);
bool wait_timeout(void *condvar, void *mutex, uint64_t secs, uint32_t nanos)
	NAMED("__wrap_", WAIT_TIMEOUT);

bool wait_timeout(void *condvar, void *mutex, uint64_t secs, uint32_t nanos)
{
	__tsan_release(mutex);
	bool notified = real_wait_timeout(condvar, mutex, secs, nanos);
	__tsan_acquire(mutex);
	return notified;
}

/* A thread of a scope has ended. Its scope waits for a count that is somewhere
 * in these three words. */
void real_ended(uintptr_t *scope, bool panicked) NAMED("__real_", THREAD_ENDED);
void thread_ended(uintptr_t *scope, bool panicked) NAMED("__wrap_", THREAD_ENDED);

void thread_ended(uintptr_t *scope, bool panicked)
{
	for (int word = 0; word < 3; word++)
		__tsan_release(scope + word);
	real_ended(scope, panicked);
}

/* The last owner of an `Arc` sees what every other did with it: each has counted
 * itself out with a release, and the last acquires the count with a fence, which
 * ThreadSanitizer does not model. */
uint64_t real_fetch_sub(volatile uint64_t *count, uint64_t amount, int order)
	NAMED("__real_", "__tsan_atomic64_fetch_sub");
uint64_t fetch_sub(volatile uint64_t *count, uint64_t amount, int order)
	NAMED("__wrap_", "__tsan_atomic64_fetch_sub");
void real_fence(int order) NAMED("__real_", "__tsan_atomic_thread_fence");
void fence(int order) NAMED("__wrap_", "__tsan_atomic_thread_fence");

static __thread volatile uint64_t *last_count;

uint64_t fetch_sub(volatile uint64_t *count, uint64_t amount, int order)
{
	last_count = order == __ATOMIC_RELEASE ? count : NULL;
	return real_fetch_sub(count, amount, order);
}

void fence(int order)
{
	if (last_count && order == __ATOMIC_ACQUIRE)
		__tsan_acquire((void *)last_count);
	last_count = NULL;
	real_fence(order);
}
