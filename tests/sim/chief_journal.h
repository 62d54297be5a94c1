// The chief's own disk. The journal's real code for files and records runs on a disk in memory that tears writes, flips
// bits, loses files and fills up. Acknowledged records survive all this, or the chief reports the damage (I28).
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

// The state on the chief's host that survives the death of the chief's process.
struct ChiefDisk {
  explicit ChiefDisk(std::uint64_t seed);

  chiefd::JournalState journal;  // of all acknowledged records
  Duration slowest = std::chrono::milliseconds(5);
  Instant hung_until;               // no write ends before this time
  std::function<void()> on_failed;  // called when the disk has failed; it must end the chief

  // Ends all faults.
  void heal();
  // The clocks of the chief's host.
  chiefd::EventClocks clocks(Instant now) const;

  // Which faults this seed's disk has.
  bool flips = false;
  bool has_no_room = false;
  bool fails = false;
  bool clock_is_set = false;
  chiefd::JournalPlatter platter;
  std::optional<chiefd::JournalPlatter> undamaged;  // the content before a fault damaged it
  std::vector<chiefd::Record> in_flight;            // the records that the previous chief was writing when it died
  Duration wall_set_by{};
  Random random;
};

// The journal of the chief, as one process of the chief uses it.
class ChiefJournal {
 public:
  using Violated = std::function<void(const std::string&)>;
  ChiefJournal(World& world, ChiefDisk& disk, Violated violated)
      : world_(world), disk_(disk), violated_(std::move(violated)) {}
  // The process dies. The records that it was writing are on the disk completely, in part, or not at all. After that,
  // the disk may damage a file, and the wall clock may jump.
  ~ChiefJournal();

  // Returns false if the disk is full; then the caller tries again later. If the journal is damaged, the chief reports
  // this, and a simulated operator restores a copy that has all records.
  bool open();
  // Begins to write a record. The write goes on until complete().
  void begin(const chiefd::Record& record) { in_flight_.push_back(record); }
  // Makes the oldest record that is being written durable, and adds it to disk.journal. Returns false if the disk
  // failed; then the chief must end.
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
  bool has_failed_ = false;  // once true, nothing more is written, and the chief ends
};

}  // namespace disttrain::sim
