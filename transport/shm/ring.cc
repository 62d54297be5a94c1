#include "transport/shm/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

constexpr std::size_t kStateBytes = 4096;
static_assert(2 * sizeof(RingState) <= kStateBytes);
constexpr std::size_t kFileBytes = kStateBytes + 2 * kRingBytes;

Result<void*> map(int fd) {
  void* const address = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED)
    return fail(ErrorCode::kUnavailable, "can't map the shared memory of a connection: " + system_words(errno));
  return address;
}

tl::unexpected<Error> damaged(std::uint64_t written, std::uint64_t read) {
  return fail(ErrorCode::kData, "the peer has damaged the memory that it shares: the positions in a ring of " +
                                    std::to_string(kRingBytes) + " bytes are " + std::to_string(written) +
                                    " (written) and " + std::to_string(read) + " (read)");
}

// Copies between the ring and a buffer, from position `at` of the ring on. The ring's end may be in the middle.
template <typename Copy>
void in_two_parts(std::uint64_t at, std::size_t bytes, Copy copy) {
  const std::size_t begin = at % kRingBytes;
  const std::size_t first = std::min(bytes, kRingBytes - begin);
  copy(begin, 0, first);
  if (bytes > first) copy(0, first, bytes - first);
}

// Sets `sleeps`, and then looks whether the peer has moved on in the meantime. The peer first moves on and then looks
// at `sleeps`. The fences order both, so one of the two sees the other.
template <typename Ready>
bool fall_asleep(std::atomic<std::uint32_t>& sleeps, Ready ready) {
  sleeps.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!ready()) return true;
  sleeps.store(0, std::memory_order_relaxed);
  return false;
}

bool must_wake(std::atomic<std::uint32_t>& sleeps) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return sleeps.load(std::memory_order_relaxed) != 0 && sleeps.exchange(0, std::memory_order_relaxed) != 0;
}

}  // namespace

RingFile::RingFile(Descriptor file, void* address) : file_(std::move(file)), memory_(address) {}

void RingFile::Unmap::operator()(void* address) const {
  ::munmap(address, kFileBytes);
}

Result<RingFile> RingFile::make() {
  Descriptor file(::memfd_create("disttrain-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.get(), kFileBytes) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(ErrorCode::kUnavailable, "can't make shared memory for a connection: " + system_words(errno));
  const Result<void*> address = map(file.get());
  if (!address) return tl::unexpected(address.error());
  return RingFile(std::move(file), *address);
}

Result<RingFile> RingFile::open(Descriptor file) {
  struct stat status {};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (::fstat(file.get(), &status) != 0 || status.st_size != static_cast<off_t>(kFileBytes) || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0)
    return fail(ErrorCode::kData, "the peer shares a file of " + std::to_string(status.st_size) +
                                      " bytes for a connection; expected a sealed one of " +
                                      std::to_string(kFileBytes) + " bytes");
  const Result<void*> address = map(file.get());
  if (!address) return tl::unexpected(address.error());
  return RingFile(std::move(file), *address);
}

RingState& RingFile::state(int direction) const {
  return static_cast<RingState*>(memory_.get())[direction];
}

std::byte* RingFile::bytes(int direction) const {
  return static_cast<std::byte*>(memory_.get()) + kStateBytes + static_cast<std::size_t>(direction) * kRingBytes;
}

Result<std::size_t> RingWriter::write(std::span<const iovec> buffers) {
  const std::uint64_t read = state_->read.load(std::memory_order_acquire);
  if (written_ - read > kRingBytes) return damaged(written_, read);
  std::size_t room = kRingBytes - (written_ - read);
  const std::uint64_t before = written_;
  for (const iovec& buffer : buffers) {
    const std::size_t n = std::min(room, buffer.iov_len);
    in_two_parts(written_, n, [&](std::size_t at, std::size_t from, std::size_t bytes) {
      std::memcpy(bytes_ + at, static_cast<const std::byte*>(buffer.iov_base) + from, bytes);
    });
    written_ += n;
    room -= n;
    if (room == 0) break;
  }
  state_->written.store(written_, std::memory_order_release);
  return written_ - before;
}

bool RingWriter::sleep() {
  const auto has_room = [this] { return written_ - state_->read.load(std::memory_order_acquire) != kRingBytes; };
  return fall_asleep(state_->writer_sleeps, has_room);
}
bool RingWriter::must_wake_reader() {
  return must_wake(state_->reader_sleeps);
}

Result<std::size_t> RingReader::read(std::span<const iovec> buffers) {
  const std::uint64_t written = state_->written.load(std::memory_order_acquire);
  if (written - read_ > kRingBytes) return damaged(written, read_);
  std::size_t left = written - read_;
  const std::uint64_t before = read_;
  for (const iovec& buffer : buffers) {
    const std::size_t n = std::min(left, buffer.iov_len);
    in_two_parts(read_, n, [&](std::size_t at, std::size_t to, std::size_t bytes) {
      std::memcpy(static_cast<std::byte*>(buffer.iov_base) + to, bytes_ + at, bytes);
    });
    read_ += n;
    left -= n;
    if (left == 0) break;
  }
  state_->read.store(read_, std::memory_order_release);
  return read_ - before;
}

bool RingReader::sleep() {
  const auto has_bytes = [this] { return state_->written.load(std::memory_order_acquire) != read_; };
  return fall_asleep(state_->reader_sleeps, has_bytes);
}
bool RingReader::must_wake_writer() {
  return must_wake(state_->writer_sleeps);
}

}  // namespace disttrain::transport
