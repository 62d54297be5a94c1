// The hello, which is the first message of a connection, and its answer. These structs are for cores and shells.
// transport/wire/protocol.capnp has the same messages on the wire, and transport/wire/codec.h converts between the two.
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

// A ps or a worker sends this hello when it opens its control connection to the chief.
struct TaskHello {
  Member member;
  std::string address;  // host:port at which others reach the task
  std::string host;     // name of the task's host, for logs and to distinguish local from remote tasks
  std::uint32_t pid = 0;
  // The incarnation with which this process began. A process that was removed from a job comes back as another member,
  // but keeps this number. 0: a task of an older version, which doesn't say it.
  Incarnation process{};
  std::uint32_t shards = 0;        // ps: number of its shard threads
  std::uint64_t memory_bytes = 0;  // ps: the most memory that it may use
  std::uint32_t threads = 0;       // worker: compute threads
  std::string device;              // worker
  JournalId journal;               // the journal of the chief that the task last obeyed; 0 = none
  Term term{};                     // the term of that chief
  Incarnation chief{};             // the incarnation of that chief
  JobId job;                       // the job that the task has; 0 = none
  Generation generation;           // of that job; 0 = a worker that hasn't opened the job, or couldn't
  std::string metrics{};           // host:port of its metrics; "" = none
  // ps: the job's secret (CreateShards::token); 0 = none. The chief doesn't write it to disk. So after a restart the
  // chief learns it from the ps tasks that have the job.
  std::uint64_t token = 0;
};

// A command line sends this hello when it connects to the chief.
struct ClientHello {
  std::string user;
};

// A worker sends this hello when it opens a channel to a shard.
struct ChannelHello {
  JobId job;
  Generation generation;
  ShardId shard;
  Member worker;
  std::uint64_t token = 0;  // the job's secret from OpenJob; it proves that the chief lets this worker connect
};

// A shard sends this hello when it connects to the pacer of its job.
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
  std::string cluster;             // name of the cluster; a hello that names another cluster is refused
  std::uint64_t cluster_hash = 0;  // hash of the sender's cluster file; a different hash causes a warning
  std::variant<TaskHello, ClientHello, ChannelHello, ShardPeerHello> who;
};

struct Welcome {
  std::uint16_t version = kProtocolVersion;
  Term term;                     // control connections
  JournalId journal;             // control connections
  Duration heartbeat_timeout{};  // control connections: the chief's timeout, which applies to all tasks
  Sequence last_sequence;        // channels: the last frame that the shard took from this incarnation; 0 = none
  std::vector<std::string> warnings;
  Incarnation chief{};  // control connections: the chief's incarnation; 0 = the chief's program is too old to send it
  // control connections: the chief's incarnations of earlier terms, newest first; at most kMaxFormerChiefs
  std::vector<Incarnation> former{};
};
// A task that was away for more terms than this doesn't recognise the chief, and drops its job.
inline constexpr std::size_t kMaxFormerChiefs = 64;

// The answer to a hello or a request that is refused. The refusal has changed nothing.
struct Refused {
  ErrorCode code = ErrorCode::kConfig;
  std::string reason;
  bool ends = false;  // a retry is useless: the process ends with `code`, even if `code` is a temporary error
  // The task that refuses. A chief that probes an address learns from this which process lives there. An incarnation of
  // 0 means a chief, or unknown.
  Member by{};
};

}  // namespace disttrain
