// The file system for checkpoints: few operations, so that a test can record each, make any of them fail, and build
// every state that a crash could leave (tests/common/checkpoint/memory_files.h).
//
// Paths are absolute. After a crash, only synced data is there: a file's content after its sync(), a name (created,
// renamed, removed) after sync_directory() of its folder. Errors name the path, what was being done and what to do.
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
// Long reads and writes ask it between pieces of a few MiB; true ends them with kTemporary. May be empty: never
// cancelled.
using IsCancelled = std::function<bool()>;

// A file that is being written. Dropping it closes it without a sync. After an error don't use it any more: a failed
// sync may have lost data that a second sync would report as safe.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  // Reserves disk space for a file of this many bytes, or fails before anything is written.
  virtual Status reserve(std::uint64_t bytes) = 0;
  virtual Status append(Bytes bytes) = 0;
  virtual Status sync() = 0;
};

enum class LockKind { kShared, kExclusive };

// A file that is only read. Its content doesn't change.
class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out`. kData if the file ends before.
  virtual Status read_at(std::uint64_t offset, MutableBytes out) = 0;
  // The lock is held until the file is dropped. False: another process holds it.
  virtual Result<bool> try_lock(LockKind kind) = 0;
};

// Any thread.
class Files {
 public:
  virtual ~Files() = default;
  // Creates an empty file; an existing one is an error.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::string& path) = 0;
  // kNoInput: the file doesn't exist.
  virtual Result<std::unique_ptr<InputFile>> open(const std::string& path) = 0;
  // An existing folder is no error. Its parent must exist.
  virtual Status make_directory(const std::string& path) = 0;
  // Names of the files and folders in it, sorted. kNoInput: the folder doesn't exist.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  // Within one file system. `to` must not exist.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Renames a file and replaces `to` if it exists: a crash leaves one of the two.
  virtual Status replace(const std::string& from, const std::string& to) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  // The folder must be empty.
  virtual Status remove_directory(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  // The target of `path` if it is a symbolic link. Links in its parent folders stay: another host may reach the same
  // files through other links. kNoInput, kFailed.
  virtual Result<std::string> follow_links(const std::string& path) = 0;
};

// Removes a folder and the files in it. It must hold no folders.
Status remove_all(Files& files, const std::string& path);

// The whole file, at most `max_bytes` (kData: it is larger).
Result<std::string> read_text(Files& files, const std::string& path, std::uint64_t max_bytes);

// Creates the file with this content and syncs it; its name isn't durable yet.
Status write_text(Files& files, const std::string& path, const std::string& text);

}  // namespace disttrain::checkpoint
