// The file system as checkpoints use it: few operations, so that a test can record each, let any of them fail, and
// build every state that a crash could leave (tests/common/checkpoint/memory_files.h).
//
// Paths are absolute. Durable after a crash is what was synced: a file's content by its sync(), a name (created,
// renamed, removed) by sync_directory() of its folder. Errors name the path, what was being done and what to do.
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
// Asked between pieces of a few MiB by what reads or writes long; true ends it with an error (kTemporary). An empty one
// never does.
using IsCancelled = std::function<bool()>;

// A file that is being written. Dropping it closes it and syncs nothing. After an error nothing more is to be done with
// it: a failed sync may have lost what a second one would call safe.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  // Room on the disk for a file of so many bytes, or an error before anything is written.
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
  // Fills `out`. A file that ends before that is an error (kData).
  virtual Status read_at(std::uint64_t offset, MutableBytes out) = 0;
  // Held until the file is dropped. False: somebody else holds it.
  virtual Result<bool> try_lock(LockKind kind) = 0;
};

// Any thread.
class Files {
 public:
  virtual ~Files() = default;
  // A new, empty file; one that is there is an error.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::string& path) = 0;
  // kNoInput: there is none.
  virtual Result<std::unique_ptr<InputFile>> open(const std::string& path) = 0;
  // One that is there already is no error. Its parent must be there.
  virtual Status make_directory(const std::string& path) = 0;
  // Names of files and folders in it, sorted. kNoInput: there is no such folder.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  // Within one file system. `to` isn't there.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // The same of a file, in the place of the one that is `to`, if there is one: a crash leaves one or the other.
  virtual Status replace(const std::string& from, const std::string& to) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  // An empty one.
  virtual Status remove_directory(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  // What `path` names once it is no symbolic link any more. Links in the folders above it stay: another host may see
  // the same files by other ones. kNoInput, kFailed.
  virtual Result<std::string> follow_links(const std::string& path) = 0;
};

// Removes a folder and the files in it. It holds no folders.
Status remove_all(Files& files, const std::string& path);

// The whole file, at most so many bytes (kData: it is larger).
Result<std::string> read_text(Files& files, const std::string& path, std::uint64_t max_bytes);

// Creates the file with this content and syncs it; its name isn't durable yet.
Status write_text(Files& files, const std::string& path, const std::string& text);

}  // namespace disttrain::checkpoint
