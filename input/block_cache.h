// Keeps decoded blocks of records in memory, up to a number of bytes. Several threads may want the same block: one of
// them makes it, and the others wait or make other blocks meanwhile.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "input/columns.h"

namespace disttrain::input {

// Several threads use a block, and the last one gives its memory back.
using BlockOfRows = std::shared_ptr<const EncodedRows>;

// Memory of blocks that nobody uses any more. Fresh memory costs more time than decoding: the kernel must clear it. Any
// thread may use it, and blocks may outlive it.
class SpareRows {
 public:
  // Empty rows, which may have memory.
  std::unique_ptr<EncodedRows> take();
  // When the last copy of the result is gone, the memory is spare.
  BlockOfRows keep(std::unique_ptr<EncodedRows> rows);

 private:
  static constexpr std::size_t kMost = 2;

  struct Spares {
    std::mutex mutex;  // guards the member below
    std::vector<std::unique_ptr<EncodedRows>> rows;
  };
  const std::shared_ptr<Spares> spares_ = std::make_shared<Spares>();
};

// Any thread may use it.
class BlockCache {
 public:
  explicit BlockCache(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Whether the caller must make this block: it isn't there, and no other thread makes it. The caller then calls put().
  // If there are too many bytes with those that it will take, drops the blocks that were used the longest time ago.
  bool claim(std::size_t block, std::uint64_t bytes);
  // Gives a claimed block or, if it can't be made, the error, to all threads that wait for it. A later claim of a block
  // with an error succeeds.
  void put(std::size_t block, Result<BlockOfRows> made);

  // Waits until the block is made, if another thread makes it. Returns nothing if nobody does: claim it then.
  std::optional<Result<BlockOfRows>> get(std::size_t block);

  // Of the blocks that are kept or being made.
  std::uint64_t bytes() const;

 private:
  struct Entry {
    std::size_t block = 0;
    bool is_made = false;
    BlockOfRows rows;
    std::uint64_t bytes = 0;
  };

  void drop_old(std::size_t but);

  const std::uint64_t most_bytes_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable made_;
  std::list<Entry> entries_;  // the one that was used last comes first
  std::unordered_map<std::size_t, std::list<Entry>::iterator> places_;
  std::unordered_map<std::size_t, Error> errors_;  // of blocks that couldn't be made
  std::uint64_t bytes_ = 0;
};

}  // namespace disttrain::input
