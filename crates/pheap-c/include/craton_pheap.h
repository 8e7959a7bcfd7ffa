/* Craton's persistent heap: objects in a file or in persistent memory that outlive the process.
 *
 * An object and the pointer to it change together: after a crash both are there, or neither. A
 * pointer that survives is a craton_pptr, an offset in the heap, since the file may be mapped at
 * another address next time. A *slot* is a place for a craton_pptr: a root, which has a name, or a
 * field of an object. Programs give slots and objects by their addresses in the mapping.
 *
 *     craton_pheap *heap;
 *     craton_pptr *list;
 *     struct node *first;
 *     if (craton_pheap_open_or_create("list.heap", NULL, &heap)) die(craton_pheap_message());
 *     if (craton_pheap_root(heap, "list", 1, &list)) craton_pheap_add_root(heap, "list", 1, &list);
 *     craton_pheap_alloc_with(heap, list, sizeof *first, fill, argument, (void **)&first);
 *     ...
 *     craton_pheap_close(heap);
 *
 * Link with -lcraton_pheap. The library is not a malloc, and needs none of Craton's.
 *
 * Errors: functions of type int return 0 (CRATON_PHEAP_OK) or an error. After an error the heap is
 * as before, and outputs are not written. A null heap, or one that was closed a moment ago, is
 * CRATON_PHEAP_ARGUMENT.
 *
 * Threads: any thread may call any function at any time, but for those that say otherwise. Two
 * threads that change the same slot, or the same bytes, need a lock of the program's. No function may
 * be called in a signal handler. A forked child may end, and nothing else: functions that change the
 * heap are CRATON_PHEAP_FORKED there, and its writes to objects would be its parent's.
 *
 * Contents: the program reads and writes objects by plain memory accesses. Its writes to an object
 * that a slot has become durable in any order, at the latest with craton_pheap_persist. Slots are
 * changed by the functions here alone, but in a new object that no slot has yet. */
#ifndef CRATON_PHEAP_H
#define CRATON_PHEAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An offset in the heap of an object; 0 for none. */
typedef uint64_t craton_pptr;

typedef struct craton_pheap craton_pheap;
typedef struct craton_pheap_tx craton_pheap_tx;

enum craton_pheap_error {
    CRATON_PHEAP_OK = 0,
    CRATON_PHEAP_ARGUMENT = 1,       /* a null or unknown argument: the message names it */
    CRATON_PHEAP_NO_MEMORY = 2,      /* no free range is long enough, and the heap cannot grow: the disk
                                        is full, or a limit is reached */
    CRATON_PHEAP_NO_SIZE = 3,        /* an object of 0 bytes */
    CRATON_PHEAP_TOO_LARGE = 4,      /* more bytes than the heap can ever hold */
    CRATON_PHEAP_NOT_A_SLOT = 5,     /* not a multiple of 8, or outside of the roots and the data; that
                                        it lies in an object of the program's is not checked */
    CRATON_PHEAP_NULL = 6,           /* the slot holds 0 */
    CRATON_PHEAP_NOT_AN_OBJECT = 7,  /* the slot holds what is not the beginning of an object */
    CRATON_PHEAP_ALREADY_FREE = 8,   /* the slot holds an object that is free */
    CRATON_PHEAP_FOREIGN = 9,        /* an address outside of the heap's mapping */
    CRATON_PHEAP_OUT_OF_RANGE = 10,  /* a range, or an offset, beyond the heap */
    CRATON_PHEAP_TWICE = 11,         /* a slot or an object is named twice in one step */
    CRATON_PHEAP_TOO_MANY = 12,      /* more changes in one step than the heap allows */
    CRATON_PHEAP_TOO_MANY_TRANSACTIONS = 13, /* more at once than the heap has lanes */
    CRATON_PHEAP_NOT_RESERVED = 14,  /* an object that is not reserved, or no longer */
    CRATON_PHEAP_CANCELLED = 15,     /* the constructor refused */
    CRATON_PHEAP_BUSY = 16,          /* transactions are open */
    CRATON_PHEAP_FORKED = 17,        /* a forked child called: the heap is its parent's */
    CRATON_PHEAP_NO_ROOT = 20,       /* there is no root of this name */
    CRATON_PHEAP_ROOT_EXISTS = 21,   /* there is one */
    CRATON_PHEAP_ROOT_IN_USE = 22,   /* it still holds an object */
    CRATON_PHEAP_ROOT_NAME = 23,     /* names have 1 to 39 bytes */
    CRATON_PHEAP_ROOT_TYPE = 24,     /* it was made with another tag */
    CRATON_PHEAP_ROOTS_FULL = 25,    /* there are 960 roots */
    CRATON_PHEAP_NO_SYNC_POINTS = 30, /* not opened with CRATON_PHEAP_SYNC_POINTS */
    CRATON_PHEAP_HAS_JOURNAL = 31,   /* used with sync points and not closed: open it so again */
    CRATON_PHEAP_JOURNAL_ALONE = 32, /* the file to be made is missing, but its journal is there: restore
                                        the file, or remove the journal */
    CRATON_PHEAP_NO_JOURNAL = 33, /* not closed, and its journal is missing or empty */
    CRATON_PHEAP_OTHER_JOURNAL = 34, /* the journal is of another heap, or of this one at another time */
    CRATON_PHEAP_MISSING = 40,       /* no such file or folder */
    CRATON_PHEAP_EXISTS = 41,        /* the file exists, or the device holds a heap */
    CRATON_PHEAP_IN_USE = 42,        /* open already, here or in another process; or a killed process
                                        has not ended yet: try again */
    CRATON_PHEAP_NOT_A_FILE = 43,    /* a folder, a socket, or another kind without contents */
    CRATON_PHEAP_READ_ONLY = 44,     /* a read-only file system */
    CRATON_PHEAP_DENIED = 45,        /* the user may not */
    CRATON_PHEAP_LENGTH = 46,        /* not a whole number of pages: no heap, or cut */
    CRATON_PHEAP_TOO_LONG = 47,      /* longer than the option limit */
    CRATON_PHEAP_FULL = 48,          /* the disk or the quota is full */
    CRATON_PHEAP_ADDRESS_SPACE = 49, /* no address space of the option limit */
    CRATON_PHEAP_SYSTEM = 50,        /* a system call failed: the message names it */
    CRATON_PHEAP_NO_WRITE_BACK = 51, /* the processor has no instruction for CRATON_PHEAP_FLUSH */
    CRATON_PHEAP_NOT_A_HEAP = 60,    /* the file holds something else */
    CRATON_PHEAP_VERSION = 61,       /* a heap of another version of the format */
    CRATON_PHEAP_DAMAGED = 62,       /* the message names part and offset; nothing was changed */
    CRATON_PHEAP_TRUNCATED = 63,     /* the file is shorter than the heap */
    CRATON_PHEAP_CONFIG = 64,        /* a setting that a heap cannot have: the message names it */
    CRATON_PHEAP_PANICKED = 90,      /* damage or a bug was found in the middle of a call: every
                                        call fails from now on; close the heap, and open it again
                                        to repair it */
};

