// How a ps answers hellos. They come from workers that open channels, from shards of other ps tasks, and from peers
// that dialled the wrong address. See ps_daemon.h.
#include <algorithm>
#include <utility>

#include "common/daemon/clock.h"
#include "psd/ps_daemon.h"
#include "transport/control_link.h"

namespace disttrain::psd {

void PsDaemon::on_arrival(std::unique_ptr<transport::Arrival> arrival) {
  const Instant begin = daemon::now();
  outcome_ = metrics::RpcCode::kOk;
  const Result<Hello> hello = transport::hello_of(*arrival);
  if (hello) {
    answer_hello(std::move(arrival), *hello);
  } else {
    refuse(*arrival, hello.error().code, hello.error().message);
    outcome_ = metrics::RpcCode::kError;
  }
  metrics_.requests().of("Hello").note(outcome_, daemon::now() - begin);
}

void PsDaemon::answer_hello(std::unique_ptr<transport::Arrival> arrival, const Hello& hello) {
  if (hello.oldest_version > kProtocolVersion || hello.newest_version < kProtocolVersion)
    return refuse(*arrival, ErrorCode::kConfig,
                  "this ps speaks protocol version " + std::to_string(kProtocolVersion) + ", you speak " +
                      std::to_string(hello.oldest_version) + " to " + std::to_string(hello.newest_version));
  if (hello.cluster != startup_.cluster.name)
    return refuse(*arrival, ErrorCode::kConfig,
                  "this ps is of cluster \"" + startup_.cluster.name + "\", you are of \"" + hello.cluster + "\"");
  if (std::holds_alternative<ChannelHello>(hello.who) || std::holds_alternative<ShardPeerHello>(hello.who))
    compare_wires(*arrival);
  if (const auto* channel = std::get_if<ChannelHello>(&hello.who)) return admit(std::move(arrival), *channel);
  if (const auto* peer = std::get_if<ShardPeerHello>(&hello.who)) return admit(std::move(arrival), *peer);
  refuse(*arrival, ErrorCode::kConfig,
         "this is " + to_string(startup_.task) + "; the chief is at " + startup_.cluster.chief.address);
}

// A peer whose host has another transport.kind may come over another wire. It is welcome nevertheless: to refuse it
// would stop the job.
void PsDaemon::compare_wires(const transport::Arrival& arrival) {
  const std::string& kind = startup_.cluster.transport.kind;
  if (kind == "auto" || kind == arrival.wire() || std::exchange(has_warned_of_wires_, true)) return;
  log_.warn(arrival.peer() + " came over " + arrival.wire() + ", although this ps has transport.kind = \"" + kind +
            "\"; give all hosts the same transport.kind in cluster.toml");
}

// While the shard's thread makes a shard, which may take hours, it leaves an arrival without an answer, so that this ps
// looks unreachable. Most shards are made quickly, though, and then the arrival needn't come again.
bool PsDaemon::answers(ShardId shard) const {
  const auto found = job_->threads.find(shard);
  if (found == job_->threads.end()) return false;
  if (daemon::now() - job_->ordered < job_->facts->timeouts.silent / 2) return true;
  return std::all_of(job_->threads.begin(), job_->threads.end(), [&](const auto& other) {
    return other.second != found->second || job_->made.contains(other.first);
  });
}

std::optional<Refused> PsDaemon::check(JobId job, Generation generation, ShardId shard, std::uint64_t token) const {
  const std::string what = "shard " + std::to_string(shard.value) + " of job " + std::to_string(job.value);
  if (!is_open(job, generation) || !answers(shard))
    return Refused{ErrorCode::kTemporary, what + " isn't on this ps, or isn't made yet"};
  if (token != job_->facts->token) return Refused{ErrorCode::kNoPermission, what + ": the token is wrong"};
  return std::nullopt;
}

void PsDaemon::admit(std::unique_ptr<transport::Arrival> arrival, const ChannelHello& hello) {
  if (const auto no = check(hello.job, hello.generation, hello.shard, hello.token))
    return refuse(*arrival, no->code, no->reason);
  on_shard(hello.shard, [worker = hello.worker, moved = std::move(arrival)](ShardService& shard) {
    shard.adopt_channel(*moved, worker);
  });
}

void PsDaemon::admit(std::unique_ptr<transport::Arrival> arrival, const ShardPeerHello& hello) {
  if (const auto no = check(hello.job, hello.generation, ShardId(0), hello.token))
    return refuse(*arrival, no->code, no->reason);
  const auto& owners = job_->facts->owners;
  if (hello.from.value == 0 || hello.from.value >= owners.size() || owners[hello.from.value].ps != hello.ps)
    return refuse(*arrival, ErrorCode::kConfig,
                  "shard " + std::to_string(hello.from.value) + " isn't " + to_string(hello.ps.task) + "'s");
  on_shard(ShardId(0),
           [from = hello.from, moved = std::move(arrival)](ShardService& shard) { shard.adopt_peer(*moved, from); });
}

void PsDaemon::refuse(transport::Arrival& arrival, ErrorCode code, const std::string& reason) {
  outcome_ = metrics::RpcCode::kRefused;
  log_.debug("refused " + arrival.peer() + ": " + reason);
  transport::refuse(loop_, arrival, Refused{code, reason, false, membership_.self()});
}

}  // namespace disttrain::psd
