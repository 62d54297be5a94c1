// The folder of the chief's journal. The interface has few operations, so that a test can let each one fail and build
// every state that a crash could leave (tests/chiefd/journal/memory_disk.h).
//
// Names are of files in the folder. Content is durable when an operation returns; a name (created, renamed, removed) is
// durable after sync_names(). After an error of write() the file must not be written any more: a failed sync may have
// dropped data, and a second sync would still succeed. Errors name the path, what was being done and what to do:
// kNoPermission, kUnavailable. Blocking; one owner, any one thread at a time.
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
  // None: there is no such file.
  virtual Result<std::optional<std::vector<std::byte>>> read(const std::string& name) = 0;
  // Makes an empty file and replaces one of this name. The name isn't durable yet.
  virtual Status create(const std::string& name, std::span<const std::byte> bytes) = 0;
  // Writes to a file that create() made here. The pieces reach the disk in any order.
  virtual Status write(const std::string& name, std::span<const Piece> pieces) = 0;
  // Replaces the file `to`, if there is one. A crash leaves either the old or the new file.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // No error if the file doesn't exist.
  virtual void remove(const std::string& name) = 0;
  virtual Status sync_names() = 0;
  // The file's path, for messages.
  virtual std::string path_of(const std::string& name) const = 0;
};

// A folder of this host's file system, made if it is missing. Holds the folder's lock until it is destroyed. kConfig:
// another chief holds the lock; the message has its process number.
Result<std::unique_ptr<JournalDisk>> open_journal_disk(const std::string& directory);

}  // namespace disttrain::chiefd
