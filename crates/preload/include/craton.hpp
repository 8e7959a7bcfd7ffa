/* Craton for C++17: memory resources and allocators over heaps that are destroyed whole, object
 * caches, and a memory resource over those.
 *
 *     craton::memory_resource requests("requests");
 *     std::pmr::vector<int> numbers(&requests);
 *     requests.stats().object_bytes;
 *
 * Header only; link Craton as for craton.h. Nothing here is thread-local: any thread may use any
 * resource. */
#ifndef CRATON_HPP
#define CRATON_HPP

#include "craton.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

namespace craton {

/* Owns a heap, and destroys it with all its objects. */
class heap {
  public:
    /* Throws std::invalid_argument for a name that is too long or not printable or for a bad flag,
     * std::bad_alloc without memory. */
    explicit heap(std::string_view name = {}, std::size_t limit = 0, unsigned flags = 0) {
        char text[33] = {};
        if (name.find('\0') != name.npos) throw std::invalid_argument("craton::heap: a name has no zero byte");
        if (name.size() >= sizeof text) throw std::invalid_argument("craton::heap: a name has at most 31 bytes");
        std::memcpy(text, name.data(), name.size());
        const craton_heap_options options = {sizeof(craton_heap_options), text, limit, flags};
        heap_ = craton_heap_create(&options);
        if (heap_ == nullptr && errno == EINVAL)
            throw std::invalid_argument("craton::heap: a name has at most 31 printable bytes, and flags are CRATON_HEAP_*");
        if (heap_ == nullptr) throw std::bad_alloc();
    }
    heap(heap &&other) noexcept : heap_(std::exchange(other.heap_, nullptr)) {}
    heap &operator=(heap &&other) noexcept {
        std::swap(heap_, other.heap_);
        return *this;
    }
    heap(const heap &) = delete;
    heap &operator=(const heap &) = delete;
    ~heap() { craton_heap_destroy(heap_); }

    craton_heap *get() const noexcept { return heap_; }

    /* Throws std::bad_alloc without memory, at the limit, and for alignments above 2 MiB. */
    void *allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) {
        void *object = craton_heap_aligned_alloc(heap_, align, bytes);
        if (object == nullptr) throw std::bad_alloc();
        return object;
    }
    void deallocate(void *object) noexcept { craton_heap_free(heap_, object); }

    struct craton_heap_stats stats() const noexcept {
        struct craton_heap_stats counts = {};
        ::craton_heap_stats(heap_, &counts, sizeof counts);
        return counts;
    }

  private:
    craton_heap *heap_ = nullptr;
};

/* A heap as a std::pmr::memory_resource; statistics show its name. Its destructor frees what was
 * not deallocated. */
class memory_resource final : public std::pmr::memory_resource {
  public:
    explicit memory_resource(std::string_view name = {}, std::size_t limit = 0, unsigned flags = 0)
        : heap_(name, limit, flags) {}

    craton_heap *get() const noexcept { return heap_.get(); }
    struct craton_heap_stats stats() const noexcept { return heap_.stats(); }

  private:
    void *do_allocate(std::size_t bytes, std::size_t align) override { return heap_.allocate(bytes, align); }
    void do_deallocate(void *object, std::size_t, std::size_t) override { heap_.deallocate(object); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    heap heap_;
};

/* A standard allocator over a heap. The heap must outlive it. */
template <class T> class allocator {
  public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    explicit allocator(heap &from) noexcept : heap_(from.get()) {}
    explicit allocator(memory_resource &from) noexcept : heap_(from.get()) {}
    template <class U> allocator(const allocator<U> &other) noexcept : heap_(other.get()) {}

    T *allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        void *object = craton_heap_aligned_alloc(heap_, alignof(T), count * sizeof(T));
        if (object == nullptr) throw std::bad_alloc();
        return static_cast<T *>(object);
    }
    void deallocate(T *objects, std::size_t) noexcept { craton_heap_free(heap_, objects); }

    craton_heap *get() const noexcept { return heap_; }

    template <class U> bool operator==(const allocator<U> &other) const noexcept { return heap_ == other.get(); }
    template <class U> bool operator!=(const allocator<U> &other) const noexcept { return heap_ != other.get(); }

  private:
    craton_heap *heap_;
};

