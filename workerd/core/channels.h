// Channels: a worker's channels to all shards of its job, by shard.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "workerd/core/channel.h"

namespace disttrain::workerd {

class Channels {
 public:
  explicit Channels(const JobFacts& facts);

  // Throws std::out_of_range if the job has no such shard.
  Channel& at(ShardId shard) { return channels_.at(shard.value); }
  auto begin() { return channels_.begin(); }
  auto end() { return channels_.end(); }
  auto begin() const { return channels_.begin(); }
  auto end() const { return channels_.end(); }

  // See Channel. Each is true if it is true of all channels.
  bool are_connected() const { return all(&Channel::connected); }
  bool are_pushes_sent() const { return all(&Channel::push_sent); }
  bool are_pushes_complete() const { return all(&Channel::push_complete); }
  bool are_pulls_complete() const { return all(&Channel::pull_complete); }
  bool answer_once() const { return all(&Channel::answers_once); }
  // Whether a frame was added to a channel's newest push.
  bool has_frames() const;

  void begin_push();
  void mark(std::uint64_t attempt, Actions& out);
  // Pulls from all shards, or only from those whose newest answer is older than another shard's.
  void begin_pull(const Pull& pull, bool only_lagging, Actions& out);

  // Whether the newest answers of all shards have the same version.
  bool have_one_version() const;

  // The shards that owe an answer: "shard 1 (ps/0 at host:7110) (not connected)". "" if none does.
  std::string debtors(const std::vector<std::string>& shard_names) const;

 private:
  bool all(bool (Channel::*what)() const) const {
    return std::all_of(channels_.begin(), channels_.end(), [what](const Channel& c) { return (c.*what)(); });
  }

  std::vector<Channel> channels_;
};

}  // namespace disttrain::workerd
