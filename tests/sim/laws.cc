#include "tests/sim/laws.h"

#include <algorithm>
#include <vector>

#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/shard_file.h"

namespace disttrain::sim {

void Laws::generation_begins(JobId job, Generation generation, const std::string& restore_path) {
  Generation& last = generations_[job];
  if (generation <= last)
    violated("I1: job " + std::to_string(job.value) + " begins generation " + std::to_string(generation.value) +
             " after generation " + std::to_string(last.value));
  last = generation;
  is_any_worker_lost_ = unequal_.count(restore_path) != 0;
}

void Laws::committed(const JobConfig& job, const Layout& layout, const std::string& path) {
  const auto open = checkpoint::open_checkpoint(*jobs_.files, path);
  if (!open) return violated("I14: a checkpoint was committed that can't be opened: " + open.error().message);
  if (Status whole = checkpoint::verify_files(*jobs_.files, path, open->manifest); !whole)
    return violated("I14: a committed checkpoint doesn't verify: " + whole.error().message);
  if (is_any_worker_lost_) {
    unequal_.insert(path);
    return;
  }
  if (job.train.mode == Mode::kSync || job.data.sharding != Sharding::kLease) return;
  float epoch = 0.0F;
  for (std::uint64_t record = 0; record < jobs_.records; ++record) epoch += value_of(record);
  float sum = epoch * static_cast<float>(open->manifest.pacer.complete_epochs);
  for (const EpochLedger& entry : open->manifest.pacer.ledger)
    for (const Interval& interval : entry.visited)
      for (std::uint64_t record = interval.begin; record < interval.end; ++record) sum += value_of(record);
  for (std::uint32_t shard = 0; shard < layout.shards; ++shard) {
    std::vector<float> values(shard_elements(layout, ShardId(shard)));
    if (Status read = checkpoint::read_shard(*jobs_.files, path, open->manifest, layout, ShardId(shard), values, {});
        !read)
      return violated("I14: " + read.error().message);
    for (const BucketId id : buckets_of(layout, ShardId(shard))) {
      const Bucket& bucket = layout.buckets[id.value];
      for (std::uint64_t e = 0; e < bucket.elements; ++e) {
        const float expected = -sum * coefficient(bucket.flat_begin + e);
        if (values[bucket.shard_begin + e] != expected)
          return violated("I10, I13, I17: " + path + ", element " + std::to_string(bucket.flat_begin + e) + " is " +
                          std::to_string(values[bucket.shard_begin + e]) + "; the records of its ledger add up to " +
                          std::to_string(expected));
      }
    }
  }
}

void Laws::final_parameters(const JobConfig& job, const Layout& layout, const std::vector<float>& flat) {
  const bool adds_up = job.train.mode != Mode::kSync && job.data.sharding == Sharding::kLease && job.train.steps == 0;
  if (!adds_up || is_any_worker_lost_) return;
  float sum = 0.0F;
  for (std::uint64_t record = 0; record < jobs_.records; ++record) sum += value_of(record);
  for (std::uint64_t e = 0; e < element_count(layout.model); ++e) {
    const float expected = -sum * static_cast<float>(job.train.epochs) * coefficient(e);
    if (flat[e] != expected)
      return violated("I5, I11: element " + std::to_string(e) + " of the final parameters is " +
                      std::to_string(flat[e]) + "; all records add up to " + std::to_string(expected));
  }
}

void Laws::computes(const std::string& job_and_generation, const JobConfig& job, std::uint32_t worker,
                    std::uint64_t clock) {
  // With leases a worker that waits for one is out of the others' sight, and comes back with a clock of its own.
  if (job.train.mode != Mode::kSsp || job.data.sharding == Sharding::kLease || is_any_worker_lost_) return;
  auto& clocks = clocks_[job_and_generation];
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  // Who comes later than the others begins at the slowest of them.
  if (clocks.count(worker) == 0 && !clocks.empty())
    clocks[worker] = std::min_element(clocks.begin(), clocks.end(), less)->second;
  clocks[worker] = std::max(clocks[worker], clock);
  const std::uint64_t slowest = std::min_element(clocks.begin(), clocks.end(), less)->second;
  // It computes step `clock` once its push of clock - 1 was answered; the slowest may be about to push its own.
  const std::uint64_t bound = job.train.staleness + 1 + job.train.pipeline;
  if (clock > slowest + bound)
    violated("I9: worker " + std::to_string(worker) + " computes step " + std::to_string(clock) +
             " while the slowest is at " + std::to_string(slowest) + ", staleness " +
             std::to_string(job.train.staleness));
}

void Laws::finished(const JobConfig& job, std::uint64_t examples) {
  if (job.data.sharding != Sharding::kLease || job.train.steps != 0) return;
  const std::uint64_t expected = job.train.epochs * jobs_.records;
  if (examples != expected)
    violated("I11: the finished job has visited " + std::to_string(examples) + " examples; " +
             std::to_string(expected) + " are in its epochs");
}

}  // namespace disttrain::sim
