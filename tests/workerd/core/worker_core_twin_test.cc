// Several real WorkerCores train with simple shards that the test plays. The order of events is random wherever it may
// differ, and channels break from time to time. A shard reads a gradient when its frame arrives, and not when it is
// sent. So if the bytes change too early, a sum is wrong.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "workerd/core/worker_core.h"

namespace disttrain::workerd {
namespace {

struct Rules {
  Mode mode = Mode::kAsync;
  std::uint32_t pipeline = 0;
  Sharding sharding = Sharding::kLease;
  bool cuts = false;
  bool begins_early = false;
};

class Fleet {
 public:
  Fleet(const Rules& rules, std::uint64_t seed) : rules_(rules), random_(seed) {
    workers_n_ = pick(1, 3);
    shards_n_ = static_cast<std::uint32_t>(pick(1, 3));
    records_ = pick(1, 200);
    batch_ = pick(1, 17);
    epochs_ = pick(1, 2);
    const std::uint32_t buckets = shards_n_ * static_cast<std::uint32_t>(pick(1, 5));
    std::vector<std::uint64_t> shard_end(shards_n_, 0);
    layout_.shards = shards_n_;
    for (std::uint32_t b = 0; b < buckets; ++b) {
      const std::uint32_t s = b % shards_n_;
      layout_.buckets.push_back(Bucket{ShardId(s), b, shard_end[s]++, 1});
    }
    for (std::uint32_t b = 0; b < buckets; b += static_cast<std::uint32_t>(pick(1, 4)))
      layout_.variable_begins.push_back(b);
    shards_.resize(shards_n_);
    for (Shard& shard : shards_) {
      shard.values.assign(buckets, 0.0);
      shard.history.push_back(shard.values);
      shard.last.assign(workers_n_, 0);
      shard.parked.assign(workers_n_, std::nullopt);
      shard.staged.resize(workers_n_);
    }
    visits_.assign(epochs_, std::vector<int>(records_, 0));
    Roster roster{RosterVersion(1), {}};
    for (std::uint32_t w = 0; w < workers_n_; ++w)
      roster.members.push_back(Member{TaskId{Role::kWorker, w}, Incarnation(100 + w)});
    for (std::uint32_t w = 0; w < workers_n_; ++w) {
      JobFacts facts;
      facts.self = roster.members[w];
      facts.roster = roster;
      facts.layout = layout_;
      facts.train_records = records_;
      facts.credits = static_cast<std::uint32_t>(pick(1, 4));
      facts.begins_early = rules.begins_early;
      facts.config.train.mode = rules.mode;
      facts.config.train.pipeline = rules.pipeline;
      facts.config.train.batch_size = static_cast<std::uint32_t>(batch_);
      facts.config.train.epochs = epochs_;
      facts.config.data.sharding = rules.sharding;
      facts.config.data.prefetch = static_cast<std::uint32_t>(pick(1, 4));
      auto worker = std::make_unique<Worker>();
      worker->core = std::make_unique<WorkerCore>(facts, now_);
      worker->parameters.assign(2, std::vector<double>(buckets, -1.0));
      worker->gradients.assign(2, std::vector<double>(buckets, 0.0));
      worker->up.resize(shards_n_);
      worker->down.resize(shards_n_);
      worker->connected.assign(shards_n_, false);
      workers_.push_back(std::move(worker));
    }
  }

  void run() {
    for (int turn = 0; turn < 400000; ++turn) {
      if (done() || testing::Test::HasFailure()) return;
      now_ += std::chrono::microseconds(1);
      turn_of(pick(0, workers_n_ - 1));
    }
    ADD_FAILURE() << "no end after 400,000 turns";
  }

  void expect_every_record_once() const {
    for (const auto& epoch : visits_)
      for (const int visits : epoch) ASSERT_EQ(visits, 1);
    double sum = 0.0;
    for (std::uint64_t r = 0; r < records_; ++r) sum += static_cast<double>(r + 1);
    expect_sums(sum * static_cast<double>(epochs_));
  }
  void expect_every_record_once_per_worker() const {
    double sum = 0.0;
    for (std::uint64_t r = 0; r < records_; ++r) sum += static_cast<double>(r + 1);
    expect_sums(sum * static_cast<double>(epochs_ * workers_n_));
  }

