// OpenStep, sync: what a shard has reported to the pacer about the open step (the next one to be committed), and the
// plan of its sum, which the store judges before the report is sent.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "common/check.h"
#include "common/messages/data.h"
#include "shards/core/events.h"

namespace disttrain::shards {

class OpenStep {
 public:
  // The last report; its step is 0 if there is none for this roster.
  const Staged& reported() const { return reported_; }
  bool is_reported(const Staged& staged) const {
    return reported_.step == staged.step && reported_.members == staged.members;
  }

  // The shard has another report to make.
  void report(const Staged& staged) {
    reported_ = staged;
    judged_.reset();
  }
  // The store judges the sum before the report is sent.
  void judge(std::shared_ptr<SumPlan> plan) {
    DISTTRAIN_CHECK(plan != nullptr && !is_judging_);
    judged_ = std::move(plan);
    is_judging_ = true;
  }
  bool is_judging() const { return is_judging_; }
  // The store's answer. REQUIRES: is_judging().
  void end_judging(double norm2, bool is_finite) {
    DISTTRAIN_CHECK(is_judging_);
    is_judging_ = false;
    reported_.norm2 = norm2;
    reported_.nonfinite = !is_finite;
  }
  // The plan of the sum that the commit names, if the store has judged it; else null.
  std::shared_ptr<SumPlan> judged_for(const Commit& commit) const {
    return reported_.step == commit.step && reported_.members == commit.members ? judged_ : nullptr;
  }

  // The step is committed.
  void close() {
    is_judging_ = false;
    judged_.reset();
  }
  // The step begins anew with another roster.
  void begin_anew() {
    close();
    reported_ = {};
  }

  // Returns an empty plan. Reuses the memory of a plan that no action refers to any more, if there is one.
  std::shared_ptr<SumPlan> new_plan() {
    const auto is_free = [](const std::shared_ptr<SumPlan>& plan) { return plan.use_count() == 1; };
    const auto free = std::find_if(plans_.begin(), plans_.end(), is_free);
    if (free == plans_.end()) return plans_.emplace_back(std::make_shared<SumPlan>());
    (*free)->terms.clear();
    (*free)->scale = 1.0;
    (*free)->is_measured = false;
    return *free;
  }

 private:
  Staged reported_;
  bool is_judging_ = false;                      // the store hasn't answered JudgeStep for reported_ yet
  std::shared_ptr<SumPlan> judged_;              // of reported_
  std::vector<std::shared_ptr<SumPlan>> plans_;  // all plans
};

}  // namespace disttrain::shards
