/* Craton's persistent heap for C++17: pointers that hold wherever the heap is mapped, typed roots,
 * objects by constructor, transactions that undo themselves.
 *
 *     struct node {
 *         craton::pptr<node> next;
 *         long value;
 *     };
 *     craton::persistent_heap heap("list.heap");
 *     auto &list = heap.root_or_add<node>("list");
 *     heap.make(list, node{list, 7});              // pushed: whole, or not at all
 *     for (auto at = list; at; at = at->next) std::printf("%ld\n", at->value);
 *
 * Header only; link with -lcraton_pheap. craton_pheap.h has the contract of each call. Errors are
 * craton::pheap_error; after one the heap is as before. */
#ifndef CRATON_PHEAP_HPP
#define CRATON_PHEAP_HPP

#include "craton_pheap.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace craton {

/* An error of the heap. what() is the text of craton_pheap_message. */
class pheap_error : public std::runtime_error {
  public:
    explicit pheap_error(int code) : std::runtime_error(craton_pheap_message()), code_(code) {}
    /* One of enum craton_pheap_error. */
    int code() const noexcept { return code_; }

  private:
    int code_;
};

namespace detail {

inline void check(int status) {
    if (status != CRATON_PHEAP_OK) throw pheap_error(status);
}

/* Where the heap of this kind is mapped in this process; 0 while none is open. */
template <class Kind> inline std::uintptr_t base = 0;

template <class T> constexpr void check_type() {
    static_assert(!std::is_pointer_v<T>, "an address means nothing to the next process: use craton::pptr");
    static_assert(!std::is_polymorphic_v<T>, "virtual functions are addresses, which change");
    static_assert(alignof(T) <= 16, "objects of the heap lie at multiples of 16");
}

} // namespace detail

/* The kind of a program's only heap. A program with several at a time makes a struct for each. */
struct default_heap {};

/* The tag of a type's roots: T::pheap_tag if there is one, else the size of T, which differs when
 * the type has changed its fields. */
template <class T, class = void> struct pheap_tag {
    static constexpr std::uint64_t value = sizeof(T);
};
template <class T> struct pheap_tag<T, std::void_t<decltype(T::pheap_tag)>> {
    static constexpr std::uint64_t value = T::pheap_tag;
};

/* A pointer that survives: an offset in the open heap of this kind. As a root or as a field of an
 * object it is a slot. Objects and fields of new objects may be assigned to; other slots change by
 * the calls of heap, batch and transaction. */
template <class T, class Kind = default_heap> class pptr {
  public:
    pptr() noexcept = default;
    pptr(std::nullptr_t) noexcept {}
    /* Of an object in the heap; null of one elsewhere would be an error that nothing reports, so
     * use it for what the heap returned. */
    explicit pptr(T *object) noexcept
        : offset_(object ? reinterpret_cast<std::uintptr_t>(object) - detail::base<Kind> : 0) {}
    static pptr from_offset(craton_pptr offset) noexcept {
        pptr pointer;
        pointer.offset_ = offset;
        return pointer;
    }

    T *get() const noexcept {
        return offset_ ? reinterpret_cast<T *>(detail::base<Kind> + offset_) : nullptr;
    }
    T *operator->() const noexcept { return get(); }
    T &operator*() const noexcept { return *get(); }
    explicit operator bool() const noexcept { return offset_ != 0; }
    friend bool operator==(pptr a, pptr b) noexcept { return a.offset_ == b.offset_; }
    friend bool operator!=(pptr a, pptr b) noexcept { return a.offset_ != b.offset_; }

    craton_pptr offset() const noexcept { return offset_; }
    /* The slot for calls of C. */
    craton_pptr *slot() noexcept { return &offset_; }

  private:
    craton_pptr offset_ = 0;
};

static_assert(sizeof(pptr<int>) == sizeof(craton_pptr));
static_assert(std::is_standard_layout_v<pptr<int>> && std::is_trivially_copyable_v<pptr<int>>);

/* An object that is made, and that no crash keeps until it is published. Frees it otherwise. */
template <class T, class Kind = default_heap> class reserved {
  public:
    reserved(craton_pheap *heap, T *object) noexcept : heap_(heap), object_(object) {}
    reserved(reserved &&other) noexcept : heap_(other.heap_), object_(std::exchange(other.object_, nullptr)) {}
    reserved &operator=(reserved &&other) noexcept {
        std::swap(heap_, other.heap_);
        std::swap(object_, other.object_);
        return *this;
    }
    ~reserved() {
        if (object_) craton_pheap_cancel(heap_, object_);
    }
    T *operator->() const noexcept { return object_; }
    T &operator*() const noexcept { return *object_; }
    pptr<T, Kind> pointer() const noexcept { return pptr<T, Kind>(object_); }
    /* Gives the object up without freeing it. */
    T *release() noexcept { return std::exchange(object_, nullptr); }

    void publish(pptr<T, Kind> &slot) { detail::check(craton_pheap_publish(heap_, slot.slot(), release())); }
    /* And frees the slot's object in the same step. */
    void replace(pptr<T, Kind> &slot) { detail::check(craton_pheap_replace(heap_, slot.slot(), release())); }

  private:
    craton_pheap *heap_;
    T *object_;
};

