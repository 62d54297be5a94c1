#include "tools/disttrain/why/two_samples.h"

#include <optional>

namespace disttrain::cli {

namespace {

// Returns the task if it runs in the job, else null.
Json running_task(const Json& status, const std::string& name) {
  for (const Json& task : list_of(status, "tasks"))
    if (text_of(task, "task") == name && text_of(task, "state") == "running") return task;
  return nullptr;
}

// Returns NaN if one of the two isn't a number.
double growth(const Json& before, const Json& after, const char* key) {
  return number_of(after, key) - number_of(before, key);
}

std::array<double, kDataStages.size()> stages_of(const Json& before, const Json& after) {
  std::array<double, kDataStages.size()> stages{};
  const auto from = before.find("data_times");
  const auto to = after.find("data_times");
  if (from == before.end() || to == after.end() || !from->is_object() || !to->is_object()) return stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double grown = growth(*from, *to, kDataStages[i]);
    stages[i] = grown >= 0.0 ? grown : 0.0;
  }
  return stages;
}

std::optional<WorkerSample> worker_sample(const Json& before, const Json& after) {
  const Json from = before.value("phase_times", Json::object());
  const Json to = after.value("phase_times", Json::object());
  double grown[6];
  std::size_t i = 0;
  for (const char* phase : {"input", "compute", "evaluate", "pull", "push", "wait"}) {
    grown[i] = growth(from, to, phase);
    if (!(grown[i++] >= 0.0)) return std::nullopt;
  }
  WorkerSample sample{text_of(after, "task"),
                      text_of(after, "host"),
                      growth(before, after, "step"),
                      grown[0],
                      grown[1],
                      grown[2],
                      grown[3] + grown[4] + grown[5],
                      stages_of(before, after)};
  if (!(sample.steps >= 0.0) || !(sample.seconds() > 0.0)) return std::nullopt;
  return sample;
}

void add_shards(const Json& before, const Json& after, std::vector<ShardSample>& samples) {
  for (const Json& now : list_of(after, "shards"))
    for (const Json& then : list_of(before, "shards")) {
      if (number_of(now, "shard") != number_of(then, "shard")) continue;
      const double seconds = growth(then, now, "seconds");
      const double busy = growth(then, now, "busy_seconds");
      const double applying = growth(then, now, "apply_seconds");
      if (!(seconds > 0.0) || !(busy >= 0.0) || !(applying >= 0.0)) continue;
      samples.push_back({text_of(after, "task"), text_of(after, "host"), static_cast<int>(number_of(now, "shard")),
                         busy / seconds, applying / seconds});
    }
}

}  // namespace

TwoSamples compare(const Json& before, const Json& after) {
  TwoSamples samples;
  for (const char* key : {"id", "generation"})
    if (number_of(before, key) != number_of(after, key)) return samples;
  for (const Json& task : list_of(after, "tasks")) {
    if (text_of(task, "state") != "running") continue;
    const Json earlier = running_task(before, text_of(task, "task"));
    if (earlier.is_null() || number_of(earlier, "pid") != number_of(task, "pid")) continue;
    if (const auto sample = worker_sample(earlier, task)) samples.workers.push_back(*sample);
    add_shards(earlier, task, samples.shards);
  }
  return samples;
}

}  // namespace disttrain::cli
