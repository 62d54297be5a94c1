#include "workerd/core/channels.h"

#include <cstddef>

namespace disttrain::workerd {
namespace {

// The next step reads the first layer first. Its variables are the last ones of the flat array, and the engine reads a
// variable from its first word on. So the buckets are ranked by the variable in which they end.
std::vector<RankedBucket> ranked_buckets(const Layout& layout, ShardId shard) {
  std::vector<std::uint64_t> begins = layout.variable_begins;
  std::sort(begins.begin(), begins.end());
  const auto variable_of = [&](BucketId bucket) {
    const Bucket& words = layout.buckets[bucket.value];
    return std::lower_bound(begins.begin(), begins.end(), words.flat_begin + words.words) - begins.begin();
  };
  std::vector<BucketId> order;
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b) order.push_back(BucketId(b));
  std::stable_sort(order.begin(), order.end(), [&](BucketId a, BucketId b) { return variable_of(a) > variable_of(b); });
  std::vector<std::uint32_t> ranks(order.size());
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) ranks[order[rank].value] = rank;
  std::vector<RankedBucket> ranked;
  for (const BucketId bucket : buckets_of(layout, shard)) ranked.push_back({bucket, ranks[bucket.value]});
  return ranked;
}

}  // namespace

Channels::Channels(const JobFacts& facts) {
  channels_.reserve(facts.layout.shards);
  for (std::uint32_t shard = 0; shard < facts.layout.shards; ++shard)
    channels_.emplace_back(ShardId(shard), ranked_buckets(facts.layout, ShardId(shard)), facts.credits);
}

bool Channels::has_frames() const {
  return std::any_of(channels_.begin(), channels_.end(), [](const Channel& c) { return c.frames() > 0; });
}

void Channels::begin_push() {
  for (Channel& channel : channels_) channel.begin_push();
}

void Channels::mark(std::uint64_t attempt, Actions& out) {
  for (Channel& channel : channels_) channel.mark(attempt, out);
}

void Channels::begin_pull(const Pull& pull, bool only_lagging, Actions& out) {
  Step newest;
  for (const Channel& channel : channels_) newest = std::max(newest, channel.version());
  for (Channel& channel : channels_)
    if (!only_lagging || channel.version() < newest) channel.begin_pull(pull, out);
}

bool Channels::have_one_version() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [this](const Channel& c) { return c.version() == channels_.front().version(); });
}

std::string Channels::debtors(const std::vector<std::string>& shard_names) const {
  std::string names;
  for (const Channel& channel : channels_) {
    if (channel.push_complete() && channel.pull_complete()) continue;
    if (!names.empty()) names += ", ";
    const std::size_t shard = channel.shard().value;
    names += shard < shard_names.size() ? shard_names[shard] : "shard " + std::to_string(shard);
    if (!channel.connected()) names += " (not connected)";
  }
  return names;
}

}  // namespace disttrain::workerd
