// The folder of the chief's journal, as an interface. The interface has few operations, so that a test can let each one
// fail and build every state of the folder that a crash could leave (tests/chiefd/journal/memory_disk.h).
//
// A `name` is the name of a file in the folder. When an operation returns, the bytes that it wrote are durable. The
// names that it created, changed or removed become durable only with sync_names(). After an error of write(), don't
// write to the file any more: the failed sync may have dropped data, and yet a second sync would succeed. An error
// names the path, the operation and what to do. It has the code kNoPermission or kUnavailable. All operations block.
// Only one thread may use the object at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::chiefd {

// Bytes to write at an offset of a file. The bytes must outlive the call.
struct Piece {
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

class JournalDisk {
 public:
  virtual ~JournalDisk() = default;
  // The content of the file. None: there is no file of this name. Fails with kConfig if it has more than `most` bytes,
  // and takes no memory for them.
  virtual Result<std::optional<std::vector<std::byte>>> read(const std::string& name, std::uint64_t most) = 0;
  // The same, but of a larger file it returns the first `most` bytes.
  virtual Result<std::optional<std::vector<std::byte>>> read_first(const std::string& name, std::uint64_t most) = 0;
  // Creates a file with these bytes, in place of any file of this name. The name isn't durable yet.
  virtual Status create(const std::string& name, std::span<const std::byte> bytes) = 0;
  // Writes to a file that this object has created. The pieces may reach the disk in any order.
  virtual Status write(const std::string& name, std::span<const Piece> pieces) = 0;
  // Renames the file `from`, in place of any file named `to`. After a crash, `to` is either the old file or the new
  // one.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // No error if the file doesn't exist.
  virtual void remove(const std::string& name) = 0;
  virtual Status sync_names() = 0;
  // The file's path, for messages.
  virtual std::string path_of(const std::string& name) const = 0;
};

// The error of JournalDisk::read() for a file that is too large.
Error too_large_file(const std::string& path, std::uint64_t most);

// Opens a folder of this host's file system, and makes the folder if it is missing. The returned object holds the
// folder's lock until it is destroyed. Fails with kConfig if another chief holds the lock; the message has the process
// number of that chief.
Result<std::unique_ptr<JournalDisk>> open_journal_disk(const std::string& directory);

}  // namespace disttrain::chiefd