 private:
  struct Frame {
    Sequence sequence;
    Push push;
    std::uint32_t gradients = 0;
    std::uint64_t pull_id = 0;  // a pull instead
  };
  struct Answer {
    Parameters parameters;
    double value = 0.0;
    std::optional<Acknowledge> acknowledge;  // instead
  };
  struct Staged {
    std::map<std::uint64_t, std::map<std::uint32_t, double>> values;  // by clock, bucket
    std::map<std::uint64_t, Push> complete;                           // last frame, by clock
  };
  struct Shard {
    std::vector<double> values;
    std::vector<std::vector<double>> history;  // by version
    std::uint64_t version = 0;
    std::vector<std::uint64_t> last;                   // by worker
    std::vector<std::optional<std::uint64_t>> parked;  // by worker: clock
    std::vector<Staged> staged;
  };
  struct Worker {
    std::unique_ptr<WorkerCore> core;
    std::vector<std::vector<double>> parameters, gradients;  // by buffer, bucket
    std::vector<std::deque<Frame>> up;
    std::vector<std::deque<Answer>> down;
    std::vector<bool> connected;
    std::map<BatchTicket, BatchOrder> orders;
    std::vector<BatchTicket> not_ready;
    std::optional<Compute> computing;
    std::uint32_t ready_ranges = 0;
    std::set<std::uint32_t> missing;  // buckets of `computing` that haven't arrived
    bool wants_lease = false;
    bool opened = false, started = false, finished = false;
  };

  std::uint64_t pick(std::uint64_t from, std::uint64_t to) {
    return std::uniform_int_distribution<std::uint64_t>(from, to)(random_);
  }
  bool done() const {
    return std::all_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->finished; });
  }
  void expect_sums(double sum) const {
    for (std::uint32_t b = 0; b < layout_.buckets.size(); ++b)
      ASSERT_EQ(shards_[b % shards_n_].values[b], sum * (b + 1)) << "bucket " << b;
  }

  void turn_of(std::size_t w) {
    Worker& worker = *workers_[w];
    const auto s = static_cast<std::uint32_t>(pick(0, shards_n_ - 1));
    switch (pick(0, 5)) {
      case 0:
        return to_shard(w, s);
      case 1:
        return to_worker(w, s);
      case 2:
        return make_batch(w);
      case 3:
        return worker.computing ? compute_on(w) : void();
      case 4:
        return lend(w);
      default:
        return connect_or_cut(w, s);
    }
  }

  void give(std::size_t w, const Event& event) {
    Actions actions;
    workers_[w]->core->step(now_, event, actions);
    for (const Action& action : actions) std::visit([this, w](const auto& a) { carry_out(w, a); }, action);
  }

  void connect_or_cut(std::size_t w, std::uint32_t s) {
    Worker& worker = *workers_[w];
    if (!worker.connected[s]) {
      worker.connected[s] = true;
      give(w, ChannelOpened{ShardId(s), Sequence(shards_[s].last[w])});
      if (worker.opened && !worker.started) {
        worker.started = true;
        give(w, Start{});
      }
    } else if (rules_.cuts && worker.started && pick(0, 30) == 0) {
      worker.connected[s] = false;
      worker.up[s].clear();
      worker.down[s].clear();
      shards_[s].parked[w].reset();
      give(w, ChannelLost{ShardId(s), "cut"});
    }
  }

  void make_batch(std::size_t w) {
    Worker& worker = *workers_[w];
    if (worker.not_ready.empty()) return;
    const std::size_t i = pick(0, worker.not_ready.size() - 1);
    const BatchTicket ticket = worker.not_ready[i];
    worker.not_ready.erase(worker.not_ready.begin() + static_cast<std::ptrdiff_t>(i));
    give(w, BatchReady{ticket});
  }

  void compute_on(std::size_t w) {
    Worker& worker = *workers_[w];
    if (!worker.missing.empty()) return;
    if (worker.ready_ranges < layout_.buckets.size()) {
      double sum = 0.0;
      for (const Interval& interval : worker.orders.at(worker.computing->batch).positions)
        for (std::uint64_t r = interval.begin; r < interval.end; ++r) sum += static_cast<double>(r + 1);
      const std::uint32_t b = worker.ready_ranges++;
      worker.gradients[worker.computing->gradients][b] = sum * (b + 1);
      if (worker.computing->early) give(w, RangesReady{b + 1});
      return;
    }
    worker.computing.reset();
    give(w, Computed{1.0F});
  }

