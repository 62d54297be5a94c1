// The interface through which checkpoint code uses the file system. It has few operations, so that a test can record
// each operation, make any of them fail, and build every state that a crash could leave
// (tests/common/checkpoint/memory_files.h).
//
// Paths are absolute. Only synced data survives a crash: the content of a file survives after its sync(); its creation,
// renaming or removal survives after sync_directory() of its folder. An error says which operation failed, on which
// path, and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain::checkpoint {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;
// Asks whether the caller has cancelled a long read or write. Reads and writes call it after every few MiB, and fail
// with kTemporary if it returns true. An empty function means that the operation can't be cancelled.
using IsCancelled = std::function<bool()>;

// A file that is being written. Destroying it closes the file without a sync. Don't use it after an error, because a
// failed sync may have lost data, and a second sync would still report success.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  // Reserves disk space for a file of this many bytes, or fails before anything is written.
  virtual Status reserve(std::uint64_t bytes) = 0;
  virtual Status append(Bytes bytes) = 0;
  virtual Status sync() = 0;
};

enum class LockKind { kShared, kExclusive };
// What a name in a folder stands for. kLink: a symbolic link. kOther: a FIFO, a socket or a device.
enum class EntryKind { kNone, kFile, kFolder, kLink, kOther };

// A file that is only read. Its content doesn't change.
class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out`. Fails with kData if the file ends too early.
  virtual Status read_at(std::uint64_t offset, MutableBytes out) = 0;
  // Returns false if another process holds the lock. Destroying this object releases the lock.
  virtual Result<bool> try_lock(LockKind kind) = 0;
  // From now on, only this user may open the file.
  virtual Status make_private() = 0;
};

// Any thread.
class Files {
 public:
  virtual ~Files() = default;
  // Creates an empty file. Fails if the file exists.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::string& path) = 0;
  // The same, but only this user may open the file.
  virtual Result<std::unique_ptr<OutputFile>> create_private(const std::string& path) = 0;
  // Doesn't follow `path` itself if it is a link. Follows the links in the folders above it.
  virtual Result<EntryKind> kind_of(const std::string& path) = 0;
  // Fails with kNoInput if the file doesn't exist.
  virtual Result<std::unique_ptr<InputFile>> open(const std::string& path) = 0;
  // Succeeds if the folder exists already. Its parent folder must exist.
  virtual Status make_directory(const std::string& path) = 0;
  // Returns the sorted names of the files and folders in a folder. Fails with kNoInput if the folder doesn't exist.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  // Within one file system. `to` must not exist.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Renames a file and replaces `to` if it exists. After a crash, `to` is either the old or the new file.
  virtual Status replace(const std::string& from, const std::string& to) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  // The folder must be empty.
  virtual Status remove_directory(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  // Returns the target if `path` is a symbolic link, otherwise `path`. Doesn't resolve links in the parent folders,
  // because another host may reach the same files through other links. Fails with kNoInput if there is no target.
  virtual Result<std::string> follow_links(const std::string& path) = 0;
};

// Removes a folder and the files in it. The folder must not contain folders. If `path` is a link, only the link is
// removed, because nobody knows whose its target is.
Status remove_all(Files& files, const std::string& path);

// Reads a whole file. Fails with kData if it has more than `max_bytes`.
Result<std::string> read_text(Files& files, const std::string& path, std::uint64_t max_bytes);

// Creates a file with this content and syncs it. The caller must sync the folder to make the file's name survive a
// crash.
Status write_text(Files& files, const std::string& path, const std::string& text);

}  // namespace disttrain::checkpoint
