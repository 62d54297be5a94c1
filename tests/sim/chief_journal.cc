#include "tests/sim/chief_journal.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace disttrain::sim {
namespace {

using chiefd::JournalPlatter;

// A small limit, so that simulated chiefs rewrite their journals often.
constexpr std::uint64_t kLeastRewritten = 4096;

// Replaces losses that are NaN by -1, because NaN isn't equal to itself.
chiefd::JournalState comparable(chiefd::JournalState state) {
  const auto set = [](double& value) { value = std::isnan(value) ? -1.0 : value; };
  for (auto& [id, job] : state.jobs) {
    if (!job.ended) continue;
    if (job.ended->loss) set(*job.ended->loss);
    if (job.ended->evaluation) set(job.ended->evaluation->loss);
  }
  return state;
}

Error no_room() {
  return Error{ErrorCode::kUnavailable, "can't write /state/journal: no space left on device"};
}

}  // namespace

ChiefDisk::ChiefDisk(std::uint64_t seed) : random(seed, stream_of("journal")) {
  flips = random.below(5) == 0;
  has_no_room = random.below(5) == 0;
  fails = random.below(8) == 0;
  clock_is_set = random.below(4) == 0;
}

void ChiefDisk::heal() {
  flips = has_no_room = fails = clock_is_set = false;
}

chiefd::EventClocks ChiefDisk::clocks(Instant now) const {
  const Duration uptime = now.time_since_epoch();
  return {(uptime + wall_set_by).count(), uptime.count()};
}

ChiefJournal::~ChiefJournal() {
  if (!file_) return;
  die();
  file_.reset();
  disk_.platter.fault = {};
  if (disk_.flips && one_in(2)) damage();
  if (disk_.clock_is_set && one_in(2)) set_clock();
}

bool ChiefJournal::open() {
  disk_.platter.fault = [this](JournalPlatter::Op op, const std::string&) -> std::optional<Error> {
    if (op != JournalPlatter::Op::kCreate || !disk_.has_no_room || !one_in(2)) return std::nullopt;
    world_.count(Happening::kJournalFull);
    return no_room();
  };
  Result<std::unique_ptr<chiefd::JournalDisk>> folder = disk_.platter.open();
  if (!folder) {
    violated_("I25: a dead chief still locks the journal's folder");
    return false;
  }
  Result<chiefd::JournalFile::Opened> opened = chiefd::JournalFile::open(std::move(*folder), kLeastRewritten);
  if (!opened && opened.error().code == ErrorCode::kData) return put_back(opened.error().message) && open();
  if (!opened && opened.error().code == ErrorCode::kUnavailable) return false;
  if (!opened) {
    violated_("I28: the chief can't read its journal any more: " + opened.error().message);
    return false;
  }
  if (opened->cut_bytes > 0) world_.count(Happening::kJournalTorn);
  for (const std::string& line : opened->told) world_.tell("chief/0's journal: " + line);
  if (std::any_of(opened->told.begin(), opened->told.end(),
                  [](const std::string& line) { return line.starts_with("repaired the end"); }))
    world_.count(Happening::kJournalMended);
  check(opened->state);
  disk_.undamaged.reset();
  file_.emplace(std::move(opened->file));
  disk_.in_flight.clear();
  disk_.journal = std::move(opened->state);
  world_.count(Happening::kSecondChiefOnFolder);
  if (disk_.platter.open()) violated_("I25: two chiefs have the same journal folder open");
  return true;
}

// The journal must have all acknowledged records. Behind them it may also have records that were being written: none,
// the first few, or all.
void ChiefJournal::check(const chiefd::JournalState& found) {
  chiefd::JournalState expected = disk_.journal;
  const chiefd::JournalState known = comparable(found);
  if (known == comparable(expected)) return;
  for (const chiefd::Record& record : disk_.in_flight) {
    chiefd::apply(expected, record);
    if (known == comparable(expected)) return;
  }
  violated_(
      "I28: the chief opens the journal without a complaint, but the journal differs from the acknowledged records: "
      "term " +
      std::to_string(found.term.value) + " instead of " + std::to_string(disk_.journal.term.value) + ", " +
      std::to_string(found.events.size()) + " events instead of " + std::to_string(disk_.journal.events.size()));
}

bool ChiefJournal::put_back(const std::string& why) {
  if (!disk_.undamaged) {
    violated_("I28: the chief reports a damaged journal, although only the power failed: " + why);
    return false;
  }
  world_.tell("chief/0: " + why);
  world_.count(Happening::kJournalDamageTold);
  disk_.platter = *std::exchange(disk_.undamaged, std::nullopt);
  return true;
}

bool ChiefJournal::complete() {
  if (std::exchange(has_failed_, true)) return false;
  const chiefd::Record record = in_flight_.front();
  if (disk_.fails && one_in(100)) {
    world_.tell("the chief's own disk fails");
    world_.count(Happening::kJournalFailed);
    return false;
  }
  const Status written = file_->append(std::span(&record, 1));
  if (!written) {
    world_.tell("the chief's journal: " + written.error().message);
    return false;
  }
  in_flight_.erase(in_flight_.begin());
  chiefd::apply(disk_.journal, record);
  const Result<std::optional<Error>> rewritten = file_->rewrite_if_far_grown();
  if (!rewritten.has_value()) return false;
  if (*rewritten) world_.count(Happening::kJournalRewritePutOff);
  has_failed_ = false;
  return true;
}

void ChiefJournal::die() {
  disk_.in_flight = in_flight_;
  if (in_flight_.empty()) return;
  disk_.platter.fault = {};
  const bool loses_power = one_in(2);
  const bool is_written = one_in(2);
  if (loses_power) disk_.platter.cut_power_after(disk_.random.below(3), disk_.random);
  if (loses_power || is_written) static_cast<void>(file_->append(in_flight_));
  if (!loses_power) return;
  world_.count(Happening::kJournalPowerLost);
  disk_.platter.restart(disk_.random);
}

void ChiefJournal::damage() {
  JournalPlatter& platter = disk_.platter;
  const std::string name = one_in(6) ? "journal.mark" : "journal";
  JournalPlatter::Bytes* const bytes = platter.content(name);
  if (bytes == nullptr || bytes->empty()) return;
  const std::uint64_t how = disk_.random.below(10);
  disk_.undamaged = platter.copied();
  world_.tell("the chief's " + name + " is damaged in way " + std::to_string(how));
  world_.count(how < 7 ? Happening::kJournalFlipped : Happening::kJournalCut);
  if (how < 7) {
    // Usually spares the head of the file, because most of its bytes are unused.
    const std::size_t begin = how < 5 && bytes->size() > chiefd::kJournalHeadBytes ? chiefd::kJournalHeadBytes : 0;
    const std::size_t at = begin + disk_.random.below(bytes->size() - begin);
    (*bytes)[how == 6 ? bytes->size() - 1 : at] ^= std::byte(1 << disk_.random.below(8));
  } else if (how == 7) {
    bytes->resize(disk_.random.below(bytes->size()));
  } else if (how == 8) {
    bytes->clear();
  } else {
    platter.remove(name);
  }
}

void ChiefJournal::set_clock() {
  const auto by = std::chrono::seconds(static_cast<std::int64_t>(disk_.random.below(7200)) - 5400);
  world_.count(by.count() < 0 ? Happening::kWallClockSetBack : Happening::kWallClockSetForward);
  disk_.wall_set_by += by;
}

}  // namespace disttrain::sim
