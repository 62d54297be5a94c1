// CutAttempts: the checkpoint attempts of a shard. The chief numbers them: a later one has a higher number. An attempt
// is prepared, then cut or abandoned; then it is settled. After the cut an attempt may hold: nothing is applied until
// the chief abandons it. See shard_cut.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/check.h"
#include "common/ids.h"
#include "common/time.h"

namespace disttrain::shards {

class CutAttempts {
 public:
  // The attempt that is prepared and not cut yet; 0 = none.
  std::uint64_t current() const { return current_; }
  bool is_current(std::uint64_t attempt) const { return attempt != 0 && attempt == current_; }
  // The attempt whose cut holds, so that nothing is applied now; 0 = none.
  std::uint64_t held() const { return held_; }
  bool is_held(std::uint64_t attempt) const { return attempt != 0 && attempt == held_; }
  // The attempt is settled or current, or older than one that is.
  bool is_known(std::uint64_t attempt) const { return attempt <= std::max(settled_, current_); }

  // REQUIRES: !is_known(attempt), and no attempt is current or held. `holds`: it holds after its cut.
  void prepare(std::uint64_t attempt, bool holds) {
    DISTTRAIN_CHECK(!is_known(attempt) && current_ == 0 && held_ == 0);
    current_ = attempt;
    holds_ = holds;
  }
  // The current attempt is cut or given up, if there is one.
  void settle() {
    settled_ = std::max(settled_, current_);
    current_ = 0;
    cut_at_.reset();
    first_mark_.reset();
  }
  // Attempts up to this one need no preparation any more. The order to prepare one may still arrive.
  void settle_up_to(std::uint64_t attempt) { settled_ = std::max(settled_, attempt); }

  // Whether the current attempt holds after its cut.
  bool holds() const { return holds_; }
  void hold() { held_ = current_; }
  void end_hold() { held_ = 0; }

  // async, ssp: when the current attempt got its first mark.
  const std::optional<Instant>& first_mark() const { return first_mark_; }
  // REQUIRES: an attempt is current.
  void note_mark(Instant now) {
    DISTTRAIN_CHECK(current_ != 0);
    if (!first_mark_) first_mark_ = now;
  }

  // pacer, sync: the shard must cut when this step is committed.
  const std::optional<Step>& cut_at() const { return cut_at_; }
  // REQUIRES: an attempt is current.
  void set_cut_at(Step step) {
    DISTTRAIN_CHECK(current_ != 0);
    cut_at_ = step;
  }
  // pacer, sync: the newest attempt for which it told the other shards to cut; 0 = none.
  std::uint64_t ordered() const { return ordered_; }
  void note_ordered() { ordered_ = current_; }

 private:
  std::uint64_t current_ = 0;
  bool holds_ = false;
  std::uint64_t held_ = 0;
  std::uint64_t settled_ = 0;  // the newest attempt that was cut or abandoned
  std::optional<Instant> first_mark_;
  std::optional<Step> cut_at_;
  std::uint64_t ordered_ = 0;
};

}  // namespace disttrain::shards
