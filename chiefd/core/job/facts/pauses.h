// Stores the reasons why the workers of a training job pause: a ps is silent or cut off from the workers, too few
// workers are left, or the chief's own disk is late. chiefd/core/job/views/end.h has the fourth reason: a ps leaves.
// This class decides nothing.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

// Why and since when the job waits for a ps.
struct Silence {
  Instant since;
  bool is_link = false;  // the chief hears the ps, but most workers can't reach it
  std::string why{};     // set if is_link
};

class Pauses {
 public:
  const std::map<TaskId, Silence>& silent_ps() const { return silent_ps_; }
  bool is_any_silent() const { return !silent_ps_.empty(); }
  bool is_silent(TaskId ps) const { return silent_ps_.count(ps) != 0; }
  void note_silent(TaskId ps, Silence silence) { silent_ps_[ps] = std::move(silence); }
  // The ps is back. Returns true if it was the last ps that the job waited for.
  bool note_back(TaskId ps) { return silent_ps_.erase(ps) > 0 && silent_ps_.empty(); }
  // Ends the wait for every ps that was cut off and whose links work again. Returns true if the job now waits for no
  // ps.
  template <typename IsBack>
  bool note_links_back(const IsBack& is_back) {
    const auto is_over = [&](const auto& entry) { return entry.second.is_link && is_back(entry.first); };
    return std::erase_if(silent_ps_, is_over) > 0 && silent_ps_.empty();
  }
  void forget_silent() { silent_ps_.clear(); }

  bool is_short() const { return is_short_; }
  Instant short_since() const { return short_since_; }
  void begin_shortage(Instant now);
  void end_shortage() { is_short_ = false; }
  void excuse_shortage(Duration pause);

  bool is_disk_late() const { return is_disk_late_; }
  void set_disk_late(bool is_late) { is_disk_late_ = is_late; }

  bool is_any() const { return is_any_silent() || is_short_ || is_disk_late_; }
  // Called when a generation is over. Forgets silent ps tasks and missing workers, because they belong to this
  // generation. Doesn't forget a late disk, because the disk may still be late.
  void drop_generation();

 private:
  std::map<TaskId, Silence> silent_ps_;
  bool is_short_ = false;
  Instant short_since_;
  bool is_disk_late_ = false;
};

}  // namespace disttrain::chiefd