/* A short text for an error. */
const char *craton_pheap_strerror(int error);

/* The text of this thread's last error: the function, the file, and what was wrong with which
 * value. Valid until the thread's next error. Empty before the first. */
const char *craton_pheap_message(void);

/* Heaps */

enum craton_pheap_durability {
    CRATON_PHEAP_AUTO = 0,        /* by what the file lies on: see craton_pheap_promise */
    CRATON_PHEAP_FLUSH = 1,       /* write lines back in any case */
    CRATON_PHEAP_NO_FLUSH = 2,    /* never: caches persist, or only the process may end */
    CRATON_PHEAP_SYNC_POINTS = 3  /* on an ordinary disk: craton_pheap_sync makes all changes up to
                                     then durable; a crash brings the last sync point back */
};

enum craton_pheap_model {
    CRATON_PHEAP_LOG = 0, /* each change of an object and its slot is logged */
    CRATON_PHEAP_GC = 1,  /* small objects are not logged; after a crash, what the roots do not reach
                             is free. craton_pptrs must lie at multiples of 8; each such word that
                             could be one keeps the object that it names */
    CRATON_PHEAP_FRAMES = 2 /* as LOG, with large objects in page frames and no log of them: the best
                               where caches are persistent */
};

struct craton_pheap_options {
    size_t size;       /* of this struct: sizeof(struct craton_pheap_options) */
    uint64_t limit;    /* bytes that the file may grow to while it is open; 0: 64 GiB */
    /* The rest but durability counts when the heap is made. */
    uint64_t most;     /* bytes beyond which the heap never grows; 0: none */
    int durability;    /* enum craton_pheap_durability */
    int model;         /* enum craton_pheap_model */
    unsigned lanes;    /* threads beyond this number share a lane, and transactions at once; 0: 64 */
    unsigned stripes;  /* of bitmaps, 1 to 8; 0: as the file asks for */
};

/* Makes a heap in a new file, durably, or on a device (DAX or block) without a heap, and opens it.
 * NULL options are zeros. */
int craton_pheap_create(const char *path, const struct craton_pheap_options *options,
                        craton_pheap **heap);

/* Opens a heap, and repairs it if it was not closed. A damaged one is refused, and not changed. */
int craton_pheap_open(const char *path, const struct craton_pheap_options *options,
                      craton_pheap **heap);

