/* memcached under load while the page cache grows and goes (LLFree section 5.8, figure 11).
 *
 * A turn sends batches of requests over sockets and reads the disk between them, so that pages of
 * memcached lie among pages of the cache. At its end the cache is dropped, and the free huge frames
 * of the largest zone are counted. First memcached grows (one set for each get); then it is full and
 * evicts (one set for ten gets, as memtier does by default); then it is started again, empty.
 * Each value that comes back is checked. */
#define _GNU_SOURCE
#include "guest.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define PROGRAM "/usr/bin/memcached"
#define SOCKET "/tmp/memcached.socket"
#define DISK "/dev/vda"
#define CONNECTIONS 32
#define BATCHES 500 /* for each turn */
#define KEYS 60000ul
#define MOST_BYTES 8192ul
#define PARTS 48ul /* of the disk's bytes that a turn reads */

enum { GROWS, FULL, AGAIN, PHASES };
static const char *const phases[PHASES] = { "grows", "full", "again" };

struct load {
	pid_t server;
	int connections[CONNECTIONS];
	int disk;
	uint64_t seed;
	off_t read_at;
	unsigned long sets, refused, gets, hits;
	uint64_t set_ns, get_ns;
};

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed >> 11;
}

/* A key decides its value: all bytes are equal. */
static size_t bytes_of(unsigned long key)
{
	return 64 + key * 2654435761ul % (MOST_BYTES - 64);
}

static char byte_of(unsigned long key)
{
	return 'a' + key % 26;
}

static void start_server(struct load *load)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SOCKET };
	/* Half of the memory is the page cache's. */
	long mib = number_in("/proc/meminfo", "MemTotal:", 1024) * 3 / 8 / MIB;
	char megabytes[16];

	if (access(PROGRAM, X_OK) < 0)
		fail("memcached: the guest has no %s: run scripts/linux.sh memcached", PROGRAM);
	snprintf(megabytes, sizeof(megabytes), "%ld", mib);
	unlink(SOCKET);
	load->server = fork();
	if (load->server < 0)
		fail("memcached: fork: %s", strerror(errno));
	if (load->server == 0) {
		execl(PROGRAM, "memcached", "-u", "root", "-m", megabytes, "-t", "1", "-s", SOCKET, NULL);
		_exit(127);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		int socket_of = socket(AF_UNIX, SOCK_STREAM, 0);

		if (socket_of < 0)
			fail("memcached: socket: %s", strerror(errno));
		while (connect(socket_of, (struct sockaddr *)&address, sizeof(address)) < 0) {
			if (waitpid(load->server, NULL, WNOHANG) != 0)
				fail("memcached ended at its start");
			usleep(10000);
		}
		load->connections[i] = socket_of;
	}
}

static void stop_server(struct load *load)
{
	for (int i = 0; i < CONNECTIONS; i++)
		close(load->connections[i]);
	kill(load->server, SIGKILL);
	waitpid(load->server, NULL, 0);
}

static void send_all(int to, const char *text, size_t bytes)
{
	for (size_t sent = 0; sent < bytes;) {
		ssize_t now_sent = write(to, text + sent, bytes - sent);

		if (now_sent <= 0)
			fail("memcached takes no request: %s", strerror(errno));
		sent += now_sent;
	}
}

/* Until the answer ends with `end`, or is an error. */
static size_t receive(int from, char *text, size_t room, const char *end)
{
	size_t got = 0, tail = strlen(end);

	do {
		ssize_t some = read(from, text + got, room - got);

		if (some <= 0)
			fail("memcached gives no answer: %s", some < 0 ? strerror(errno) : "it ended");
		got += some;
		if (got > 13 && !memcmp(text, "SERVER_ERROR ", 13) && text[got - 1] == '\n')
			break;
	} while (got < tail || memcmp(text + got - tail, end, tail));
	return got;
}