/* An open heap. One of each kind at a time. */
template <class Kind = default_heap> class basic_persistent_heap {
  public:
    /* Opens the heap of a file or device, and makes it if the path does not exist. */
    explicit basic_persistent_heap(const char *path, const craton_pheap_options &options = zeros()) {
        start(craton_pheap_open_or_create, path, options);
    }
    /* Makes a new one; opens one that exists. */
    static basic_persistent_heap create(const char *path, const craton_pheap_options &options = zeros()) {
        return basic_persistent_heap(craton_pheap_create, path, options);
    }
    static basic_persistent_heap open(const char *path, const craton_pheap_options &options = zeros()) {
        return basic_persistent_heap(craton_pheap_open, path, options);
    }
    /* Options to start from. */
    static craton_pheap_options zeros() noexcept {
        craton_pheap_options options = {};
        options.size = sizeof options;
        return options;
    }

    basic_persistent_heap(basic_persistent_heap &&other) noexcept : heap_(std::exchange(other.heap_, nullptr)) {}
    basic_persistent_heap &operator=(basic_persistent_heap &&) = delete;
    /* Closes the heap. An error is lost: call close() where that matters. */
    ~basic_persistent_heap() {
        if (heap_ && craton_pheap_close(std::exchange(heap_, nullptr)) != CRATON_PHEAP_BUSY) detail::base<Kind> = 0;
    }
    void close() {
        const int status = craton_pheap_close(heap_);
        if (status != CRATON_PHEAP_BUSY) {
            heap_ = nullptr;
            detail::base<Kind> = 0;
        }
        detail::check(status);
    }

    craton_pheap *get() const noexcept { return heap_; }

    /* The slot of the root of this name. */
    template <class T> pptr<T, Kind> &root(const char *name) {
        craton_pptr *slot = nullptr;
        detail::check(craton_pheap_root(heap_, name, pheap_tag<T>::value, &slot));
        return *reinterpret_cast<pptr<T, Kind> *>(slot);
    }
    template <class T> pptr<T, Kind> &add_root(const char *name) {
        craton_pptr *slot = nullptr;
        detail::check(craton_pheap_add_root(heap_, name, pheap_tag<T>::value, &slot));
        return *reinterpret_cast<pptr<T, Kind> *>(slot);
    }
    template <class T> pptr<T, Kind> &root_or_add(const char *name) {
        craton_pptr *slot = nullptr;
        const int status = craton_pheap_root(heap_, name, pheap_tag<T>::value, &slot);
        if (status == CRATON_PHEAP_NO_ROOT) return add_root<T>(name);
        detail::check(status);
        return *reinterpret_cast<pptr<T, Kind> *>(slot);
    }

    /* Makes an object; the slot has it once it is constructed and durable. A pointer that is in the
     * slot is dropped. An exception of the constructor passes through, and nothing has changed. */
    template <class T, class... Args> pptr<T, Kind> make(pptr<T, Kind> &slot, Args &&...args) {
        reserved<T, Kind> object = reserve<T>(std::forward<Args>(args)...);
        const pptr<T, Kind> pointer = object.pointer();
        object.publish(slot);
        return pointer;
    }

    /* Destroys the slot's object and frees it. */
    template <class T> void destroy(pptr<T, Kind> &slot) {
        if constexpr (!std::is_trivially_destructible_v<T>) {
            if (slot) slot->~T();
        }
        detail::check(craton_pheap_free_from(heap_, slot.slot()));
    }

    /* Makes an object that no crash keeps until it is published. */
    template <class T, class... Args> reserved<T, Kind> reserve(Args &&...args) {
        detail::check_type<T>();
        void *at = nullptr;
        detail::check(craton_pheap_reserve(heap_, sizeof(T), &at));
        try {
            return reserved<T, Kind>(heap_, ::new (at) T{std::forward<Args>(args)...});
        } catch (...) {
            craton_pheap_cancel(heap_, at);
            throw;
        }
    }

    /* Stores a pointer in a slot. */
    template <class T> void link(pptr<T, Kind> &slot, pptr<T, Kind> pointer) {
        detail::check(craton_pheap_set(heap_, slot.slot(), pointer.offset()));
    }

    /* Makes an object durable, as it is now. */
    template <class T> void persist(const T &object) {
        detail::check(craton_pheap_persist(heap_, &object, sizeof object));
    }

    void sync() { detail::check(craton_pheap_sync(heap_)); }
    void check() { detail::check(craton_pheap_check(heap_)); }
    void maintain() { detail::check(craton_pheap_maintain(heap_)); }

    struct craton_pheap_report report() const {
        struct craton_pheap_report report = {};
        detail::check(::craton_pheap_report(heap_, &report, sizeof report));
        return report;
    }
    struct craton_pheap_stats stats() const {
        struct craton_pheap_stats stats = {};
        detail::check(::craton_pheap_stats(heap_, &stats, sizeof stats));
        return stats;
    }

  private:
    using opener = int (*)(const char *, const craton_pheap_options *, craton_pheap **);
    basic_persistent_heap(opener f, const char *path, const craton_pheap_options &options) { start(f, path, options); }
    void start(opener f, const char *path, const craton_pheap_options &options) {
        if (detail::base<Kind>) throw std::logic_error("craton: a heap of this kind is open: give each a kind");
        detail::check(f(path, &options, &heap_));
        detail::base<Kind> = reinterpret_cast<std::uintptr_t>(craton_pheap_pointer(heap_, 1)) - 1;
    }

    craton_pheap *heap_ = nullptr;
};

