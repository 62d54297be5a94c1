// The chief's journal on a disk, in the file STATE_DIRECTORY/journal. If a crash has interrupted the last write, open()
// cuts that write off. If the file is damaged in another way, open() fails. chiefd/journal/format.h says how open()
// tells the two apart. At each start, and when the file has grown large, the chief writes a new file with only the
// records that still matter, and renames it over the old file.
//
// All functions block. Only one thread may use the object at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "chiefd/journal/disk.h"
#include "chiefd/journal/format.h"
#include "common/result.h"

namespace disttrain::chiefd {

class JournalFile {
 public:
  struct Opened;
  // Opens the journal, or makes one if the folder has never had a journal. Fails with kData if acknowledged records are
  // missing or damaged; it has then changed nothing, and the message says what to do. Fails with kConfig if another
  // version of chiefd wrote the journal. May also fail with an error of `disk`.
  static Result<Opened> open(std::unique_ptr<JournalDisk> disk, std::uint64_t least_rewritten = kLeastRewritten);
  // Opens the journal in this folder, and makes the folder if it is missing. Also fails with kConfig if another chief
  // holds the folder's lock.
  static Result<Opened> open(const std::string& directory);

  struct Salvaged;
  // Sets a damaged journal aside, and puts a journal with the records before the damage in its place. Leaves an
  // undamaged journal unchanged. `anew` is the random id of the new journal. Fails as open() does, but not because of
  // damage.
  static Result<Salvaged> salvage(std::unique_ptr<JournalDisk> disk, JournalId anew);

  // Appends records and waits until they are durable. Long texts are cut by bounded(). After an error, don't use the
  // file any more, because nobody knows which bytes the disk holds.
  Status append(std::span<const Record> records);

  // Rewrites the file if its records take at least `least_rewritten` bytes, and at least four times as many bytes as
  // after the last rewrite. If the new file can't be made, for example because the disk is full, the call still
  // succeeds, and its value is that error. The old file stays in use. A later call tries again, when the file has grown
  // by another quarter of `least_rewritten`. If the call itself fails, don't use the file any more, as after a failed
  // append().
  Result<std::optional<Error>> rewrite_if_far_grown();
  static constexpr std::uint64_t kLeastRewritten = 4 << 20;

 private:
  JournalFile(std::unique_ptr<JournalDisk> disk, JournalState state)
      : disk_(std::move(disk)), state_(std::move(state)) {}

  std::unique_ptr<JournalDisk> disk_;
  JournalState state_;  // the state after all records
  JournalMark mark_;    // the mark that is on the disk
  JournalEnd end_;
  std::uint64_t least_rewritten_ = 0;
  std::uint64_t bytes_when_written_ = 0;  // without the head
  std::uint64_t rewrite_at_ = 0;
};

struct JournalFile::Opened {
  JournalFile file;
  JournalState state;             // its journal id is 0 if the journal is new
  std::uint64_t cut_bytes = 0;    // the length of the interrupted write that open() has cut off
  std::vector<std::string> told;  // lines for the log, which say what open() has found and mended
};

struct JournalFile::Salvaged {
  std::string damage;                  // describes the damage. "": there is none, so salvage() has changed nothing
  std::vector<std::string> set_aside;  // the paths of the damaged files
  std::uint64_t kept = 0;              // the number of records before the damage
  std::optional<std::uint64_t> lost;   // the number of lost records. None: not known
};

}  // namespace disttrain::chiefd
