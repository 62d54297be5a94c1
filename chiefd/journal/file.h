// The chief's journal on a disk: STATE_DIRECTORY/journal. A torn tail is cut; damage is an error.
// chiefd/journal/format.h says how the two are told apart. At each start, and when the file has grown large, it is
// rewritten without records that no longer matter, and put in place by one rename.
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
  // Opens the journal, or makes it if there never was one. kData: acknowledged records are missing or damaged; nothing
  // was changed, and the message says what to do. kConfig: another version wrote it. Also the errors of Disk.
  static Result<Opened> open(std::unique_ptr<JournalDisk> disk, std::uint64_t least_rewritten = kLeastRewritten);
  // Opens the journal in this folder, which is made if it is missing. Also kConfig: another chief holds it.
  static Result<Opened> open(const std::string& directory);

  struct Salvaged;
  // Sets a damaged journal aside and replaces it by a journal with the records before the damage. A journal that isn't
  // damaged stays unchanged. `anew`: the random id of the new journal. Errors as of open(), except for damage.
  static Result<Salvaged> salvage(std::unique_ptr<JournalDisk> disk, JournalId anew);

  // Appends records and waits until they are durable. bounded() cuts their texts. After an error the file must not be
  // used any more: it isn't known what the disk holds.
  Status append(std::span<const Record> records);

  // Rewrites the file when its records take at least `least_rewritten` bytes and four times as many as after the last
  // rewrite. If there is no room, the returned value is an error: nothing has changed, and the rewrite is retried after
  // a quarter of that size more. Any other error: as of append().
  Result<std::optional<Error>> rewrite_if_far_grown();
  static constexpr std::uint64_t kLeastRewritten = 4 << 20;

 private:
  JournalFile(std::unique_ptr<JournalDisk> disk, JournalState state)
      : disk_(std::move(disk)), state_(std::move(state)) {}

  std::unique_ptr<JournalDisk> disk_;
  JournalState state_;  // the state that the records add up to
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
  std::vector<std::string> told;  // for the log: what was found and mended
};

struct JournalFile::Salvaged {
  std::string damage;                  // "": no damage, and nothing was changed
  std::vector<std::string> set_aside;  // paths
  std::uint64_t kept = 0;              // records
  std::optional<std::uint64_t> lost;   // none: not known
};

}  // namespace disttrain::chiefd
