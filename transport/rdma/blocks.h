// The blocks of the peer's memory that this end may read or write by RDMA. Nothing that the peer says about a place is
// believed without these checks; the peer's network card checks again.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/result.h"
#include "transport/rdma/message.h"

namespace disttrain::transport {

// A worker shares up to 2 blocks of parameters and 3 of gradients.
inline constexpr std::size_t kMaxRdmaBlocks = 16;

// Bytes of the peer's memory, as the verbs name them.
struct RemoteBytes {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t key = 0;
  bool holds(std::uint64_t offset, std::uint64_t count) const { return offset <= bytes && count <= bytes - offset; }
};

class RemoteBlocks {
 public:
  // kData: too many blocks, or one for the second time.
  Status add(const RdmaBlock& block);
  // kData: the peer has no such block for this use, or it is shorter.
  Result<RemoteBytes> find(std::uint64_t block, RdmaBlock::Use use, std::uint64_t offset, std::uint64_t bytes) const;

 private:
  std::map<std::pair<std::uint64_t, RdmaBlock::Use>, RemoteBytes> blocks_;
};

}  // namespace disttrain::transport
