#include "transport/shm/blocks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "transport/shm/message.h"
#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

constexpr std::uint64_t kBytesOfStatBlock = 512;  // st_blocks of fstat(), on all systems of Linux

}  // namespace

bool SharedBlocks::share(int socket, const Arena::Place& place) {
  if (sent_.contains(place.block)) return true;
  if (place.fd < 0 || sent_.size() >= kMaxPeerBlocks) return false;
  ShmMessage message;
  message.kind = ShmMessage::Kind::kBlock;
  message.block = place.block;
  const Result<bool> sent = send_message(socket, message, {&place.fd, 1});
  if (!sent.has_value() || !*sent) return false;
  sent_.insert(place.block);
  return true;
}

Status PeerBlocks::add(std::uint64_t block, Descriptor file) {
  struct stat status {};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (::fstat(file.get(), &status) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail(ErrorCode::kData, "the peer shares a block that isn't a sealed file in memory");
  if (blocks_.size() >= kMaxPeerBlocks || blocks_.contains(block))
    return fail(ErrorCode::kData, "the peer shares more than " + std::to_string(kMaxPeerBlocks) +
                                      " blocks of memory, or the same one twice");
  blocks_.emplace(block, Block{std::move(file), static_cast<std::uint64_t>(status.st_size), nullptr, false});
  return {};
}

Result<PeerMemory> PeerBlocks::bytes(std::uint64_t block, std::uint64_t offset, std::uint64_t bytes, bool writable) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end() || offset > found->second.bytes || bytes > found->second.bytes - offset ||
      offset % sizeof(float) != 0)
    return fail(ErrorCode::kData, "the peer names the bytes from " + std::to_string(offset) + " on, " +
                                      std::to_string(bytes) + " of them, of its block " + std::to_string(block) +
                                      "; it shares no such bytes");
  Block& held = found->second;
  if (held.mapping == nullptr) {
    // MAP_POPULATE saves the faults. It would also give memory to the pages that the peer hasn't touched: for a file of
    // any size, which costs the peer nothing.
    struct stat status {};
    const bool is_touched = ::fstat(held.file.get(), &status) == 0 &&
                            static_cast<std::uint64_t>(status.st_blocks) * kBytesOfStatBlock >= held.bytes;
    void* const address =
        ::mmap(nullptr, held.bytes, PROT_READ, MAP_SHARED | (is_touched ? MAP_POPULATE : 0), held.file.get(), 0);
    if (address == MAP_FAILED)
      return fail(ErrorCode::kUnavailable,
                  "can't map a block of " + std::to_string(held.bytes) + " bytes of the peer: " + system_words(errno));
    held.mapping = std::shared_ptr<std::byte>(static_cast<std::byte*>(address),
                                              [size = held.bytes](std::byte* memory) { ::munmap(memory, size); });
    held.file = Descriptor();
  }
  // A block that only lends stays protected from bugs of this process.
  if (writable && !held.is_writable) {
    if (::mprotect(held.mapping.get(), held.bytes, PROT_READ | PROT_WRITE) != 0)
      return fail(ErrorCode::kUnavailable, "can't write to a block of the peer: " + system_words(errno));
    held.is_writable = true;
  }
  return PeerMemory{MutableBytes(held.mapping.get() + offset, bytes), held.mapping};
}

}  // namespace disttrain::transport
