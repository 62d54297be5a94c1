#include "workerd/core/batch_plan.h"

#include <algorithm>
#include <limits>
#include <span>

namespace disttrain::workerd {

namespace {

std::uint64_t length(std::span<const Interval> intervals) {
  std::uint64_t sum = 0;
  for (const Interval& interval : intervals) sum += interval.end - interval.begin;
  return sum;
}

// Joins the intervals into one list and returns the list's items [begin, end). If the list ends before `end`, returns
// its items from `begin` on.
Positions cut(std::span<const Interval> intervals, std::uint64_t begin, std::uint64_t end) {
  Positions part;
  std::uint64_t at = 0;
  for (const Interval& interval : intervals) {
    const std::uint64_t size = interval.end - interval.begin;
    const std::uint64_t from = std::max(begin, at);
    const std::uint64_t to = std::min(end, at + size);
    if (from < to) part.push_back(Interval{interval.begin + (from - at), interval.begin + (to - at)});
    at += size;
    if (at >= end) break;
  }
  return part;
}

}  // namespace

BatchPlan::BatchPlan(const PlanOptions& options) : options_(options), last_(options.own_order) {
  if (!options_.own_order || options_.records == 0) return;
  const std::uint64_t batches = (options_.records + options_.step_records - 1) / options_.step_records;
  epoch_ = static_cast<std::uint32_t>(options_.done / batches);
  begin_ = options_.done % batches * options_.step_records;
}

bool BatchPlan::grant(const LeaseGrant& grant) {
  if (options_.own_order) return false;
  const bool is_end_new = grant.last && (!last_ || last_roster_ < grant.roster);
  if (grant.last) {
    last_ = true;
    last_roster_ = std::max(last_roster_, grant.roster);
  }
  if (!grant.lease) return is_end_new;
  const Lease& lease = *grant.lease;
  if (lease.id <= newest_) return is_end_new;
  newest_ = lease.id;
  Held held{lease, length(lease.positions), 0};
  if (options_.sync) {
    if (roster_ && lease.roster < *roster_) return is_end_new;
    if (lease.steps == 0 || lease.ranks == 0) return is_end_new;
    newest_size_ = lease.steps;
  } else {
    if (held.records == 0) return is_end_new;
    newest_size_ = held.records;
  }
  held_.push_back(std::move(held));
  return true;
}

std::optional<BatchOrder> BatchPlan::next() {
  if (options_.own_order) return next_own();
  return options_.sync ? next_of_block() : next_of_lease();
}

std::optional<BatchOrder> BatchPlan::next_own() {
  if (exhausted()) return std::nullopt;
  BatchOrder order;
  order.epoch = epoch_;
  order.examples = std::min(options_.step_records, options_.records - begin_);
  order.positions.push_back(Interval{begin_, begin_ + order.examples});
  begin_ += order.examples;
  if (begin_ == options_.records) {
    begin_ = 0;
    ++epoch_;
  }
  return order;
}

std::optional<BatchOrder> BatchPlan::next_of_lease() {
  if (held_.empty()) return std::nullopt;
  Held& held = held_.front();
  BatchOrder order;
  order.epoch = held.lease.epoch;
  order.lease = held.lease.id;
  order.positions = cut(held.lease.positions, held.taken, held.taken + options_.step_records);
  order.examples = length(order.positions);
  held.taken += order.examples;
  if (held.taken == held.records) held_.pop_front();
  return order;
}

std::optional<BatchOrder> BatchPlan::next_of_block() {
  forget_past_blocks();
  if (!has_block_in_force() || held_.front().lease.first_step > next_step_) return std::nullopt;
  const Lease& lease = held_.front().lease;
  const std::uint64_t n = next_step_.value - lease.first_step.value;
  const std::uint64_t begin = (n * lease.ranks + lease.rank.value) * options_.step_records;
  BatchOrder order;
  order.epoch = lease.epoch;
  order.lease = lease.id;
  order.positions = cut(lease.positions, begin, begin + options_.step_records);
  order.examples = length(order.positions);
  order.step = next_step_;
  next_step_ = next_step_.next();
  forget_past_blocks();
  return order;
}

void BatchPlan::forget_past_blocks() {
  while (has_block_in_force() && held_.front().lease.first_step.value + held_.front().lease.steps <= next_step_.value)
    held_.pop_front();
}

void BatchPlan::skip_to(Step step) {
  next_step_ = std::max(next_step_, step);
  if (options_.sync) forget_past_blocks();
}

void BatchPlan::change_roster(RosterVersion roster, Step next_step) {
  if (options_.own_order || !options_.sync || roster_ == roster) return;
  roster_ = roster;
  next_step_ = next_step;
  std::erase_if(held_, [roster](const Held& held) { return held.lease.roster < roster; });
  forget_past_blocks();
}

bool BatchPlan::is_last_told() const {
  return last_ && (!options_.sync || !roster_ || last_roster_ >= *roster_);
}

bool BatchPlan::exhausted() const {
  if (!options_.own_order) return is_last_told() && held_.empty();
  return options_.records == 0 || (options_.epochs != 0 && epoch_ >= options_.epochs);
}

bool BatchPlan::runs_dry(std::uint64_t batches_ahead, std::uint64_t records_ahead) const {
  if (is_last_told()) return false;
  std::uint64_t left = 0;
  for (const Held& held : held_) {
    if (options_.sync) {
      if (roster_ && held.lease.roster != *roster_) continue;
      left += held.lease.first_step.value + held.lease.steps - std::max(next_step_, held.lease.first_step).value;
    } else {
      left += held.records - held.taken;
    }
  }
  const std::uint64_t ahead =
      options_.sync ? batches_ahead : std::max(batches_ahead * options_.step_records, records_ahead);
  return left < std::max(ahead, newest_size_ / 2);
}

}  // namespace disttrain::workerd