static void check_value(const char *answer, size_t bytes, unsigned long key)
{
	const char *value = memchr(answer, '\n', bytes);
	size_t expected = bytes_of(key);

	if (!value || (size_t)(answer + bytes - ++value) != expected + strlen("\r\nEND\r\n"))
		fail("memcached: the value of key %lu has another length than %zu", key, expected);
	for (size_t at = 0; at < expected; at++)
		if (value[at] != byte_of(key))
			fail("memcached: byte %zu of key %lu is %#x", at, key, value[at]);
}

/* One request on each connection. */
static void send_batch(struct load *load, int is_set)
{
	static char text[MOST_BYTES + 128];
	unsigned long keys[CONNECTIONS];
	uint64_t begin = now(), *sum = is_set ? &load->set_ns : &load->get_ns;

	for (int i = 0; i < CONNECTIONS; i++) {
		size_t head;

		keys[i] = next(&load->seed) % KEYS;
		if (!is_set) {
			head = sprintf(text, "get %lu\r\n", keys[i]);
		} else {
			size_t bytes = bytes_of(keys[i]);

			head = sprintf(text, "set %lu 0 0 %zu\r\n", keys[i], bytes);
			memset(text + head, byte_of(keys[i]), bytes);
			memcpy(text + head + bytes, "\r\n", 2);
			head += bytes + 2;
		}
		send_all(load->connections[i], text, head);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		size_t got = receive(load->connections[i], text, sizeof(text), is_set ? "\r\n" : "END\r\n");

		if (is_set) {
			load->sets++;
			load->refused += memcmp(text, "STORED", 6) != 0;
			continue;
		}
		load->gets++;
		if (got > strlen("END\r\n")) {
			load->hits++;
			check_value(text, got, keys[i]);
		}
	}
	*sum += now() - begin;
}

static void read_disk(struct load *load, size_t bytes)
{
	static char part[128 << 10];

	for (size_t got = 0; got < bytes;) {
		ssize_t some = pread(load->disk, part, sizeof(part), load->read_at);

		if (some < 0)
			fail("%s: %s", DISK, strerror(errno));
		load->read_at = some == 0 ? 0 : load->read_at + some;
		got += some;
	}
}

struct zone {
	long managed, free_frames, free_huge, first, spanned;
};

/* The zone with most memory: its free frames, and wholly free huge frames of both allocators. */
static struct zone largest_zone(void)
{
	struct zone best = {}, here = {};
	char line[256], name[32] = "", best_name[32] = "";
	FILE *file = fopen("/proc/zoneinfo", "r");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %*d, zone %31s", name) == 1)
			here = (struct zone){};
		sscanf(line, " pages free %ld", &here.free_frames);
		sscanf(line, " spanned %ld", &here.spanned);
		if (sscanf(line, " managed %ld", &here.managed) == 1 && here.managed > best.managed) {
			best = here;
			strcpy(best_name, name);
		}
		if (sscanf(line, " start_pfn: %ld", &here.first) == 1 && !strcmp(name, best_name))
			best.first = here.first;
	}
	if (file)
		fclose(file);
	file = fopen("/proc/buddyinfo", "r");
	while (file && fgets(line, sizeof(line), file)) {
		long of[11];

		if (sscanf(line, "Node %*d, zone %31s %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld", name, &of[0], &of[1], &of[2],
			   &of[3], &of[4], &of[5], &of[6], &of[7], &of[8], &of[9], &of[10]) == 12 && !strcmp(name, best_name))
			best.free_huge = of[9] + 2 * of[10];
	}
	if (file)
		fclose(file);
	if (number_in("/proc/craton", "free huge frames", 1) > 0)
		best.free_huge += number_in("/proc/craton", "free huge frames", 1);
	return best;
}

/* Frames of one use, and the huge frames that they lie in. */
struct use {
	long frames, huge;
};

enum { ANONYMOUS, CACHED, SLAB, TABLES, USES };

