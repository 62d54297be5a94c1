// Workers that train in async or ssp on a simulated cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "common/random.h"
#include "tests/shards/core/worker_model.h"

namespace disttrain::shards::test {

inline TrainSection async_train(std::uint64_t steps) {
  TrainSection train;
  train.mode = Mode::kAsync;
  train.batch_size = 10;
  train.steps = steps;
  train.optimizer.rule = Rule::kSgd;
  train.optimizer.learning_rate = 0.5;
  return train;
}

struct AsyncTraining {
  AsyncTraining(std::uint32_t shards, const TrainSection& train, std::uint32_t workers, std::uint64_t seed,
                std::uint64_t records = 0)
      : cluster(small_layout(shards), train, workers, records), random(seed) {
    for (std::uint32_t w = 0; w < workers; ++w) {
      models.push_back(WorkerModel{});
      models.back().index = w;
      start(cluster, models.back());
    }
    cluster.on_heard = [this](std::uint32_t shard, std::uint32_t w, const Heard& heard) {
      hear(cluster, models[w], shard, heard);
    };
    if (train.mode != Mode::kSsp) return;
    for (const WorkerModel& model : models) cluster.begin(model.index, Step());
    cluster.deliver_all(this->random);
  }

  PacerReport report() { return cluster.node(0).shard.core().report(); }

  ShardCluster cluster;
  Random random;
  std::vector<WorkerModel> models;
};

}  // namespace disttrain::shards::test
