#include "workerd/core/batch_queue.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace disttrain::workerd {
namespace {

// The worker asks for a lease this many seconds before it needs one. In this time a chief that was killed can restart.
constexpr double kSecondsAhead = 2.0;

PlanOptions plan_options(const JobFacts& facts) {
  return PlanOptions{
      .own_order = facts.config.data.sharding == Sharding::kNone,
      .sync = facts.config.train.mode == Mode::kSync,
      .step_records = facts.config.train.step_records(),
      .records = facts.train_records,
      .epochs = facts.config.train.epochs,
      .done = facts.batches,
  };
}

}  // namespace

BatchQueue::BatchQueue(const JobFacts& facts)
    : prefetch_(facts.config.data.prefetch),
      has_leases_(facts.config.data.sharding == Sharding::kLease),
      plan_(plan_options(facts)) {}

// If the grant contained nothing new, the next request waits for a tick. Otherwise this worker and the chief would
// exchange the same request and answer in an endless loop.
void BatchQueue::grant(const LeaseGrant& grant) {
  is_lease_requested_ = false;
  is_lease_refused_ = !plan_.grant(grant);
}

void BatchQueue::note_ready(BatchTicket ticket) {
  for (std::size_t i = 0; i < planned_.size(); ++i)
    if (planned_[i].order.ticket == ticket) planned_[i].is_ready = true;
}

void BatchQueue::fill(Actions& out) {
  while (planned_.size() < prefetch_) {
    std::optional<BatchOrder> order = plan_.next();
    if (!order) break;
    order->ticket = last_ticket_ = last_ticket_.next();
    out.push_back(RequestBatch{*order});
    planned_.push_back(Planned{std::move(*order), false});
  }
}

void BatchQueue::request_lease(double records_per_second, Actions& out) {
  if (!has_leases_ || is_lease_requested_ || is_lease_refused_) return;
  const auto ahead = static_cast<std::uint64_t>(std::min(records_per_second * kSecondsAhead, 1e15));
  if (!plan_.runs_dry(prefetch_, ahead)) return;
  is_lease_requested_ = true;
  out.push_back(RequestLease{records_per_second});
}

std::optional<BatchTicket> BatchQueue::awaited() const {
  if (planned_.empty() || planned_.front().is_ready) return std::nullopt;
  return planned_.front().order.ticket;
}

BatchOrder BatchQueue::take() {
  DISTTRAIN_CHECK(is_ready());
  BatchOrder order = std::move(planned_.front().order);
  planned_.pop_front();
  return order;
}

void BatchQueue::drop_front(Actions& out) {
  out.push_back(DropBatch{planned_.front().order.ticket});
  planned_.pop_front();
}

void BatchQueue::drop_all(Actions& out) {
  while (!planned_.empty()) drop_front(out);
}

void BatchQueue::change_roster(RosterVersion roster, Step next, bool is_first, Actions& out) {
  plan_.change_roster(roster, next);
  if (!is_first) is_lease_requested_ = false;
  drop_all(out);
}

void BatchQueue::skip_to(Step next, Actions& out) {
  while (!planned_.empty() && planned_.front().order.step < next) drop_front(out);
  plan_.skip_to(next);
}

}  // namespace disttrain::workerd
