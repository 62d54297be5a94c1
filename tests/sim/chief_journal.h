// The chief's own disk: the real journal file and its codec on a disk in memory that tears writes, flips bits, loses
// files and fills up. Acknowledged records survive all this, or the chief reports the damage (I28).
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

// The chief's state that outlives its process.
struct ChiefDisk {
  explicit ChiefDisk(std::uint64_t seed);

  chiefd::JournalState journal;  // of all acknowledged records
  Duration slowest = std::chrono::milliseconds(5);
  Instant hung_until;               // no write ends before this time
  std::function<void()> on_failed;  // the disk failed, so the chief must end

  // Ends all faults.
  void heal();
  // The clocks of the chief's host.
  chiefd::EventClocks clocks(Instant now) const;

  // The faults of this seed's disk.
  bool flips = false;
  bool has_no_room = false;
  bool fails = false;
  bool clock_is_set = false;
  chiefd::JournalPlatter platter;
  std::optional<chiefd::JournalPlatter> undamaged;  // the files before they were damaged
  std::vector<chiefd::Record> in_flight;            // what the previous chief was writing when it died
  Duration wall_set_by{};
  Random random;
};

// One chief's journal.
class ChiefJournal {
 public:
  using Violated = std::function<void(const std::string&)>;
  ChiefJournal(World& world, ChiefDisk& disk, Violated violated)
      : world_(world), disk_(disk), violated_(std::move(violated)) {}
  // The process dies. What it was writing is on the disk whole, in part, or not at all. Then the disk may damage a
  // file, and the wall clock may be set.
  ~ChiefJournal();

  // False: the disk is full; try again later. If the journal is reported as damaged, an operator restores it from a
  // copy that has all records.
  bool open();
  // A record is being written, until complete().
  void begin(const chiefd::Record& record) { in_flight_.push_back(record); }
  // Makes the oldest record that was begun durable, and adds it to disk.journal. False: the disk failed, and the chief
  // must end.
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
  bool has_failed_ = false;  // if true, nothing is written any more, and the chief ends
};

}  // namespace disttrain::sim