/* Options of an object cache. */
struct cache_options {
    std::size_t limit_objects = 0;   /* 0 for no limit */
    std::size_t limit_bytes = 0;     /* likewise */
    unsigned working_set_ms = 0;     /* 0 for 15 s */
    unsigned flags = 0;              /* of enum craton_cache_flag */
    std::size_t align = 0;           /* more than alignof(T), if not 0 */
};

namespace detail {

/* Owns a cache and destroys it, except while objects are in use: the cache then stays. */
class cache_handle {
  public:
    cache_handle(std::string_view name, craton_cache_options options) {
        char text[33] = {};
        if (name.find('\0') != name.npos) throw std::invalid_argument("craton: the name of a cache has no zero byte");
        if (name.size() >= sizeof text) throw std::invalid_argument("craton: the name of a cache has at most 31 bytes");
        std::memcpy(text, name.data(), name.size());
        options.size = sizeof options;
        options.name = text;
        cache_ = craton_cache_create(&options);
        if (cache_ == nullptr && errno == EINVAL)
            throw std::invalid_argument("craton: a cache's name is UTF-8 of at most 31 bytes without characters that are not seen "
                                        "and without \" \\ : + , =, and no number; its objects have 1 byte to 1 MiB, its alignment is a power of two up to 1 MiB");
        if (cache_ == nullptr) throw std::bad_alloc();
    }
    cache_handle(const cache_handle &) = delete;
    cache_handle &operator=(const cache_handle &) = delete;
    ~cache_handle() { craton_cache_destroy(cache_); }
    craton_cache *get() const noexcept { return cache_; }

  private:
    craton_cache *cache_;
};

/* The exception of the constructor that failed last in this thread. */
inline std::exception_ptr &thrown() noexcept {
    static thread_local std::exception_ptr last;
    return last;
}

} // namespace detail

/* Objects that stay constructed while they are free.
 *
 *     auto connections = craton::make_object_cache<connection>(
 *         "connections", [](void *at) { new (at) connection(4096); });
 *     auto c = connections.make(); // a std::unique_ptr that frees the object, still constructed
 *
 * The constructor is a callable that receives the address; the default one calls T's own. Its
 * exceptions pass to the caller that asked for the object, and the place is free again. Any thread
 * may call it. */
template <class T, class Constructor = void> class object_cache {
    struct plain {
        void operator()(void *at) const { ::new (at) T(); }
    };
    using construct = std::conditional_t<std::is_void_v<Constructor>, plain, Constructor>;
    static_assert(std::is_nothrow_destructible_v<T>, "objects of a cache are destroyed without exceptions");

  public:
    /* Frees an object. */
    struct deleter {
        craton_cache *cache;
        void operator()(T *object) const noexcept { craton_cache_free(cache, object); }
    };
    using pointer = std::unique_ptr<T, deleter>;

    /* Throws std::invalid_argument for bad options, std::bad_alloc without memory. */
    template <class C = construct, class = std::enable_if_t<std::is_same_v<C, plain>>>
    explicit object_cache(std::string_view name = {}, const cache_options &options = {})
        : object_cache(name, construct{}, options) {}
    object_cache(std::string_view name, construct constructor, const cache_options &options = {})
        : constructor_(std::move(constructor)), handle_(name, filled(options, this)) {}
    object_cache(const object_cache &) = delete;
    object_cache &operator=(const object_cache &) = delete;

    /* Returns an object. Throws what the constructor throws, std::bad_alloc without memory and at
     * the limit, std::logic_error in the cache's own constructor. */
    pointer make() { return pointer(allocate(), deleter{handle_.get()}); }
    /* Likewise, but waits up to `timeout_ms` milliseconds for an object to be freed. */
    pointer make_wait(std::uint64_t timeout_ms) {
        return pointer(checked(craton_cache_alloc_wait(handle_.get(), timeout_ms)), deleter{handle_.get()});
    }
    T *allocate() { return checked(craton_cache_alloc(handle_.get())); }
    void deallocate(T *object) noexcept { craton_cache_free(handle_.get(), object); }

    /* As craton_cache_prefill; throws as make. */
    void prefill(std::size_t objects) {
        if (craton_cache_prefill(handle_.get(), objects) != 0) fail();
    }
    std::size_t reap() noexcept { return craton_cache_reap(handle_.get()); }
    craton_cache *get() const noexcept { return handle_.get(); }
    struct craton_cache_stats stats() const noexcept {
        struct craton_cache_stats counts = {};
        ::craton_cache_stats(handle_.get(), &counts, sizeof counts);
        return counts;
    }

  private:
    static int build(void *at, void *self) noexcept {
        try {
            static_cast<object_cache *>(self)->constructor_(at);
            return 0;
        } catch (...) {
            detail::thrown() = std::current_exception();
            return 1;
        }
    }
    static void end(void *object, void *) noexcept { static_cast<T *>(object)->~T(); }
    static craton_cache_options filled(const cache_options &from, object_cache *self) noexcept {
        craton_cache_options options = {};
        options.object_size = sizeof(T);
        options.align = from.align > alignof(T) ? from.align : alignof(T);
        options.constructor = build;
        options.destructor = end;
        options.argument = self;
        options.limit_objects = from.limit_objects;
        options.limit_bytes = from.limit_bytes;
        options.working_set_ms = from.working_set_ms;
        options.flags = from.flags;
        return options;
    }
    static T *checked(void *object) {
        if (object == nullptr) fail();
        return static_cast<T *>(object);
    }
    [[noreturn]] static void fail() {
        const int why = errno;
        if (why == EDEADLK) throw std::logic_error("craton::object_cache: a constructor asks its own cache for an object");
        if (why == ECANCELED && detail::thrown()) std::rethrow_exception(std::exchange(detail::thrown(), nullptr));
        throw std::bad_alloc();
    }

    construct constructor_;
    detail::cache_handle handle_;
};

