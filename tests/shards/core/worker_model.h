// Workers that train on a ShardCluster with random gradients. They follow the same rules as real workers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "common/random.h"
#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {

inline std::vector<float> random_gradient(std::uint64_t seed, std::uint32_t worker_index, std::uint64_t clock,
                                          std::size_t elements) {
  Random random(seed, stream_of("gradient", clock * 64 + worker_index));
  std::vector<float> gradient(elements);
  for (float& g : gradient) g = static_cast<float>(random.uniform() * 2.0 - 1.0);
  return gradient;
}

// One worker. It pushes, waits until every shard has sent the last answer to this push, and pushes again.
struct WorkerModel {
  std::uint32_t index = 0;
  std::uint64_t clock = 0;              // the clock of the last push that was sent
  std::vector<std::uint64_t> versions;  // for each shard, the version in its newest answer
  std::vector<std::uint64_t> begun;     // for each shard, the clock in its answer to the last pull
  std::set<std::uint32_t> waits_for;    // shards
  std::vector<float> parameters;
  std::vector<PushOutcome> outcomes;  // by clock - 1, as shard 0 said
  bool finished = false;

  bool ready() const { return waits_for.empty(); }
};

struct PushOptions {
  Want want = Want::kAll;
  std::uint32_t examples = 10;
  bool nonfinite = false;
  bool final = false;
  LeaseId lease{};
  std::uint32_t epoch = 0;
  Positions visited{};
};

inline void start(ShardCluster& cluster, WorkerModel& model) {
  model.versions.assign(cluster.shards(), 0);
  model.begun.assign(cluster.shards(), 0);
  model.parameters = cluster.model();
  cluster.open(model.index);
}

// Sends all buckets of the worker's push for the step `clock`.
inline void push_all(ShardCluster& cluster, WorkerModel& model, std::uint64_t clock, const std::vector<float>& gradient,
                     const PushOptions& options) {
  const Layout& layout = cluster.layout();
  model.clock = clock;
  std::vector<std::size_t> left(cluster.shards(), 0);
  for (const Bucket& bucket : layout.buckets) ++left[bucket.shard.value];
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b) {
    const Bucket& bucket = layout.buckets[b];
    Push push;
    push.bucket = BucketId(b);
    push.clock = Step(clock);
    push.pull_version = Step(model.versions[bucket.shard.value]);
    push.last = --left[bucket.shard.value] == 0;
    push.want = options.want == Want::kBucket || push.last ? options.want : Want::kNothing;
    push.final = push.last && options.final;
    if (push.last) {
      push.examples = options.examples;
      push.loss = 1.0F;
      push.lease = options.lease;
      push.epoch = options.epoch;
      push.visited = options.visited;
      model.waits_for.insert(bucket.shard.value);
    }
    std::vector<float> part(gradient.begin() + static_cast<std::ptrdiff_t>(bucket.flat_begin),
                            gradient.begin() + static_cast<std::ptrdiff_t>(bucket.flat_begin + bucket.words));
    if (options.nonfinite && b == 0) part[0] = std::numeric_limits<float>::quiet_NaN();
    cluster.send(model.index, push, part);
  }
}

inline void hear(ShardCluster& cluster, WorkerModel& model, std::uint32_t shard, const Heard& heard) {
  bool last = false;
  PushOutcome outcome = PushOutcome::kNone;
  if (const auto* parameters = std::get_if<Parameters>(&heard.message)) {
    const Bucket& bucket = cluster.layout().buckets[parameters->bucket.value];
    std::copy(heard.values.begin(), heard.values.end(),
              model.parameters.begin() + static_cast<std::ptrdiff_t>(bucket.flat_begin));
    model.versions[shard] = parameters->version.value;
    if (parameters->pull_id != 0) {
      model.begun[shard] = parameters->clock.value;
      return;
    }
    last = parameters->last;
    outcome = parameters->outcome;
    model.finished = model.finished || (last && parameters->finished);
  } else {
    outcome = std::get<Acknowledge>(heard.message).outcome;
    last = outcome != PushOutcome::kNone;
    model.finished = model.finished || (last && std::get<Acknowledge>(heard.message).finished);
  }
  if (!last) return;
  model.waits_for.erase(shard);
  if (shard == 0) model.outcomes.push_back(outcome);
}

}  // namespace disttrain::shards::test
