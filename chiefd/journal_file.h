// The chief's journal on a disk: STATE_DIRECTORY/journal, batches behind each other, each with its length and crc32c:
// the records of one append, so that what a crash tore is one batch, whichever of its pages came to the disk. A torn
// tail (the chief or its host died while writing) is cut; damage before the tail is an error. At each start, and when
// it has grown far, the journal is rewritten without what no longer matters and put in place by one rename.
//
// A lock file keeps a second chief out. Blocking; one owner, any one thread at a time.
#pragma once

#include <span>
#include <string>

#include "chiefd/core/journal_state.h"
#include "common/result.h"

namespace disttrain::chiefd {

// Owns a file descriptor; -1 is none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

class JournalFile {
 public:
  struct Opened;
  // Makes the directory and the journal when missing. Errors: kConfig (another chief lives on this directory, or a
  // newer version wrote it), kNoPermission, kData (damaged before its tail).
  static Result<Opened> open(const std::string& directory);

  // Appends records and waits until the disk has them. After an error the file must not be used any more: what the disk
  // has isn't known.
  Status append(std::span<const Record> records);

  // It is rewritten when it is so large and four times as large as it was when it was last rewritten.
  static constexpr std::uint64_t kLeastRewritten = 4 << 20;

 private:
  JournalFile(FileDescriptor lock, FileDescriptor file, std::string directory, JournalState state);

  Status rewrite_if_far_grown();

  FileDescriptor lock_;
  FileDescriptor file_;
  std::string directory_;
  std::string path_;
  JournalState state_;  // what the records add up to
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_when_written_ = 0;
};

struct JournalFile::Opened {
  JournalFile file;
  JournalState state;           // journal id 0: new
  std::uint64_t cut_bytes = 0;  // of a torn tail
};

}  // namespace disttrain::chiefd
