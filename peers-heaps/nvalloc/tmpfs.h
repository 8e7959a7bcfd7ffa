/* Read before each of NVAlloc's sources: what it expects of Optane under DAX, on tmpfs. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* DAX maps a file at a multiple of 2 MiB, on which NVAlloc relies. */
static inline void *mmap_aligned(size_t bytes, int protection, int flags, int file, off_t from)
{
	const size_t huge = (size_t)2 << 20;
	if (bytes % huge)
		return mmap(NULL, bytes, protection, flags, file, from);
	char *room = mmap(NULL, bytes + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return room;
	char *start = (char *)(((uintptr_t)room + huge - 1) & ~(huge - 1));
	if (start > room)
		munmap(room, start - room);
	munmap(start + bytes, room + huge - start);
	return mmap(start, bytes, protection, flags | MAP_FIXED, file, from);
}
#define mmap(at, bytes, protection, flags, file, from) mmap_aligned(bytes, protection, flags, file, from)

#if defined NO_FLUSH /* as where caches persist (eADR) */
#define _mm_clwb(at) ((void)(at))
#define _mm_sfence() __asm__ volatile("" ::: "memory")
#elif defined NO_CLWB /* a processor without this instruction */
#define _mm_clwb(at) _mm_clflushopt((void *)(at))
#endif