/* The same; makes the heap first if the path does not exist. */
int craton_pheap_open_or_create(const char *path, const struct craton_pheap_options *options,
                                craton_pheap **heap);

struct craton_pheap_report {
    uint64_t clean;      /* 1: the heap had been closed */
    uint64_t generation; /* how often it was opened, with this time */
    uint64_t lines;      /* logged changes that were done again */
    uint64_t torn;       /* lines of changes that had not happened as a whole */
    uint64_t slots;      /* slots that got their value again */
    uint64_t undone;     /* transactions that were undone */
    uint64_t collected;  /* objects that no root reached (CRATON_PHEAP_GC) */
    uint64_t small;      /* objects of up to 16128 bytes, buffers of transactions included */
    uint64_t large;      /* larger ones */
};

/* The findings and repairs of the opening. `size` is sizeof(struct craton_pheap_report). */
int craton_pheap_report(craton_pheap *heap, struct craton_pheap_report *into, size_t size);

/* Ends the use of a heap; no other thread may be using it. Reserved objects are freed. All is durable
 * as far as the file promises, with sync points on the disk, and the next opening repairs nothing.
 * CRATON_PHEAP_BUSY while transactions are open, and nothing happens. After any other error the heap
 * is gone, and the next opening finds the state of a crash. NULL has no effect.
 *
 * A process that ends without this leaves the state of a crash as well: nothing is lost but, with
 * sync points, what changed since the last. */
int craton_pheap_close(craton_pheap *heap);

enum craton_pheap_promise {
    CRATON_PHEAP_PROCESS_CRASH = 1,         /* changes survive the end of the process */
    CRATON_PHEAP_POWER_FAILURE_AT_SYNC = 2, /* and those before a sync point everything */
    CRATON_PHEAP_POWER_FAILURE = 3          /* changes survive everything */
};

/* The failure that changes survive; 0 for a null heap. */
int craton_pheap_promise(craton_pheap *heap);

/* Makes all changes up to now durable, all or none: on a disk, a sync point. Threads that call it at
 * once share the wait. Functions of this heap wait meanwhile; no thread may write to objects by
 * itself. CRATON_PHEAP_NO_SYNC_POINTS where changes survive the end of the process alone. After an
 * error (a full disk) the last sync point stands, and the next call tries again. */
int craton_pheap_sync(craton_pheap *heap);

/* Gives free memory back to the system. Call it every 50 ms or so, where that matters. The file keeps
 * its length until craton_pheap_close: the address of a freed object stays mapped. */
int craton_pheap_maintain(craton_pheap *heap);

/* Roots */

/* Adds a root with an empty slot, durably. `tag` is the program's number for the type of the object
 * behind it. */
int craton_pheap_add_root(craton_pheap *heap, const char *name, uint64_t tag, craton_pptr **slot);

/* The slot of a root. CRATON_PHEAP_ROOT_TYPE if it was added with another tag. */
int craton_pheap_root(craton_pheap *heap, const char *name, uint64_t tag, craton_pptr **slot);

/* Removes a root whose slot is empty, durably. */
int craton_pheap_remove_root(craton_pheap *heap, const char *name);

/* Calls a function with each root. */
typedef void (*craton_pheap_root_function)(void *argument, const char *name, craton_pptr *slot,
                                           uint64_t tag);
int craton_pheap_each_root(craton_pheap *heap, craton_pheap_root_function function, void *argument);

/* Offsets and addresses */

/* The address of an offset; NULL for 0 and beyond the heap. It stays while the heap is open. */
void *craton_pheap_pointer(craton_pheap *heap, craton_pptr offset);

/* The offset of an address; 0 for NULL and for addresses outside of the heap. */
craton_pptr craton_pheap_offset(craton_pheap *heap, const void *pointer);

/* Objects: of 1 byte or more, at multiples of 16. `object`, if not NULL, gets the address. */

/* Allocates an object and stores its offset in the slot. Its contents are not defined. An offset
 * that is in the slot is dropped: read it first, or use craton_pheap_replace. */
int craton_pheap_alloc_to(craton_pheap *heap, craton_pptr *slot, size_t size, void **object);

/* The same with contents, which `constructor` writes and which are durable before the slot has the
 * object. If it returns other than 0, the object is free again, and the call CRATON_PHEAP_CANCELLED.
 * It may call functions of the heap; it must return (no longjmp, no exception). */
typedef int (*craton_pheap_constructor)(void *object, void *argument);
int craton_pheap_alloc_with(craton_pheap *heap, craton_pptr *slot, size_t size,
                            craton_pheap_constructor constructor, void *argument, void **object);

/* Frees the object of the slot and stores 0 there. */
int craton_pheap_free_from(craton_pheap *heap, craton_pptr *slot);

