// Reads bytes of the files of an index by their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "input/record_index.h"

namespace disttrain::input {

// Keeps the files open that were used last. Any thread may use it.
class RecordFiles {
 public:
  static constexpr std::size_t kMostOpen = 128;

  // The index must outlive this object.
  explicit RecordFiles(const RecordIndex& index) : index_(index) {}

  // Fills `out` with bytes of a file that isn't compressed, from `offset` on. Errors, kData: the file was changed since
  // the index was built, or ends before. kNoInput, kNoPermission: it can't be read.
  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> out) const;

  // For a file that the caller reads itself, such as a compressed one. Errors: as of read().
  Status check_unchanged(std::size_t file) const;

 private:
  using File = std::shared_ptr<const Descriptor>;
  struct Open {
    std::size_t file = 0;
    File descriptor;
  };

  Result<File> open(std::size_t file) const;

  const RecordIndex& index_;
  // mutex_ guards the members below.
  mutable std::mutex mutex_;
  mutable std::list<Open> open_;  // the one that was used last comes first
  mutable std::unordered_map<std::size_t, std::list<Open>::iterator> places_;
};

}  // namespace disttrain::input
