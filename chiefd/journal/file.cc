// The file journal.mark beside the journal has the journal's id and its newest term. With it the chief notices that the
// journal is missing, or that it is a copy from an earlier term. The chief can't notice a copy from the same term.
//
// If the journal is damaged, the chief doesn't start: a chief that used the readable part would give out terms, job
// numbers and leases for a second time. With `chiefd --salvage` an operator can start it all the same. The chief then
// skips the numbers that the lost records may have used, and gives the journal another id. So the tasks drop their job,
// because some of the lost records may have been about it. To drop only the damaged record was rejected, because later
// records depend on it.
#include "chiefd/journal/file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "chiefd/journal/limits.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

constexpr char kJournal[] = "journal";
constexpr char kMark[] = "journal.mark";

using MaybeBytes = std::optional<JournalBytes>;

// Found has the contents of the journal's folder.
struct Found {
  MaybeBytes journal;
  MaybeBytes mark_bytes;
  std::optional<JournalMark> mark;
  JournalReading reading;

  std::string records() const { return std::to_string(reading.records); }
};

// How the journal contradicts the mark file beside it. Acknowledged records are then missing, even if the journal
// itself can be read to its end. None: the two files agree.
std::optional<std::string> harm_beside(const Found& found) {
  if (!found.mark || DISTTRAIN_MUTANT(kJournalMarkUnread)) return std::nullopt;
  const JournalState& state = found.reading.state;
  if (!found.journal) return "the file is missing, but it was there in term " + std::to_string(found.mark->term.value);
  if (state.journal != found.mark->journal && found.reading.records > 0)
    return std::string("it is the journal of another chief, because its id isn't the id in ") + kMark + " beside it";
  if (state.term >= found.mark->term) return std::nullopt;
  return "it ends in term " + std::to_string(state.term.value) + ", but " + kMark + " beside it has seen term " +
         std::to_string(found.mark->term.value) + ": the file is an older copy of the journal, or its end is lost";
}

Result<Found> look(JournalDisk& disk) {
  Found found;
  Result<MaybeBytes> mark = disk.read_first(kMark, kMaxMarkBytes);
  if (!mark.has_value()) return tl::unexpected(mark.error());
  found.mark_bytes = std::move(*mark);
  if (found.mark_bytes) found.mark = decode_mark(*found.mark_bytes);
  Result<MaybeBytes> journal = disk.read(kJournal, kMaxJournalBytes);
  if (!journal.has_value()) return tl::unexpected(journal.error());
  found.journal = std::move(*journal);
  if (found.journal) {
    Result<JournalReading> reading = read_journal(*found.journal, disk.path_of(kJournal));
    if (!reading) return tl::unexpected(reading.error());
    found.reading = std::move(*reading);
  } else if (found.mark_bytes && !found.mark) {
    found.reading.harm = "the file is missing, and " + disk.path_of(kMark) + " beside it is damaged";
  }
  if (!found.reading.harm) found.reading.harm = harm_beside(found);
  return found;
}

Error damage_of(const Found& found, const JournalDisk& disk) {
  return Error{
      ErrorCode::kData,
      disk.path_of(kJournal) + " is damaged: " + *found.reading.harm +
          ". The chief doesn't start, because acknowledged records are lost; nothing was changed. Put back a copy of "
          "the file that has the newest records, or run chiefd --salvage as the chief's user: it keeps the damaged "
          "file beside the journal, and makes a new journal with the " +
          found.records() + " records that can be read"};
}

struct Written {
  JournalEnd end;
  std::optional<Error> put_off;  // why the new file couldn't be made; then nothing has changed
};

// Writes a new journal beside the old one, and renames it over the old one. A crash before the rename leaves the old
// journal, which holds the same state. If this fails after the rename, don't use the journal any more, because nobody
// knows which of the two files a crash would leave.
Result<Written> rewrite(JournalDisk& disk, const JournalState& state, std::uint64_t records) {
  const std::string beside = std::string(kJournal) + ".new";
  Result<NewJournal> anew = make_journal(state, records);
  if (!anew) return tl::unexpected(anew.error());
  Status made = disk.create(beside, anew->bytes);
  if (made) made = disk.rename(beside, kJournal);
  if (!made) {
    disk.remove(beside);  // the disk may be full, so free the space of the unfinished file
    return Written{{}, made.error()};
  }
  if (DISTTRAIN_MUTANT(kJournalNameNotSynced)) return Written{anew->end, std::nullopt};
  if (Status status = disk.sync_names(); !status) return tl::unexpected(status.error());
  return Written{anew->end, std::nullopt};
}

Status write_mark(JournalDisk& disk, const JournalMark& mark) {
  const std::string beside = std::string(kMark) + ".new";
  if (Status made = disk.create(beside, encode_mark(mark)); !made) return made;
  if (Status renamed = disk.rename(beside, kMark); !renamed) return renamed;
  return disk.sync_names();
}

}  // namespace

Result<JournalFile::Opened> JournalFile::open(const std::string& directory) {
  Result<std::unique_ptr<JournalDisk>> disk = open_journal_disk(directory);
  if (!disk) return tl::unexpected(disk.error());
  return open(std::move(*disk));
}

