// Memory for one operation of a stream, while the operation waits in Asio's loop. At most one operation of each kind
// waits at a time. So the stream has one HandlerMemory for each kind, and Asio needn't allocate memory for each
// operation. Asio takes the memory through the handler's allocator (Asio documentation, "Custom Memory Allocation").
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace disttrain::transport {

// It must outlive the operations that use it. Use it on one loop only.
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;

  void* allocate(std::size_t bytes) {
    if (in_use_ || bytes > sizeof storage_) return ::operator new(bytes);
    in_use_ = true;
    return storage_;
  }
  void release(void* memory) {
    if (memory == storage_)
      in_use_ = false;
    else
      ::operator delete(memory);
  }

 private:
  alignas(std::max_align_t) std::byte storage_[256];  // with asio 1.22 the largest operation needs 136 bytes
  bool in_use_ = false;
};

template <typename T>
class HandlerAllocator {
 public:
  using value_type = T;
  explicit HandlerAllocator(HandlerMemory& memory) : memory_(&memory) {}
  template <typename U>
  HandlerAllocator(const HandlerAllocator<U>& other) : memory_(&other.memory()) {}

  T* allocate(std::size_t count) { return static_cast<T*>(memory_->allocate(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { memory_->release(memory); }
  HandlerMemory& memory() const { return *memory_; }
  template <typename U>
  bool operator==(const HandlerAllocator<U>& other) const {
    return memory_ == &other.memory();
  }

 private:
  HandlerMemory* memory_;
};

// Gives `handler` an allocator that uses `memory`. The handler must keep the owner of `memory` alive.
template <typename Handler>
class PlacedHandler {
 public:
  using allocator_type = HandlerAllocator<std::byte>;
  PlacedHandler(HandlerMemory& memory, Handler handler) : memory_(&memory), handler_(std::move(handler)) {}

  allocator_type get_allocator() const { return allocator_type(*memory_); }
  template <typename... Arguments>
  void operator()(Arguments&&... arguments) {
    handler_(std::forward<Arguments>(arguments)...);
  }

 private:
  HandlerMemory* memory_;
  Handler handler_;
};

}  // namespace disttrain::transport
