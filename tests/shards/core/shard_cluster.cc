#include "tests/shards/core/shard_cluster.h"

#include <algorithm>

#include "common/check.h"

namespace disttrain::shards::test {

Layout small_layout(std::uint32_t shards) {
  Layout layout;
  for (std::uint64_t elements : {7, 12, 3}) {
    VariableSpec variable;
    variable.name = "v" + std::to_string(elements);
    variable.shape = {elements};
    variable.initializer = Initializer{InitializerKind::kNormal, 1.0};
    layout.model.variables.push_back(variable);
  }
  layout.shards = shards;
  layout.variable_begins = {15, 3, 0};
  std::vector<std::uint64_t> shard_end(shards, 0);
  for (std::uint64_t begin = 0; begin < 22; begin += 4) {
    const std::uint64_t elements = std::min<std::uint64_t>(4, 22 - begin);
    const auto shard = static_cast<std::uint32_t>(layout.buckets.size() % shards);
    layout.buckets.push_back(Bucket{ShardId(shard), begin, shard_end[shard], elements});
    shard_end[shard] += elements;
  }
  DISTTRAIN_CHECK(validate(layout).has_value());
  return layout;
}

Member worker(std::uint32_t index) {
  return Member{TaskId{Role::kWorker, index}, Incarnation(1000 + index)};
}

Roster roster_of(std::uint32_t workers, std::uint64_t version) {
  Roster roster;
  roster.version = RosterVersion(version);
  for (std::uint32_t i = 0; i < workers; ++i) roster.members.push_back(worker(i));
  return roster;
}

ShardCluster::ShardCluster(const Layout& layout, const TrainSection& train, std::uint32_t workers,
                           std::uint64_t records)
    : layout_(layout) {
  for (std::uint32_t shard = 0; shard < layout.shards; ++shard) {
    ShardOptions options;
    options.shard = ShardId(shard);
    options.train = train;
    options.roster = roster_of(workers);
    options.train_records = records;
    options.awaits_values = layout.model.brings_values;
    nodes_.push_back(std::make_unique<ShardNode>(*this, layout_, options, 7));
  }
}

ShardCluster::~ShardCluster() = default;

void ShardCluster::open(std::uint32_t worker_index) {
  for (std::uint32_t shard = 0; shard < shards(); ++shard) {
    Channel& channel = channels_[{worker_index, shard}];
    channel = Channel{ChannelId(next_channel_++), channel.sent, true};
    node(shard).handle(ChannelOpened{channel.id, worker(worker_index)});
  }
}

void ShardCluster::begin(std::uint32_t worker_index, Step clock) {
  for (std::uint32_t shard = 0; shard < shards(); ++shard)
    node(shard).handle(PullArrived{channels_[{worker_index, shard}].id, Pull{1, true, clock}});
}

void ShardCluster::close(std::uint32_t worker_index) {
  for (std::uint32_t shard = 0; shard < shards(); ++shard) {
    Channel& channel = channels_[{worker_index, shard}];
    channel.open = false;
    node(shard).handle(ChannelClosed{channel.id});
  }
}

void ShardCluster::send(std::uint32_t worker_index, const Push& push, const std::vector<float>& gradient,
                        std::uint64_t sequence) {
  const std::uint32_t shard = layout_.buckets[push.bucket.value].shard.value;
  Channel& channel = channels_[{worker_index, shard}];
  const std::uint64_t number = sequence != 0 ? sequence : ++channel.sent;
  links_["w" + std::to_string(worker_index) + ">s" + std::to_string(shard)].push_back(
      [this, shard, worker_index, id = channel.id, number, push, gradient]() {
        if (on_push) on_push(shard, worker_index, push, gradient);
        node(shard).push(id, Sequence(number), push, gradient);
      });
}

void ShardCluster::pull(std::uint32_t worker_index, std::uint32_t shard, std::uint64_t id) {
  links_["w" + std::to_string(worker_index) + ">s" + std::to_string(shard)].push_back(
      [this, shard, channel = channels_[{worker_index, shard}].id, id]() {
        node(shard).handle(PullArrived{channel, Pull{id}});
      });
}

bool ShardCluster::deliver_one(Random& random) {
  std::vector<std::deque<std::function<void()>>*> ready;
  for (auto& [name, link] : links_)
    if (!link.empty()) ready.push_back(&link);
  if (ready.empty()) return false;
  auto& link = *ready[random.below(ready.size())];
  const auto message = std::move(link.front());
  link.pop_front();
  now += std::chrono::microseconds(1);
  message();
  return true;
}

std::uint64_t ShardCluster::last_sequence(std::uint32_t worker_index, std::uint32_t shard) const {
  return channels_.at({worker_index, shard}).sent;
}

std::vector<float> ShardCluster::model() const {
  std::vector<float> model;
  for (std::uint32_t b = 0; b < layout_.buckets.size(); ++b) {
    const auto values = nodes_[layout_.buckets[b].shard.value]->shard.parameters(BucketId(b));
    model.insert(model.end(), values.begin(), values.end());
  }
  return model;
}

void ShardNode::push(ChannelId channel, Sequence sequence, const Push& push, const std::vector<float>& gradient) {
  const std::uint64_t bytes = gradient.size() * sizeof(float);
  if (bytes > 0) {
    const auto landing = shard.landing(channel, sequence, push, bytes);
    if (!landing) {  // the transport closes the channel when the real shell refuses a frame
      cluster_.closed.push_back(landing.error().message);
      handle(ChannelClosed{channel});
      return;
    }
    std::copy(gradient.begin(), gradient.end(), landing->begin());
  }
  PushArrived event{channel, sequence, push, bytes};
  shard.handle_push(cluster_.now, event, gradient, *this);
}

void ShardNode::act(const Action& action) {
  const auto to_worker = [this](ChannelId channel, Heard heard) {
    for (const auto& [ends, open_channel] : cluster_.channels_) {
      if (open_channel.id != channel) continue;
      cluster_.links_["s" + std::to_string(id_.value) + ">w" + std::to_string(ends.first)].push_back(
          [this, w = ends.first, heard = std::move(heard)]() {
            if (cluster_.on_heard) cluster_.on_heard(id_.value, w, heard);
          });
      return;
    }
  };
  const auto to_shard = [this](std::uint32_t to, const Event& event) {
    cluster_.links_["s" + std::to_string(id_.value) + ">s" + std::to_string(to)].push_back(
        [this, to, event]() { cluster_.node(to).handle(event); });
  };
  if (const auto* reply = std::get_if<Reply>(&action)) {
    const auto values = shard.parameters(reply->message.bucket);
    to_worker(reply->channel, Heard{reply->message, {values.begin(), values.end()}});
  } else if (const auto* acknowledge = std::get_if<SendAcknowledge>(&action)) {
    to_worker(acknowledge->channel, Heard{acknowledge->message, {}});
  } else if (const auto* staged = std::get_if<SendStaged>(&action)) {
    to_shard(0, StagedArrived{staged->message});
  } else if (const auto* commit = std::get_if<SendCommit>(&action)) {
    cluster_.commits.push_back(commit->message);
    for (std::uint32_t to = 1; to < cluster_.shards(); ++to) to_shard(to, CommitArrived{commit->message});
  } else if (const auto* news = std::get_if<SendNews>(&action)) {
    for (std::uint32_t to = 1; to < cluster_.shards(); ++to) to_shard(to, NewsArrived{news->message});
  } else if (const auto* close = std::get_if<CloseChannel>(&action)) {
    cluster_.closed.push_back(close->reason);
  } else if (const auto* refuse = std::get_if<Refuse>(&action)) {
    cluster_.refused.push_back(*refuse);
  } else if (const auto* taken = std::get_if<RosterTaken>(&action)) {
    cluster_.rosters.push_back(*taken);
  } else if (const auto* fenced = std::get_if<Fenced>(&action)) {
    cluster_.fences.push_back(*fenced);
  } else if (const auto* failed = std::get_if<FailJob>(&action)) {
    if (cluster_.failed.empty()) cluster_.failed = failed->reason;
  } else if (std::holds_alternative<ReportNow>(action)) {
    ++cluster_.reports_now;
  }
}

}  // namespace disttrain::shards::test