  // Plays the chief, which lends leases. In async, lends some of the remaining records. In sync, lends blocks of random
  // length, and each worker gets every block.
  void lend(std::size_t w) {
    Worker& worker = *workers_[w];
    if (!worker.wants_lease) return;
    LeaseGrant grant;
    grant.roster = RosterVersion(1);
    if (rules_.mode == Mode::kSync) {
      std::size_t& next = next_block_[w];
      if (next == blocks_.size() && next_epoch_ < epochs_) make_block();
      if (next < blocks_.size()) {
        grant.lease = blocks_[next++];
        grant.lease->rank = Rank(static_cast<std::uint32_t>(w));
      }
      grant.last = next == blocks_.size() && next_epoch_ == epochs_;
    } else {
      if (next_epoch_ < epochs_) {
        Lease lease;
        lease.id = LeaseId(++last_lease_);
        lease.epoch = static_cast<std::uint32_t>(next_epoch_);
        const std::uint64_t end = std::min(records_, next_record_ + pick(1, 60));
        lease.positions.push_back(Interval{next_record_, end});
        next_record_ = end;
        if (next_record_ == records_) {
          next_record_ = 0;
          ++next_epoch_;
        }
        grant.lease = lease;
      }
      grant.last = next_epoch_ == epochs_;
    }
    worker.wants_lease = false;
    give(w, LeaseGranted{grant});
  }
  void make_block() {
    Lease lease;
    lease.id = LeaseId(++last_lease_);
    lease.epoch = static_cast<std::uint32_t>(next_epoch_);
    lease.roster = RosterVersion(1);
    lease.ranks = static_cast<std::uint32_t>(workers_n_);
    lease.first_step = Step(next_step_);
    const std::uint64_t round = batch_ * workers_n_;
    const std::uint64_t end = std::min(records_, next_record_ + round * pick(1, 5));
    lease.positions.push_back(Interval{next_record_, end});
    lease.steps = (end - next_record_ + round - 1) / round;
    next_step_ += lease.steps;
    next_record_ = end == records_ ? 0 : end;
    if (end == records_) ++next_epoch_;
    blocks_.push_back(lease);
  }

  // ---- a shard ----

