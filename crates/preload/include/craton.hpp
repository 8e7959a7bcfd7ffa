/* Craton for C++17: memory resources and allocators over heaps that are destroyed whole.
 *
 *     craton::memory_resource requests("requests");
 *     std::pmr::vector<int> numbers(&requests);
 *     requests.stats().object_bytes;
 *
 * Header only; link Craton as for craton.h. Nothing here is thread-local: any thread may use any resource. */
#ifndef CRATON_HPP
#define CRATON_HPP

#include "craton.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace craton {

/* A heap, owned: destroyed with all its objects at the end of its life. */
class heap {
  public:
    /* Throws std::invalid_argument for a name that is too long or not printable, or a bad flag, std::bad_alloc without memory. */
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

/* A heap as a std::pmr::memory_resource, with a name that statistics show. What is not deallocated goes with it. */
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

/* A standard allocator over a heap that outlives it. */
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

} // namespace craton

#endif
