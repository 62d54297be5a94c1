// What the tasks of a simulated cluster share: the time, the network, the settings of the run, and each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/model.h"
#include "scale/event_queue.h"
#include "scale/frames.h"
#include "scale/meter.h"
#include "scale/network.h"

namespace disttrain::scale {

class ChiefHost;
class PsHost;
class WorkerHost;

// Where the time of a worker's step goes, summed over the measured steps of all workers. Without train.pipeline the
// parts follow each other and add up to the steps' time.
struct StepParts {
  Duration computing{};  // until the gradients are computed
  Duration sending{};    // until the worker's last gradient has arrived at its shard
  Duration others{};     // until the first shard answers: the time of waiting for other workers' gradients
  Duration receiving{};  // until the worker has all parameters
};

struct Surroundings {
  EventQueue& queue;
  Network& network;
  const ClusterConfig& cluster;
  const ModelSpec& model;
  std::uint64_t train_records = 0;
  Duration compute{};  // of one step of a worker

  FrameSizes sizes{};
  Meter chief_core;
  Meter chief_codec;  // the codec of the chief's connections; the other tasks' codec isn't measured
  Meter ps_cores;
  Meter worker_cores;

  ChiefHost* chief = nullptr;
  std::vector<std::unique_ptr<PsHost>> ps{};
  std::vector<std::unique_ptr<WorkerHost>> workers{};

  // Set by the hosts.
  std::uint64_t global_step = 0;
  std::optional<std::string> failure{};  // why the job can't go on
  bool is_measuring = false;             // true: the steps that workers begin now count
  std::vector<Duration> step_times{};    // of the measured steps
  StepParts parts{};

  void fail(const std::string& why) {
    if (!failure) failure = why;
  }
};

}  // namespace disttrain::scale