  void to_shard(std::size_t w, std::uint32_t s) {
    Worker& worker = *workers_[w];
    if (worker.up[s].empty()) return;
    const Frame frame = worker.up[s].front();
    worker.up[s].pop_front();
    Shard& shard = shards_[s];
    if (frame.pull_id != 0) return answer_all(w, s, frame.pull_id);
    const bool duplicate = frame.sequence.value <= shard.last[w];
    if (!duplicate) {
      ASSERT_EQ(frame.sequence.value, shard.last[w] + 1) << "a gap";
      shard.last[w] = frame.sequence.value;
      const double gradient = worker.gradients[frame.gradients][frame.push.bucket.value];
      if (rules_.mode == Mode::kSync)
        stage(w, s, frame.push, gradient);
      else
        apply(s, frame.push, gradient);
    }
    if (frame.push.want == Want::kBucket) return answer(w, s, frame.push.bucket.value, frame.push.last, 0);
    if (frame.push.want == Want::kNothing) {
      Answer back;
      back.acknowledge = Acknowledge{Sequence(shard.last[w])};
      worker.down[s].push_back(back);
    } else if (rules_.mode != Mode::kSync) {
      answer_all(w, s, 0);
    } else {
      shard.parked[w] = frame.push.clock.value;
      commit(s);
    }
  }
  void apply(std::uint32_t s, const Push& push, double gradient) {
    shards_[s].values[push.bucket.value] += gradient;
    if (!push.last) return;
    ++shards_[s].version;
    if (s == 0) visit(push);
  }
  void stage(std::size_t w, std::uint32_t s, const Push& push, double gradient) {
    Staged& staged = shards_[s].staged[w];
    ASSERT_LE(push.clock.value, shards_[s].version + 1 + rules_.pipeline);
    ASSERT_GT(push.clock.value, shards_[s].version);
    staged.values[push.clock.value][push.bucket.value] = gradient;
    if (push.last) staged.complete[push.clock.value] = push;
  }
  void commit(std::uint32_t s) {
    Shard& shard = shards_[s];
    for (;;) {
      const std::uint64_t step = shard.version + 1;
      const bool whole = std::all_of(shard.staged.begin(), shard.staged.end(),
                                     [step](const Staged& staged) { return staged.complete.count(step) > 0; });
      if (!whole) break;
      for (Staged& staged : shard.staged) {
        for (const auto& [bucket, value] : staged.values[step]) shard.values[bucket] += value;
        if (s == 0) visit(staged.complete[step]);
      }
      shard.version = step;
      shard.history.push_back(shard.values);
    }
    for (std::size_t w = 0; w < workers_n_; ++w) {
      if (!shard.parked[w] || *shard.parked[w] > shard.version) continue;
      shard.parked[w].reset();
      answer_all(w, s, 0);
    }
  }
  void visit(const Push& push) {
    if (push.lease == LeaseId()) return;
    for (const Interval& interval : push.visited)
      for (std::uint64_t r = interval.begin; r < interval.end; ++r) ++visits_.at(push.epoch).at(r);
  }
  void answer_all(std::size_t w, std::uint32_t s, std::uint64_t pull_id) {
    const auto buckets = buckets_of(layout_, ShardId(s));
    for (std::size_t i = buckets.size(); i-- > 0;) answer(w, s, buckets[i].value, i == 0, pull_id);
  }
  void answer(std::size_t w, std::uint32_t s, std::uint32_t bucket, bool last, std::uint64_t pull_id) {
    Answer back;
    back.parameters.bucket = BucketId(bucket);
    back.parameters.version = Step(shards_[s].version);
    back.parameters.last = last;
    back.parameters.pull_id = pull_id;
    back.parameters.roster = RosterVersion(1);
    back.parameters.acknowledged = Sequence(shards_[s].last[w]);
    back.value = shards_[s].values[bucket];
    workers_[w]->down[s].push_back(back);
  }

  // ---- a worker ----

  void to_worker(std::size_t w, std::uint32_t s) {
    Worker& worker = *workers_[w];
    if (worker.down[s].empty()) return;
    const Answer back = worker.down[s].front();
    worker.down[s].pop_front();
    if (back.acknowledge) return give(w, AcknowledgeArrived{ShardId(s), *back.acknowledge});
    const std::uint32_t landing = worker.core->landing();
    const bool is_expected = worker.missing.erase(back.parameters.bucket.value) > 0;
    if (worker.computing && landing == worker.computing->parameters && !is_expected) {
      ASSERT_LT(back.parameters.bucket.value, worker.ready_ranges) << "parameters change under a computation";
    }
    worker.parameters[landing][back.parameters.bucket.value] = back.value;
    give(w, ParametersArrived{ShardId(s), back.parameters});
  }

