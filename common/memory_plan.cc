// When the chief places the shards of a generation, it decides for how many workers the ps tasks reserve memory: the
// workers in the cluster file and, if the file allows unlisted workers, 16 more, or fewer if a ps has too little
// memory. One more worker that wants to join is refused, and the reason says how much memory the ps would need. A check
// for the connected workers alone let the ps tasks allocate more for later ones, until the kernel killed them. A check
// for every worker that may ever come would refuse jobs for workers that never come.
#include "common/memory_plan.h"

#include <algorithm>

namespace disttrain {

ShardMemory bytes_per_shard(const Layout& layout, ShardId shard, const JobConfig& job, std::uint32_t slots,
                            std::uint32_t workers, std::uint32_t credits) {
  const TrainSection& train = job.train;
  std::uint64_t words = 0;
  std::uint64_t largest = 0;
  for (const Bucket& bucket : layout.buckets) {
    if (bucket.shard != shard) continue;
    words += bucket.words;
    largest = std::max(largest, bucket.words);
  }
  const std::uint64_t parameters = words * sizeof(float);
  const std::uint64_t frame = largest * sizeof(float);
  const bool sync = train.mode == Mode::kSync;
  const std::uint64_t staging = parameters * (1 + train.pipeline) + frame;
  const std::uint64_t sums = train.clip.kind == ClipKind::kGlobalNorm ? parameters : 0;
  return ShardMemory{
      .parameters = parameters,
      .slots = parameters * slots,
      .receive = sync ? workers * staging + sums : workers * frame * credits,
      .send = workers * (sync && train.aggregate != 0 ? parameters : frame),
      .copy = job.checkpoint.directory.empty() ? 0 : parameters * (1 + slots),
      .fixed = std::uint64_t{64} << 20,
  };
}

std::uint32_t batches_ahead(const DataSection& data, std::uint64_t batch_bytes) {
  constexpr std::uint64_t kSmall = std::uint64_t{4} << 20;
  constexpr std::uint64_t kMost = 8;
  const std::uint64_t fitting = std::min(kMost, kSmall / std::max<std::uint64_t>(1, batch_bytes));
  return std::max(data.prefetch, static_cast<std::uint32_t>(fitting));
}

std::uint64_t evaluation_batch_records(const JobConfig& job) {
  constexpr std::uint64_t kSmallModels = 1000;
  if (job.evaluate.batch_size != 0) return job.evaluate.batch_size;
  const std::string& builtin = job.model.builtin;
  const bool may_be_large = builtin.empty() || builtin == "resnet" || builtin == "transformer";
  return may_be_large ? job.train.batch_size : kSmallModels;
}

}  // namespace disttrain
