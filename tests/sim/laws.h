// What must hold, checked while a simulation runs. The first violation stands.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/layout.h"
#include "tests/sim/jobs.h"

namespace disttrain::sim {

class Laws {
 public:
  explicit Laws(const Jobs& jobs) : jobs_(jobs) {}

  const std::string& violation() const { return violation_; }
  void violated(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }

  // A worker of the running generation is gone, or was taken for gone: its last push may be applied at some shards
  // only.
  void worker_lost() { is_any_worker_lost_ = true; }
  // A generation is about to begin with this checkpoint, or with initial values.
  void generation_begins(JobId job, Generation generation, const std::string& restore_path);
  // I14, I10, I13: a checkpoint that can be seen is whole, and its parameters are the sum of what its ledger says.
  void committed(const JobConfig& job, const Layout& layout, const std::string& path);

  // async, ssp: a worker's gradient is its records' sum, so whatever the order, all of them add up to one number.
  void final_parameters(const JobConfig& job, const Layout& layout, const std::vector<float>& flat);
  // ssp: the clocks of the slowest and the fastest worker that compute now.
  void computes(const std::string& job_and_generation, const JobConfig& job, std::uint32_t worker, std::uint64_t clock);
  void leaves(const std::string& job_and_generation, std::uint32_t worker) {
    clocks_[job_and_generation].erase(worker);
  }
  // A finished job has visited each record of each epoch once.
  void finished(const JobConfig& job, std::uint64_t examples);

 private:
  const Jobs& jobs_;
  std::string violation_;
  bool is_any_worker_lost_ = false;
  std::map<std::string, std::map<std::uint32_t, std::uint64_t>> clocks_;
  std::map<JobId, Generation> generations_;
  std::set<std::string> unequal_;  // checkpoints that were taken after a worker was lost
};

}  // namespace disttrain::sim