  void carry_out(std::size_t w, const ReportOpened&) { workers_[w]->opened = true; }
  void carry_out(std::size_t w, const RequestLease&) {
    ASSERT_FALSE(workers_[w]->wants_lease) << "two requests at once";
    workers_[w]->wants_lease = true;
  }
  void carry_out(std::size_t w, const RequestBatch& action) {
    ASSERT_LE(action.order.examples, batch_);
    workers_[w]->orders[action.order.ticket] = action.order;
    workers_[w]->not_ready.push_back(action.order.ticket);
  }
  void carry_out(std::size_t w, const DropBatch& action) { std::erase(workers_[w]->not_ready, action.ticket); }
  void carry_out(std::size_t w, const SendPull& action) {
    Frame frame;
    frame.pull_id = action.pull.id;
    workers_[w]->up[action.shard.value].push_back(frame);
  }
  void carry_out(std::size_t w, const SendPush& action) {
    ASSERT_TRUE(workers_[w]->connected[action.shard.value]);
    ASSERT_TRUE(action.payload);
    workers_[w]->up[action.shard.value].push_back(Frame{action.sequence, action.push, action.gradients, 0});
  }
  void carry_out(std::size_t w, const Compute& action) {
    Worker& worker = *workers_[w];
    ASSERT_FALSE(worker.computing);
    worker.computing = action;
    worker.ready_ranges = 0;
    for (const BucketId bucket : action.awaited) worker.missing.insert(bucket.value);
    if (rules_.mode != Mode::kSync) return;
    // All parameters must have one version: the version with which this step must compute.
    const auto& parameters = worker.parameters[action.parameters];
    const std::uint64_t version = action.step == 1 ? 0 : action.step - 1 - rules_.pipeline;
    for (std::uint32_t b = 0; b < parameters.size(); ++b)
      ASSERT_EQ(parameters[b], shards_[b % shards_n_].history.at(version)[b]) << "step " << action.step;
  }
  void carry_out(std::size_t w, const Recompute& action) {
    for (const BucketId bucket : buckets_of(layout_, action.shard)) workers_[w]->missing.insert(bucket.value);
  }
  void carry_out(std::size_t, const DropCompute&) { FAIL() << "the job has no last step"; }
  void carry_out(std::size_t w, const ReportFinished&) { workers_[w]->finished = true; }
  void carry_out(std::size_t, const Accuse&) {}
  void carry_out(std::size_t, const Fail& action) { FAIL() << action.error.message; }
  void carry_out(std::size_t, const SendMark&) { FAIL() << "a mark without a request"; }
  void carry_out(std::size_t, const LoadValues&) { FAIL(); }
  void carry_out(std::size_t, const RunEvaluation&) { FAIL(); }
  void carry_out(std::size_t, const ReportEvaluated&) { FAIL(); }

  const Rules rules_;
  std::mt19937_64 random_;
  Instant now_{std::chrono::seconds(1)};
  std::uint64_t workers_n_ = 0;
  std::uint32_t shards_n_ = 0;
  std::uint64_t records_ = 0, batch_ = 0, epochs_ = 0;
  Layout layout_;
  std::vector<Shard> shards_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::vector<int>> visits_;  // by epoch, record
  std::uint64_t next_epoch_ = 0, next_record_ = 0, next_step_ = 1, last_lease_ = 0;
  std::vector<Lease> blocks_;
  std::map<std::size_t, std::size_t> next_block_;  // by worker
};

constexpr int kSeeds = 150;

void run_seeds(const Rules& rules) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Fleet fleet(rules, seed);
    fleet.run();
    if (testing::Test::HasFailure()) return;
    if (rules.sharding == Sharding::kLease)
      fleet.expect_every_record_once();
    else
      fleet.expect_every_record_once_per_worker();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(WorkerCoreTwin, AsynchronousLeasesAreAppliedExactlyOnce) {
  run_seeds({Mode::kAsync, 0, Sharding::kLease, false});
}
TEST(WorkerCoreTwin, AsynchronousLeasesAreAppliedExactlyOnceOverCutChannels) {
  run_seeds({Mode::kAsync, 0, Sharding::kLease, true});
}
TEST(WorkerCoreTwin, AsynchronousPipelineIsExactOverCutChannels) {
  run_seeds({Mode::kAsync, 1, Sharding::kLease, true});
}
TEST(WorkerCoreTwin, AsynchronousStepsThatBeginEarlyAreExactOverCutChannels) {
  run_seeds({Mode::kAsync, 0, Sharding::kLease, true, true});
}
TEST(WorkerCoreTwin, OwnOrderGoesThroughTheWholeSetForEachWorker) {
  run_seeds({Mode::kAsync, 0, Sharding::kNone, true});
}
TEST(WorkerCoreTwin, SynchronousStepsSeeOneVersion) {
  run_seeds({Mode::kSync, 0, Sharding::kLease, false});
}
TEST(WorkerCoreTwin, SynchronousStepsSeeOneVersionOverCutChannels) {
  run_seeds({Mode::kSync, 0, Sharding::kLease, true});
}
TEST(WorkerCoreTwin, SynchronousPipelineSeesTheVersionOfOneStepBefore) {
  run_seeds({Mode::kSync, 1, Sharding::kLease, true});
}

}  // namespace
}  // namespace disttrain::workerd
