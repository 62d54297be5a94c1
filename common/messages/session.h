// The first message of a connection, and its answer. transport/wire/protocol.capnp describes each message; these are
// the same messages as plain values for cores and shells. transport/wire/codec.h converts between the two.
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
  std::string address;  // host:port for others
  std::string host;     // its host's name, for logs and to tell local from remote
  std::uint32_t pid = 0;
  std::uint32_t shards = 0;        // ps: threads it offers
  std::uint64_t memory_bytes = 0;  // ps: memory that it may use
  std::uint32_t threads = 0;       // worker: compute threads
  std::string device;              // worker
  JournalId journal;               // of the chief it last obeyed, 0 = none
  Term term{};                     // term of that chief
  Incarnation chief{};             // incarnation of that chief
  JobId job;                       // the job that it holds, 0 = none
  Generation generation;
  std::string metrics{};  // host:port of its metrics, "" = none
  // ps: CreateShards::token of that generation, 0 = none. It is on no disk: a restarted chief learns it from the ps
  // tasks that hold the job.
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
  std::uint64_t token = 0;  // from OpenJob: shows that the chief allowed it
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
  std::string cluster;             // name; a hello of another cluster is refused
  std::uint64_t cluster_hash = 0;  // another hash gets a warning
  std::variant<TaskHello, ClientHello, ChannelHello, ShardPeerHello> who;
};

struct Welcome {
  std::uint16_t version = kProtocolVersion;
  Term term;                     // control connections
  JournalId journal;             // control connections
  Duration heartbeat_timeout{};  // control connections: the chief's timeout, which applies to all tasks
  Sequence last_sequence;        // channels: last frame taken from this incarnation, 0 = none
  std::vector<std::string> warnings;
  Incarnation chief{};                // control connections: the chief's incarnation; 0 = an older version
  std::vector<Incarnation> former{};  // control connections: of earlier terms, newest first; kMaxFormerChiefs
};
// A task that was away for more terms starts anew.
inline constexpr std::size_t kMaxFormerChiefs = 64;

// The answer to a hello or a request that isn't granted. Nothing was changed.
struct Refused {
  ErrorCode code = ErrorCode::kConfig;
  std::string reason;
  bool ends = false;  // another attempt is useless: the process ends with the code, even if the code is temporary
  // The task that refuses, so that a chief that probes an address knows which process lives there. Incarnation 0: a
  // chief, or unknown.
  Member by{};
};

}  // namespace disttrain