using persistent_heap = basic_persistent_heap<>;

/* Changes that happen together, or not at all, by one step. */
class batch {
  public:
    template <class Kind> explicit batch(basic_persistent_heap<Kind> &heap) : heap_(heap.get()) {}
    batch(const batch &) = delete;
    ~batch() {
        for (auto &change : changes_)
            if (change.object) craton_pheap_cancel(heap_, change.object);
    }

    /* The slot gets the object. */
    template <class T, class Kind> pptr<T, Kind> publish(pptr<T, Kind> &slot, reserved<T, Kind> object) {
        changes_.push_back({CRATON_PHEAP_PUBLISH, slot.slot(), nullptr, 0});
        const pptr<T, Kind> pointer = object.pointer();
        changes_.back().object = object.release();
        return pointer;
    }
    /* Frees the slot's object, and stores a pointer there: the next of a list. */
    template <class T, class Kind> void free(pptr<T, Kind> &slot, pptr<T, Kind> next = nullptr) {
        changes_.push_back({CRATON_PHEAP_FREE, slot.slot(), nullptr, next.offset()});
    }
    template <class T, class Kind> void link(pptr<T, Kind> &slot, pptr<T, Kind> pointer) {
        changes_.push_back({CRATON_PHEAP_SET, slot.slot(), nullptr, pointer.offset()});
    }
    void commit() {
        const std::vector<craton_pheap_change> changes = std::exchange(changes_, {});
        detail::check(craton_pheap_batch(heap_, changes.data(), changes.size()));
    }

  private:
    craton_pheap *heap_;
    std::vector<craton_pheap_change> changes_;
};

/* Values and objects that change together. Undone when it is destroyed without commit(). */
class transaction {
  public:
    template <class Kind> explicit transaction(basic_persistent_heap<Kind> &heap) {
        detail::check(craton_pheap_begin(heap.get(), &tx_));
    }
    transaction(const transaction &) = delete;
    ~transaction() {
        if (tx_) craton_pheap_abort(tx_);
    }

    /* The object, which may be changed from now on: but for its slots. */
    template <class T> T &change(T &object) {
        detail::check(craton_pheap_tx_snapshot(tx_, &object, sizeof object));
        return object;
    }
    /* Makes an object; the slot has it once the transaction commits. */
    template <class T, class Kind, class... Args> T &make(pptr<T, Kind> &slot, Args &&...args) {
        detail::check_type<T>();
        void *at = nullptr;
        detail::check(craton_pheap_tx_alloc(tx_, slot.slot(), sizeof(T), &at));
        return *::new (at) T{std::forward<Args>(args)...};
    }
    /* Frees the slot's object at the commit, and stores a pointer there. No destructor runs. */
    template <class T, class Kind> void free(pptr<T, Kind> &slot, pptr<T, Kind> next = nullptr) {
        static_assert(std::is_trivially_destructible_v<T>, "a transaction that is undone would need the object back");
        detail::check(craton_pheap_tx_free(tx_, slot.slot(), next.offset()));
    }
    template <class T, class Kind> void link(pptr<T, Kind> &slot, pptr<T, Kind> pointer) {
        detail::check(craton_pheap_tx_set(tx_, slot.slot(), pointer.offset()));
    }
    /* Makes all changes durable. If the heap refuses, all is undone. */
    void commit() { detail::check(craton_pheap_commit(std::exchange(tx_, nullptr))); }

  private:
    craton_pheap_tx *tx_ = nullptr;
};

} // namespace craton

#endif
