// What `doctor` concludes from what it found on a host. Pure: each judge() takes what host.h or ports.h collected and
// returns one row of the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/metrics/disks.h"

namespace disttrain::cli {

// kFail: training can't work like this, and `doctor` exits with 1. kWarn: training may work, but not as it should.
enum class CheckState { kOk, kWarn, kFail, kSkipped };
std::string to_string(CheckState state);

struct Finding {
  std::string check;  // "port": scripts depend on these names (docs/json.md)
  std::string of;     // what was checked: "ps/0"; "" where a check has only one subject
  CheckState state = CheckState::kOk;
  std::string found;
  std::string advice{};  // what to do; only with kWarn and kFail
};

struct Memlock {
  struct Unit {
    std::string name;   // "psd.service"
    std::string limit;  // LimitMEMLOCK= as written; "" = not set
  };
  std::optional<std::uint64_t> limit_bytes;  // of this process; none: no limit
  std::vector<Unit> units;                   // installed units that may use RDMA
  bool wants_rdma = false;
};
Finding judge(const Memlock& memlock);

struct Link {
  std::string name;
  std::string state;  // as the kernel says: "up", "down", "unknown" (virtual interfaces)
  std::optional<std::uint32_t> megabits_per_second;
  std::uint32_t mtu = 0;
  bool is_loopback = false;
};

// A host name or address in the cluster file that belongs to this host.
struct OwnHost {
  std::string host;          // as in the file
  std::string tasks;         // "ps/0, worker/1"
  std::string address;       // what it resolves to
  std::optional<Link> link;  // none: no interface has that address
  bool has_other_hosts = false;
};
Finding judge(const OwnHost& own);
// Without a cluster file: judges one interface by itself.
Finding judge(const Link& link);

struct RdmaDevice {
  std::string name;
  std::string state;  // "4: ACTIVE"
  std::string rate;   // "100 Gb/sec (4X EDR)"
};
Finding judge_rdma(const std::vector<RdmaDevice>& devices, bool wants_rdma);

struct Clock {
  std::optional<bool> is_synchronised;  // as the kernel says; none: it doesn't say
  std::string chief;                    // the chief's address; "" = no cluster file
  // By how many seconds this host's clock is ahead of the chief's, taking the chief's answer as made in the middle of
  // the round trip. None: the chief didn't answer.
  std::optional<double> ahead_seconds;
  double round_trip_seconds = 0;
};
Finding judge(const Clock& clock);

enum class Listening {
  kNobody,       // the host refused the connection
  kOurs,         // a disttrain daemon answered
  kSilent,       // somebody took the connection, but didn't answer as a disttrain daemon
  kUnreachable,  // no connection
};

struct PortAnswer {
  Listening listening = Listening::kNobody;
  bool is_welcome = false;   // a chief accepts us as a client of its cluster
  bool is_busy = false;      // a chief refuses us only for now
  std::string said{};        // the answer, or why there was no connection
  std::string said_task{};   // metrics page: the task that serves it
  std::string said_hash{};   // metrics page: hash of the task's cluster file
  std::string unbindable{};  // kNobody on this host: why a daemon still can't bind the port
  std::string holder{};      // on this host: who holds the port, "python3 (pid 4711)"
};

struct OwnPort {
  TaskId task;
  std::string address;
  PortAnswer port;
  std::string metrics_address;  // "" = no metrics, or on any free port
  PortAnswer metrics{};
  std::string hash{};  // of our cluster file
};
Finding judge(const OwnPort& own);

// The tasks of one other host of the cluster file.
struct OtherHost {
  struct Task {
    TaskId task;
    PortAnswer port;
  };
  std::string host;
  std::vector<Task> tasks;
  std::string unresolved{};  // why its name can't be resolved; "" = it can
};
Finding judge(const OtherHost& other);

struct Gpus {
  struct Wish {
    TaskId worker;
    std::string device;  // "cuda:1"
  };
  std::string driver;  // version; "" = no driver is loaded
  std::uint32_t devices = 0;
  std::vector<Wish> wanted;  // by workers of this host
};
Finding judge(const Gpus& gpus);

enum class FolderUse { kState, kCheckpoints, kData };

struct Folder {
  FolderUse use = FolderUse::kState;
  std::string path;
  bool hangs = false;  // the file system didn't answer in time
  bool is_there = false;
  bool is_folder = false;
  std::string problem{};  // why it can't be read; "" = it can
  bool may_read = false;  // this user
  bool may_write = false;
  bool may_make = false;  // the folder isn't there, and this user may make it
  std::string owner{};
  unsigned mode = 0;
  std::string caller{};
  std::string daemon_user{};  // user of the installed unit; "" = no unit is installed
  std::optional<metrics::DiskSize> disk{};
  std::uint64_t checkpoint_bytes = 0;  // 0 = not known
};
Finding judge(const Folder& folder);

// Adds a judgement to a row: keeps the worse state, and appends to what was found and to the advice.
void worsen(Finding& finding, CheckState state, const std::string& found, const std::string& advice);
std::string with_comma(const std::string& list, const std::string& more);

// A row that says why a check was skipped.
Finding skipped(const std::string& check, const std::string& why);
bool has_failed(const std::vector<Finding>& findings);

// The last value of KEY= in the text of a unit with its drop-ins; none: no such key.
std::optional<std::string> unit_setting(const std::string& text, const std::string& key);

// The sockets on a port, from /proc/net/tcp or tcp6: those that listen, else those that are connected from it.
struct PortOwner {
  std::uint64_t inode = 0;
  std::uint32_t user = 0;
};
std::vector<PortOwner> owners_of_port(const std::string& proc_net_tcp, std::uint16_t port);

// The task ("ps/0") that serves a page of metrics, and the hash of its cluster file; "": no disttrain daemon serves it.
std::string task_of_metrics(const std::string& page);
std::string hash_of_metrics(const std::string& page);

}  // namespace disttrain::cli
