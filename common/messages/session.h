// What is said first on a connection, and its answer. transport/wire/protocol.capnp tells each message's story; these
// are the same messages as plain values, which cores and shells handle. transport/wire/codec.h turns one into the
// other.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain {

inline constexpr std::uint16_t kProtocolVersion = 1;

// A ps or a worker opens its control connection to the chief.
struct TaskHello {
  Member member;
  std::string address;  // host:port where others reach it
  std::string host;     // name of its host, for logs and to tell local from remote
  std::uint32_t pid = 0;
  std::uint32_t shards = 0;        // ps: threads it offers
  std::uint64_t memory_bytes = 0;  // ps: what it may use
  std::uint32_t threads = 0;       // worker: compute threads
  std::string device;              // worker
  JournalId journal;               // of the chief it last obeyed, 0 = none
  Term term{};                     // of that one
  Incarnation chief{};             // its process
  JobId job;                       // what it holds, 0 = nothing
  Generation generation;
  std::string metrics{};  // host:port of its metrics, "" = none
  // ps: CreateShards::token of that generation, 0 = none. It is on no disk: a chief that was restarted hears it from
  // the ps tasks that hold the job.
  std::uint64_t token = 0;
};

// A command line opens a connection to the chief.
struct ClientHello {
  std::string user;
};

// A worker opens a channel to one shard.
struct ChannelHello {
  JobId job;
  Generation generation;
  ShardId shard;
  Member worker;
  std::uint64_t token = 0;  // from OpenJob: shows that the chief sent it
};

// A shard opens its connection to the pacer of its job.
struct ShardPeerHello {
  JobId job;
  Generation generation;
  ShardId from;
  Member ps;
  std::uint64_t token = 0;
};

struct Hello {
  std::uint16_t oldest_version = kProtocolVersion;
  std::uint16_t newest_version = kProtocolVersion;
  std::string cluster;             // name; another one is refused
  std::uint64_t cluster_hash = 0;  // another one is warned of
  std::variant<TaskHello, ClientHello, ChannelHello, ShardPeerHello> who;
};

struct Welcome {
  std::uint16_t version = kProtocolVersion;
  Term term;                     // control connections
  JournalId journal;             // control connections
  Duration heartbeat_timeout{};  // control connections: the chief's, which holds for all
  Sequence last_sequence;        // channels: the last frame taken from this incarnation, 0 = none
  std::vector<std::string> warnings;
  Incarnation chief{};                // control connections: the chief's process; 0 = an older version
  std::vector<Incarnation> former{};  // control connections: of the terms before, the newest first; kMaxFormerChiefs
};
// A task that was away for more terms begins anew.
inline constexpr std::size_t kMaxFormerChiefs = 64;

// The answer to a hello or a request that isn't granted. Nothing has changed.
struct Refused {
  ErrorCode code = ErrorCode::kConfig;
  std::string reason;
  bool ends = false;  // another attempt is in vain: the process ends with the code, also where that is temporary
  // The task that refuses; incarnation 0: a chief, or one that doesn't say. A chief that probes an address knows by it
  // which process lives there.
  Member by{};
};

}  // namespace disttrain