/* What keeps huge frames from being free (Documentation/admin-guide/mm/pagemap.rst). */
static void find_uses(const struct zone *zone, struct use uses[USES])
{
	static const uint64_t flags[USES] = { 1ull << 12, 1ull << 5, 1ull << 7, 1ull << 26 };
	static uint64_t pages[HUGE / PAGE];
	int flags_of = open("/proc/kpageflags", O_RDONLY);

	memset(uses, 0, USES * sizeof(*uses));
	if (flags_of < 0)
		fail("/proc/kpageflags: %s", strerror(errno));
	for (long huge = zone->first / 512; huge < (zone->first + zone->spanned) / 512; huge++) {
		ssize_t got = pread(flags_of, pages, sizeof(pages), huge * sizeof(pages));
		long here[USES] = {};

		for (size_t i = 0; got > 0 && i < got / sizeof(*pages); i++)
			for (int use = 0; use < USES; use++)
				if (pages[i] & flags[use]) {
					here[use]++;
					break;
				}
		for (int use = 0; use < USES; use++) {
			uses[use].frames += here[use];
			uses[use].huge += here[use] > 0;
		}
	}
	close(flags_of);
}

static void take_turn(struct load *load, int turn, int phase)
{
	size_t share = number_in("/proc/meminfo", "MemTotal:", 1024) * 3 / 4 / PARTS;
	char path[64];
	struct zone before, after;
	struct use uses[USES];
	long cached, resident;

	load->sets = load->refused = load->gets = load->hits = load->set_ns = load->get_ns = 0;
	for (unsigned long batch = 0; batch < BATCHES; batch++) {
		send_batch(load, phase == FULL ? batch % 11 == 0 : batch % 2);
		if (batch * PARTS / BATCHES != (batch + 1) * PARTS / BATCHES)
			read_disk(load, share);
	}
	cached = number_in("/proc/meminfo", "Buffers:", 1024) + number_in("/proc/meminfo", "Cached:", 1024);
	before = largest_zone();
	free_bytes();
	write_to("/proc/craton", "drain");
	after = largest_zone();
	find_uses(&after, uses);
	snprintf(path, sizeof(path), "/proc/%d/status", load->server);
	resident = number_in(path, "VmRSS:", 1024);
	say("{\"step\":\"memcached\",\"turn\":%d,\"phase\":\"%s\",\"sets\":%lu,\"refused\":%lu,\"gets\":%lu,\"hits\":%lu,"
	    "\"set_ns\":%llu,\"get_ns\":%llu,\"memcached_bytes\":%ld,\"cached_bytes\":%ld,"
	    "\"free_huge_cached\":%ld,\"free_frames\":%ld,\"free_huge\":%ld,"
	    "\"anonymous\":[%ld,%ld],\"cached\":[%ld,%ld],\"slab\":[%ld,%ld],\"tables\":[%ld,%ld]}",
	    turn, phases[phase], load->sets, load->refused, load->gets, load->hits, (unsigned long long)load->set_ns,
	    (unsigned long long)load->get_ns, resident, cached, before.free_huge, after.free_frames, after.free_huge,
	    uses[ANONYMOUS].frames, uses[ANONYMOUS].huge, uses[CACHED].frames, uses[CACHED].huge, uses[SLAB].frames,
	    uses[SLAB].huge, uses[TABLES].frames, uses[TABLES].huge);
}

void load_memcached(int turns)
{
	struct load load = { .seed = 88172645463325252ull, .disk = open(DISK, O_RDONLY) };

	if (load.disk < 0)
		fail("%s: %s: run scripts/linux.sh memcached", DISK, strerror(errno));
	/* The paper has no compaction in this benchmark. */
	write_to("/proc/sys/vm/compaction_proactiveness", "0");
	start_server(&load);
	for (int turn = 0; turn < turns; turn++) {
		int phase = turn * PHASES / turns;

		if (phase == AGAIN && (turn - 1) * PHASES / turns != AGAIN) {
			stop_server(&load);
			start_server(&load);
		}
		take_turn(&load, turn, phase);
	}
	stop_server(&load);
	close(load.disk);
}
