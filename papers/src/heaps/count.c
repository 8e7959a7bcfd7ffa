/* libpmem's functions that libpmemobj calls. They flush nothing, and report what they would have
 * flushed. Loaded before libpmemobj, so that the dynamic linker finds them first. */
#include <stddef.h>
#include <string.h>

/* From libpmem.h. */
enum { NODRAIN = 1, NOFLUSH = 32 };

static void (*on_flush)(const void *at, size_t bytes);
static void (*on_fence)(void);

void craton_count(void (*flush)(const void *, size_t), void (*fence)(void))
{
	on_flush = flush;
	on_fence = fence;
}

void pmem_flush(const void *at, size_t bytes)
{
	if (on_flush)
		on_flush(at, bytes);
}

void pmem_deep_flush(const void *at, size_t bytes)
{
	pmem_flush(at, bytes);
}

void pmem_drain(void)
{
	if (on_fence)
		on_fence();
}

void pmem_persist(const void *at, size_t bytes)
{
	pmem_flush(at, bytes);
	pmem_drain();
}

int pmem_msync(const void *at, size_t bytes)
{
	pmem_persist(at, bytes);
	return 0;
}

static void *written(void *at, size_t bytes, unsigned flags)
{
	if (!(flags & NOFLUSH)) {
		pmem_flush(at, bytes);
		if (!(flags & NODRAIN))
			pmem_drain();
	}
	return at;
}

void *pmem_memmove(void *to, const void *from, size_t bytes, unsigned flags)
{
	return written(memmove(to, from, bytes), bytes, flags);
}

void *pmem_memcpy(void *to, const void *from, size_t bytes, unsigned flags)
{
	return pmem_memmove(to, from, bytes, flags);
}

void *pmem_memset(void *to, int byte, size_t bytes, unsigned flags)
{
	return written(memset(to, byte, bytes), bytes, flags);
}