Result<JournalFile::Opened> JournalFile::open(std::unique_ptr<JournalDisk> disk, std::uint64_t least_rewritten) {
  Result<Found> found = look(*disk);
  if (!found) return tl::unexpected(found.error());
  JournalReading& reading = found->reading;
  if (reading.harm && !DISTTRAIN_MUTANT(kJournalDamageIsCut)) return tl::unexpected(damage_of(*found, *disk));
  Opened opened{JournalFile(std::move(disk), reading.state), reading.state, reading.torn_bytes, {}};
  JournalFile& file = opened.file;
  const std::string path = file.disk_->path_of(kJournal);
  if (reading.torn_bytes != 0)
    opened.told.push_back(
        "cut the last " + std::to_string(reading.torn_bytes) +
        " bytes off the journal: a crash interrupted their write, so the chief never acknowledged them");
  if (reading.is_mended)
    opened.told.push_back("repaired the end of " + path +
                          " from the second copy of its last records, which the same file holds: no record is lost");
  Result<Written> written = rewrite(*file.disk_, reading.state, reading.records);
  if (!written) return tl::unexpected(written.error());
  if (written->put_off) return tl::unexpected(*written->put_off);
  file.end_ = written->end;
  file.least_rewritten_ = least_rewritten;
  file.bytes_when_written_ = file.end_.bytes - kJournalHeadBytes;
  file.mark_ = found->mark.value_or(JournalMark());
  if (found->mark_bytes && !found->mark)
    opened.told.push_back(file.disk_->path_of(kMark) +
                          " was damaged, and the chief writes it again; the journal itself isn't damaged");
  // Write the mark if it is missing, damaged or of an earlier term.
  const JournalMark mark{reading.state.journal, reading.state.term};
  if (mark.term.value == 0 || mark == file.mark_) return opened;
  if (Status marked = write_mark(*file.disk_, mark); !marked) return tl::unexpected(marked.error());
  file.mark_ = mark;
  return opened;
}

Result<JournalFile::Salvaged> JournalFile::salvage(std::unique_ptr<JournalDisk> disk, JournalId anew) {
  Result<Found> found = look(*disk);
  if (!found) return tl::unexpected(found.error());
  const JournalReading& reading = found->reading;
  Salvaged result;
  if (!reading.harm) return result;
  result.damage = disk->path_of(kJournal) + " is damaged: " + *reading.harm;
  result.kept = reading.records;
  result.lost = reading.lost;
  const std::array<std::pair<const char*, const MaybeBytes*>, 2> files = {
      {{kJournal, &found->journal}, {kMark, &found->mark_bytes}}};
  for (const auto& [name, bytes] : files) {
    if (!*bytes) continue;
    for (int number = 1;; ++number) {
      const std::string aside = std::string(name) + ".damaged-" + std::to_string(number);
      const Result<MaybeBytes> other = disk->read_first(aside, 1);
      if (!other.has_value()) return tl::unexpected(other.error());
      if (*other) continue;
      if (Status kept = disk->create(aside, **bytes); !kept) return tl::unexpected(kept.error());
      result.set_aside.push_back(disk->path_of(aside));
      break;
    }
  }
  if (Status synced = disk->sync_names(); !synced) return tl::unexpected(synced.error());
  const JournalState state = salvaged(reading.state, reading.lost, found->mark ? found->mark->term : Term(), anew,
                                      "the chief's journal was damaged and has lost records");
  // After a crash between these two writes the folder still counts as damaged, because the mark and the journal then
  // have different ids.
  if (Status marked = write_mark(*disk, JournalMark{anew, state.term}); !marked) return tl::unexpected(marked.error());
  Result<Written> written = rewrite(*disk, state, reading.records + reading.lost.value_or(kUnknownLoss));
  if (!written) return tl::unexpected(written.error());
  if (written->put_off) return tl::unexpected(*written->put_off);
  return result;
}

Status JournalFile::append(std::span<const Record> records) {
  std::vector<Record> taken;
  taken.reserve(records.size());
  for (const Record& record : records) taken.push_back(bounded(record));
  if (taken.empty()) return {};
  const Result<JournalAppend> append = make_append(end_, taken);
  if (!append) return tl::unexpected(append.error());
  const Piece batches{append->offset, append->batches};
  const Piece copy{append->copy_offset, append->copy};
  if (append->is_copied && DISTTRAIN_MUTANT(kJournalEndNotCopied)) {
    if (Status written = disk_->write(kJournal, std::span(&batches, 1)); !written) return written;
  } else if (append->is_copied) {
    const std::array<Piece, 2> both = {batches, copy};
    if (Status written = disk_->write(kJournal, both); !written) return written;
  } else {
    for (const Piece& piece : {batches, copy})
      if (Status written = disk_->write(kJournal, std::span(&piece, 1)); !written) return written;
  }
  end_ = append->end;
  for (const Record& record : taken) chiefd::apply(state_, record);
  const JournalMark mark{state_.journal, state_.term};
  if (mark == mark_) return {};
  if (Status marked = write_mark(*disk_, mark); !marked) return marked;
  mark_ = mark;
  return {};
}

Result<std::optional<Error>> JournalFile::rewrite_if_far_grown() {
  const std::uint64_t bytes = end_.bytes - kJournalHeadBytes;
  if (bytes < std::max(least_rewritten_, rewrite_at_) || bytes / 4 < bytes_when_written_) return std::nullopt;
  Result<Written> written = rewrite(*disk_, state_, end_.records);
  if (!written) return tl::unexpected(written.error());
  if (written->put_off) {
    rewrite_at_ = bytes + least_rewritten_ / 4;
    return std::move(written->put_off);
  }
  end_ = written->end;
  bytes_when_written_ = end_.bytes - kJournalHeadBytes;
  rewrite_at_ = 0;
  return std::nullopt;
}

}  // namespace disttrain::chiefd