/* Makes an object cache whose constructor is a callable of any type. */
template <class T, class Constructor>
object_cache<T, Constructor> make_object_cache(std::string_view name, Constructor constructor, const cache_options &options = {}) {
    return object_cache<T, Constructor>(name, std::move(constructor), options);
}

/* Object caches as a std::pmr::memory_resource: one for each power of two from 16 bytes to 4 KiB,
 * with the names NAME-16 and so on (resource-16 without a name). Larger and more strictly aligned
 * requests go upstream. */
class cache_resource final : public std::pmr::memory_resource {
  public:
    explicit cache_resource(std::string_view name = {}, std::pmr::memory_resource *upstream = std::pmr::get_default_resource())
        : upstream_(upstream) {
        char text[33] = {};
        if (name.empty()) name = "resource";
        if (name.size() > 26) throw std::invalid_argument("craton::cache_resource: a name has at most 26 bytes");
        for (std::size_t i = 0; i < kinds; i++) {
            std::string_view size = sizes[i];
            std::memcpy(text, name.data(), name.size());
            text[name.size()] = '-';
            std::memcpy(text + name.size() + 1, size.data(), size.size());
            craton_cache_options options = {};
            options.object_size = least << i;
            options.align = least << i;
            caches_[i].emplace(std::string_view(text, name.size() + 1 + size.size()), options);
        }
    }

    /* The cache for objects of `bytes` bytes; NULL if upstream serves them. */
    craton_cache *cache_for(std::size_t bytes, std::size_t align = 1) const noexcept {
        const std::size_t kind = kind_of(bytes, align);
        return kind < kinds ? caches_[kind]->get() : nullptr;
    }

  private:
    static constexpr std::size_t kinds = 9, least = 16;
    static constexpr std::string_view sizes[kinds] = {"16", "32", "64", "128", "256", "512", "1024", "2048", "4096"};

    static std::size_t kind_of(std::size_t bytes, std::size_t align) noexcept {
        const std::size_t need = bytes > align ? bytes : align;
        std::size_t kind = 0;
        while (kind < kinds && (least << kind) < need) kind++;
        return kind;
    }
    void *do_allocate(std::size_t bytes, std::size_t align) override {
        craton_cache *cache = cache_for(bytes, align);
        if (cache == nullptr) return upstream_->allocate(bytes, align);
        void *object = craton_cache_alloc(cache);
        if (object == nullptr) throw std::bad_alloc();
        return object;
    }
    void do_deallocate(void *object, std::size_t bytes, std::size_t align) override {
        craton_cache *cache = cache_for(bytes, align);
        if (cache == nullptr) return upstream_->deallocate(object, bytes, align);
        craton_cache_free(cache, object);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    std::pmr::memory_resource *upstream_;
    std::optional<detail::cache_handle> caches_[kinds];
};

} // namespace craton

#endif
