// The memory that the two ends of a shm connection share: two rings of bytes, one for each direction. The file is
// sealed, so that the peer can't shrink it. A peer may still write anything into it at any time. So each end keeps its
// own positions in private memory, and checks those of the peer.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::transport {

// The shared state of one direction. The positions count all bytes that were ever written or read.
struct RingState {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::atomic<std::uint32_t> reader_sleeps;  // 1: the reader wants to be woken after the next write
  alignas(64) std::atomic<std::uint32_t> writer_sleeps;  // 1: the writer wants to be woken after the next read
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

inline constexpr std::size_t kRingBytes = 256 * 1024;  // a power of two

// The mapped file.
class RingFile {
 public:
  // Makes a new file. kUnavailable: the system has no memory or no descriptor for it.
  static Result<RingFile> make();
  // Maps the file of a peer. kData: it isn't such a file.
  static Result<RingFile> open(Descriptor file);

  RingFile(RingFile&&) noexcept = default;
  int fd() const { return file_.get(); }
  // 0: from the end that has dialled to the other one; 1: the other direction.
  RingState& state(int direction) const;
  std::byte* bytes(int direction) const;

 private:
  RingFile(Descriptor file, void* address);
  struct Unmap {
    void operator()(void* address) const;
  };
  Descriptor file_;
  std::unique_ptr<void, Unmap> memory_;
};

// The end that writes into a ring.
class RingWriter {
 public:
  RingWriter(RingState& state, std::byte* bytes) : state_(&state), bytes_(bytes) {}
  // Writes the buffers in order as far as there is room. kData: the peer has damaged the ring.
  Result<std::size_t> write(std::span<const iovec> buffers);
  // Asks to be woken when there is room. Returns false if there is room already; then nobody wakes the caller.
  bool sleep();
  // Whether the reader must be woken after a write.
  bool must_wake_reader();

 private:
  RingState* state_;
  std::byte* bytes_;
  std::uint64_t written_ = 0;
};

// The end that reads from a ring.
class RingReader {
 public:
  RingReader(RingState& state, const std::byte* bytes) : state_(&state), bytes_(bytes) {}
  Result<std::size_t> read(std::span<const iovec> buffers);
  // Asks to be woken when there are bytes. Returns false if there are bytes already; then nobody wakes the caller.
  bool sleep();
  // Whether the writer must be woken after a read.
  bool must_wake_writer();

 private:
  RingState* state_;
  const std::byte* bytes_;
  std::uint64_t read_ = 0;
};

}  // namespace disttrain::transport
