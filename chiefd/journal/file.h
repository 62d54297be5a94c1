// The chief's journal on a disk: STATE_DIRECTORY/journal. chiefd/journal/format.h says how it tells a torn tail, which
// is cut, from damage, which is an error. At each start, and when the file has grown far, it is rewritten without what
// no longer matters and put in place by one rename.
//
// Blocking; one owner, any one thread at a time.
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
  // Makes the journal where there never was one. kData: acknowledged records are missing or damaged; nothing was
  // changed, and the message says what to do. kConfig: another version wrote it. And what the disk answers.
  static Result<Opened> open(std::unique_ptr<JournalDisk> disk, std::uint64_t least_rewritten = kLeastRewritten);
  // In this folder, which is made if it is missing. kConfig, too: another chief has it.
  static Result<Opened> open(const std::string& directory);

  struct Salvaged;
  // Sets a damaged journal aside and puts one in its place that begins with the records before the damage. A journal
  // that isn't damaged stays as it is. `anew`: its new id, random. Errors: as open(), but for the damage.
  static Result<Salvaged> salvage(std::unique_ptr<JournalDisk> disk, JournalId anew);

  // Appends records and waits until the disk has them. Texts are cut as bounded() says. After an error the file must
  // not be used any more: what the disk has isn't known.
  Status append(std::span<const Record> records);

  // Rewrites the file when it has grown far: its records take `least_rewritten` bytes, and four times as many as when
  // it was last rewritten. An error that is a value: there was no room, nothing has changed, and it is tried again
  // after a quarter of that more. Any other error as of append().
  Result<std::optional<Error>> rewrite_if_far_grown();
  static constexpr std::uint64_t kLeastRewritten = 4 << 20;

 private:
  JournalFile(std::unique_ptr<JournalDisk> disk, JournalState state)
      : disk_(std::move(disk)), state_(std::move(state)) {}

  std::unique_ptr<JournalDisk> disk_;
  JournalState state_;  // what the records add up to
  JournalMark mark_;    // as it is on the disk
  JournalEnd end_;
  std::uint64_t least_rewritten_ = 0;
  std::uint64_t bytes_when_written_ = 0;  // without the head
  std::uint64_t rewrite_at_ = 0;
};

struct JournalFile::Opened {
  JournalFile file;
  JournalState state;             // journal id 0: new
  std::uint64_t cut_bytes = 0;    // of a torn tail
  std::vector<std::string> told;  // what was found and mended, for the log
};

struct JournalFile::Salvaged {
  std::string damage;                  // "": there is none, and nothing was changed
  std::vector<std::string> set_aside;  // paths
  std::uint64_t kept = 0;              // records
  std::optional<std::uint64_t> lost;   // none: nobody knows
};

}  // namespace disttrain::chiefd
