// Why the workers of a job that trains are told to pause: a ps is silent or cut off, workers are too few, or the
// chief's own disk is late. (A ps that leaves is the fourth reason: leaving.h.) Pure bookkeeping.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

// A ps that is waited for.
struct Silence {
  Instant since;
  bool is_link = false;  // the chief hears it; most workers don't reach it
  std::string why{};     // then
};

class Pauses {
 public:
  const std::map<TaskId, Silence>& silent_ps() const { return silent_ps_; }
  bool is_any_silent() const { return !silent_ps_.empty(); }
  bool is_silent(TaskId ps) const { return silent_ps_.count(ps) != 0; }
  void note_silent(TaskId ps, Silence silence) { silent_ps_[ps] = std::move(silence); }
  // True: it was the last one that was waited for.
  bool note_back(TaskId ps) { return silent_ps_.erase(ps) > 0 && silent_ps_.empty(); }
  // Likewise, of all those whose links are back.
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

  // Returns what it was.
  bool set_disk_late(bool is_late) { return std::exchange(is_disk_late_, is_late); }

  bool is_any() const { return is_any_silent() || is_short_ || is_disk_late_; }
  // Silence and shortage end with the generation. The disk may stay late.
  void drop_generation();

 private:
  std::map<TaskId, Silence> silent_ps_;
  bool is_short_ = false;
  Instant short_since_;
  bool is_disk_late_ = false;
};

}  // namespace disttrain::chiefd
