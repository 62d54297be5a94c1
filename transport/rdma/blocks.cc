#include "transport/rdma/blocks.h"

#include <string>

namespace disttrain::transport {

Status RemoteBlocks::add(const RdmaBlock& block) {
  const std::pair key(block.block, block.use);
  if (blocks_.size() >= kMaxRdmaBlocks || blocks_.contains(key))
    return fail(ErrorCode::kData, "the peer shares more than " + std::to_string(kMaxRdmaBlocks) +
                                      " blocks of memory, or the same one twice");
  blocks_.emplace(key, RemoteBytes{block.address, block.bytes, block.key});
  return {};
}

Result<RemoteBytes> RemoteBlocks::find(std::uint64_t block, RdmaBlock::Use use, std::uint64_t offset,
                                       std::uint64_t bytes) const {
  const auto found = blocks_.find({block, use});
  if (found == blocks_.end() || !found->second.holds(offset, bytes) || offset % sizeof(float) != 0)
    return fail(ErrorCode::kData, "the peer names the bytes from " + std::to_string(offset) + " on, " +
                                      std::to_string(bytes) + " of them, of its block " + std::to_string(block) +
                                      "; it shares no such bytes");
  return RemoteBytes{found->second.address + offset, bytes, found->second.key};
}

}  // namespace disttrain::transport
