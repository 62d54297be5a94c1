// The shards of one job, on a simulated network. Every link is a queue. The test, or a seeded generator, chooses the
// queue that delivers the next message.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/layout.h"
#include "common/random.h"
#include "shards/store/shard.h"

namespace disttrain::shards::test {

// variables of 7, 12 and 3 elements in buckets of at most 4, dealt to the shards in turn.
Layout small_layout(std::uint32_t shards);

Member worker(std::uint32_t index);
Roster roster_of(std::uint32_t workers, std::uint64_t version = 1);

// A worker's answer from one shard.
struct Heard {
  std::variant<Parameters, Acknowledge> message;
  std::vector<float> values;  // of the bucket
};

class ShardNode;

class ShardCluster {
 public:
  ShardCluster(const Layout& layout, const TrainSection& train, std::uint32_t workers, std::uint64_t records = 0);
  ~ShardCluster();

  // Opens a channel from the worker to each shard. Like a real channel, it keeps the order of its frames.
  void open(std::uint32_t worker_index);
  // In ssp, a worker pulls before its first step. on_heard() reports the answer, as it does for pushes.
  void begin(std::uint32_t worker_index, Step clock);
  void close(std::uint32_t worker_index);
  // Queues a frame on the worker's channel to the shard that owns the bucket. With sequence 0, the frame gets the next
  // sequence number.
  void send(std::uint32_t worker_index, const Push& push, const std::vector<float>& gradient,
            std::uint64_t sequence = 0);
  void pull(std::uint32_t worker_index, std::uint32_t shard, std::uint64_t id);

  // Drops all messages that are under way from one shard to another.
  void drop(std::uint32_t from, std::uint32_t to) {
    links_["s" + std::to_string(from) + ">s" + std::to_string(to)].clear();
  }

  // Delivers the next message of a link that isn't empty; `random` chooses the link. Returns false if all links are
  // empty.
  bool deliver_one(Random& random);
  void deliver_all(Random& random) {
    while (deliver_one(random)) {
    }
  }

  ShardNode& node(std::uint32_t shard) { return *nodes_[shard]; }
  std::uint32_t shards() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint64_t last_sequence(std::uint32_t worker_index, std::uint32_t shard) const;
  const Layout& layout() const { return layout_; }

  // The parameters of the whole model, gathered from the shards.
  std::vector<float> model() const;

  // Called for each push frame right before the shard handles it.
  std::function<void(std::uint32_t shard, std::uint32_t worker_index, const Push&, const std::vector<float>&)> on_push;
  // Called for each answer when the worker receives it.
  std::function<void(std::uint32_t shard, std::uint32_t worker_index, const Heard&)> on_heard;

  Instant now{};
  std::string failed;  // reason of the first FailJob
  std::vector<std::string> closed;
  std::vector<Commit> commits;
  std::vector<RosterTaken> rosters;
  std::vector<Fenced> fences;
  std::vector<Refuse> refused;
  int reports_now = 0;

 private:
  friend class ShardNode;
  struct Channel {
    ChannelId id;
    std::uint64_t sent = 0;
    bool open = false;
  };

  const Layout layout_;
  std::vector<std::unique_ptr<ShardNode>> nodes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Channel> channels_;  // (worker, shard)
  // The key is the link's name, so that the random choice of a link is the same in each run.
  std::map<std::string, std::deque<std::function<void()>>> links_;
  std::uint64_t next_channel_ = 1;
};

class ShardNode : public Outside {
 public:
  ShardNode(ShardCluster& cluster, const Layout& layout, const ShardOptions& options, std::uint64_t seed)
      : cluster_(cluster), id_(options.shard), shard(layout, options, memory_of(options, seed), {}) {}

  void handle(const Event& event) { shard.handle(cluster_.now, event, *this); }
  void push(ChannelId channel, Sequence sequence, const Push& push, const std::vector<float>& gradient);

  void act(const Action& action) override;
  void before_update(BucketId) override {}
  void goes_on() override {}
  void update_begins() override {}
  void update_ended() override {}

 private:
  static StoreOptions memory_of(const ShardOptions& options, std::uint64_t seed) {
    StoreOptions memory;
    memory.train = options.train;
    memory.seed = seed;
    memory.places = std::max(options.places, static_cast<std::uint32_t>(options.roster.members.size()));
    memory.has_copy = true;
    return memory;
  }

  ShardCluster& cluster_;
  const ShardId id_;

 public:
  Shard shard;
};

}  // namespace disttrain::shards::test
