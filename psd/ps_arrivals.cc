// How a ps answers hellos. They come from workers that open channels, from shards of other ps tasks, and from peers
// that dialled the wrong address. See ps_daemon.h.
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

std::optional<Refused> PsDaemon::check(JobId job, Generation generation, ShardId shard, std::uint64_t token) const {
  if (job_) return job_->check(job, generation, shard, token);
  return Refused{ErrorCode::kTemporary, shards::HeldJob::lacks(job, shard)};
}

void PsDaemon::admit(std::unique_ptr<transport::Arrival> arrival, const ChannelHello& hello) {
  if (const auto no = check(hello.job, hello.generation, hello.shard, hello.token))
    return refuse(*arrival, no->code, no->reason);
  job_->adopt_channel(std::move(arrival), hello.shard, hello.worker);
}

void PsDaemon::admit(std::unique_ptr<transport::Arrival> arrival, const ShardPeerHello& hello) {
  if (const auto no = check(hello.job, hello.generation, ShardId(0), hello.token))
    return refuse(*arrival, no->code, no->reason);
  const auto& owners = job_->facts().owners;
  if (hello.from.value == 0 || hello.from.value >= owners.size() || owners[hello.from.value].ps != hello.ps)
    return refuse(*arrival, ErrorCode::kConfig,
                  "shard " + std::to_string(hello.from.value) + " isn't " + to_string(hello.ps.task) + "'s");
  job_->adopt_peer(std::move(arrival), hello.from);
}

void PsDaemon::refuse(transport::Arrival& arrival, ErrorCode code, const std::string& reason) {
  outcome_ = metrics::RpcCode::kRefused;
  log_.debug("refused " + arrival.peer() + ": " + reason);
  transport::refuse(loop_, arrival, Refused{code, reason, false, membership_.self()});
}

}  // namespace disttrain::psd
