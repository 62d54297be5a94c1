// The chief's own disk: the real journal file and its codec on a disk in memory, which tears writes, flips bits, loses
// files and has no room. What was acknowledged outlives that, or the chief says that it doesn't (I28).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "chiefd/journal/file.h"
#include "common/random.h"
#include "tests/chiefd/journal/memory_disk.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

// What outlives the chief's process.
struct ChiefDisk {
  explicit ChiefDisk(std::uint64_t seed);

  chiefd::JournalState journal;  // what was acknowledged
  Duration slowest = std::chrono::milliseconds(5);
  Instant hung_until;               // nothing is written before
  std::function<void()> on_failed;  // the chief ends: its disk failed

  // No more faults.
  void heal();
  // A host's clocks.
  chiefd::EventClocks clocks(Instant now) const;

  // What this seed's disk does.
  bool flips = false;
  bool has_no_room = false;
  bool fails = false;
  bool clock_is_set = false;
  chiefd::JournalPlatter platter;
  std::optional<chiefd::JournalPlatter> undamaged;  // as its files were before something was done to them
  std::vector<chiefd::Record> in_flight;            // what the chief before was writing as it died
  Duration wall_set_by{};
  Random random;
};

// One chief's journal.
class ChiefJournal {
 public:
  using Violated = std::function<void(const std::string&)>;
  ChiefJournal(World& world, ChiefDisk& disk, Violated violated)
      : world_(world), disk_(disk), violated_(std::move(violated)) {}
  // The process dies: what it was writing may be there, or in part. Then the disk does what it does to files.
  ~ChiefJournal();

  // False: there is no room; it is to be tried again. Where the journal is said to be damaged an operator puts it back
  // from a copy that has its end.
  bool open();
  // From now on until it is durable.
  void begin(const chiefd::Record& record) { in_flight_.push_back(record); }
  // The oldest that was begun is durable, and disk.journal has it. False: the disk failed, and the chief ends.
  bool complete();

 private:
  bool put_back(const std::string& why);
  void check(const chiefd::JournalState& found);
  void die();
  void damage();
  void set_clock();
  bool one_in(std::uint64_t n) { return disk_.random.below(n) == 0; }

  World& world_;
  ChiefDisk& disk_;
  const Violated violated_;
  std::optional<chiefd::JournalFile> file_;
  std::vector<chiefd::Record> in_flight_;
  bool has_failed_ = false;  // then nothing is written any more: the chief ends
};

}  // namespace disttrain::sim