/* Gives the slot's object another size; its contents stay, as far as they fit, and may move. An
 * empty slot gets a new object. */
int craton_pheap_realloc(craton_pheap *heap, craton_pptr *slot, size_t size, void **object);

/* Stores an offset, or 0, in a slot. */
int craton_pheap_set(craton_pheap *heap, craton_pptr *slot, craton_pptr value);

/* Makes bytes of objects durable, as they are now. */
int craton_pheap_persist(craton_pheap *heap, const void *from, size_t bytes);

/* The bytes that an object can hold: at least as many as were asked for. */
int craton_pheap_usable_size(craton_pheap *heap, const void *object, size_t *bytes);

/* Reserve, initialise, publish. A crash frees objects that are not published. */

/* Chooses an object. The program writes to it, and then publishes it or cancels it, once. */
int craton_pheap_reserve(craton_pheap *heap, size_t size, void **object);
int craton_pheap_cancel(craton_pheap *heap, void *object);

/* Makes a reserved object durable, and stores its offset in the slot. An offset there is dropped;
 * craton_pheap_replace frees that object in the same step. The program gives the reserved object up:
 * after an error it is free. */
int craton_pheap_publish(craton_pheap *heap, craton_pptr *slot, void *object);
int craton_pheap_replace(craton_pheap *heap, craton_pptr *slot, void *object);

/* Batches */

enum craton_pheap_change_kind {
    CRATON_PHEAP_PUBLISH = 1, /* the slot gets the reserved object, which becomes durable */
    CRATON_PHEAP_FREE = 2,    /* the slot's object is freed, and the slot gets the value */
    CRATON_PHEAP_SET = 3      /* the slot gets the value */
};

struct craton_pheap_change {
    int kind;          /* enum craton_pheap_change_kind */
    craton_pptr *slot; /* may lie in an object that an earlier change publishes */
    void *object;      /* for CRATON_PHEAP_PUBLISH */
    craton_pptr value; /* for the others: an offset, or 0 */
};

/* Does all changes, at most 63, or none, by one step that a crash does not divide. Each slot and each
 * object comes once. After an error the reserved objects of all PUBLISH are free. */
int craton_pheap_batch(craton_pheap *heap, const struct craton_pheap_change *changes, size_t count);

/* Transactions: ranges that the program changes by itself, and objects, all or none. One thread at a
 * time uses a transaction. Slots change at the commit: each once at most, and at most 62 of them, or
 * the commit is CRATON_PHEAP_TOO_MANY. Ranges have no limit but the heap's room. */

/* Begins a transaction. As many can be open as the heap has lanes. */
int craton_pheap_begin(craton_pheap *heap, craton_pheap_tx **tx);

/* Keeps bytes of objects, so that the program may change them from now on. They come back if the
 * transaction does not commit, also after a crash. */
int craton_pheap_tx_snapshot(craton_pheap_tx *tx, void *from, size_t bytes);

/* Changes for the commit. The contents of a new object become durable with it. A reserved object is
 * given up: free after an error, and when the transaction is undone. */
int craton_pheap_tx_alloc(craton_pheap_tx *tx, craton_pptr *slot, size_t size, void **object);
int craton_pheap_tx_publish(craton_pheap_tx *tx, craton_pptr *slot, void *object);
int craton_pheap_tx_free(craton_pheap_tx *tx, craton_pptr *slot, craton_pptr value);
int craton_pheap_tx_set(craton_pheap_tx *tx, craton_pptr *slot, craton_pptr value);

/* Makes all changes durable and ends the transaction. After an error all is undone, and the
 * transaction has ended, too. */
int craton_pheap_commit(craton_pheap_tx *tx);

/* Undoes all changes and ends the transaction. */
int craton_pheap_abort(craton_pheap_tx *tx);

/* Checks. No other thread may be changing the heap. */

struct craton_pheap_stats {
    uint64_t bytes;        /* of the file */
    uint64_t slabs;        /* units of 64 KiB with small objects */
    uint64_t small;        /* objects of up to 16128 bytes */
    uint64_t small_bytes;  /* that those can hold */
    uint64_t large;        /* larger objects */
    uint64_t large_bytes;
    uint64_t reserved;     /* objects that are reserved by craton_pheap_reserve */
    uint64_t transactions; /* that are open */
};

/* The heap's contents in numbers. `size` is sizeof(struct craton_pheap_stats). */
int craton_pheap_stats(craton_pheap *heap, struct craton_pheap_stats *into, size_t size);

/* Checks every invariant, the roots, and what they point to: CRATON_PHEAP_DAMAGED with the place. */
int craton_pheap_check(craton_pheap *heap);

#ifdef __cplusplus
}
#endif

#endif
