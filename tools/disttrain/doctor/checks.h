// What `doctor` makes of what it found on a host: pure, from what was collected (doctor_host.h, doctor_ports.h) to one
// row of its table each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/metrics/disks.h"

namespace disttrain::cli {

// Only kFail ends `doctor` with 1: training can't work like this. kWarn: it may, but not as it should.
enum class CheckState { kOk, kWarn, kFail, kSkipped };
std::string to_string(CheckState state);

struct Finding {
  std::string check;  // "port": scripts depend on it (docs/json.md)
  std::string of;     // "ps/0"; "" where there is only one of its kind
  CheckState state = CheckState::kOk;
  std::string found;
  std::string advice{};  // what to do; only of kWarn and kFail
};

struct Memlock {
  struct Unit {
    std::string name;   // "psd.service"
    std::string limit;  // LimitMEMLOCK= as written; "" = it doesn't say
  };
  std::optional<std::uint64_t> limit_bytes;  // of this process; none: no limit
  std::vector<Unit> units;                   // those that are installed and may use RDMA
  bool wants_rdma = false;
};
Finding judge(const Memlock& memlock);

struct Link {
  std::string name;
  std::string state;  // "up", "down", "unknown" (of virtual ones), as the kernel says
  std::optional<std::uint32_t> megabits_per_second;
  std::uint32_t mtu = 0;
  bool is_loopback = false;
};

// A host part of the cluster file that is this host's.
struct OwnHost {
  std::string host;          // as in the file
  std::string tasks;         // "ps/0, worker/1"
  std::string address;       // what it resolves to
  std::optional<Link> link;  // none: no interface has that address
  bool has_other_hosts = false;
};
Finding judge(const OwnHost& own);
// Without a cluster file: an interface by itself.
Finding judge(const Link& link);

struct RdmaDevice {
  std::string name;
  std::string state;  // "4: ACTIVE"
  std::string rate;   // "100 Gb/sec (4X EDR)"
};
Finding judge_rdma(const std::vector<RdmaDevice>& devices, bool wants_rdma);

struct Clock {
  std::optional<bool> is_synchronised;  // what the kernel says; none: it doesn't
  std::string chief;                    // its address; "" = there is no cluster file
  // Of the chief's answer: this host's clock against its, in seconds, as if the answer had been made in the middle of
  // the round trip. None: it didn't answer.
  std::optional<double> ahead_seconds;
  double round_trip_seconds = 0;
};
Finding judge(const Clock& clock);

enum class Listening {
  kNobody,       // on a host that answered
  kOurs,         // it answered as a disttrain daemon does
  kSilent,       // it took the connection and didn't answer so
  kUnreachable,  // no connection
};

struct PortAnswer {
  Listening listening = Listening::kNobody;
  bool is_welcome = false;   // a chief that takes us for a client of its cluster
  bool is_busy = false;      // a chief that would on another day
  std::string said{};        // what was answered, or why there was no connection
  std::string said_task{};   // of a page of metrics: whose it is
  std::string said_hash{};   // and what its cluster file means, as a hash
  std::string unbindable{};  // of kNobody on this host: why a daemon couldn't have it all the same
  std::string holder{};      // on this host: "python3 (pid 4711)"
};

struct OwnPort {
  TaskId task;
  std::string address;
  PortAnswer port;
  std::string metrics_address;  // "" = none, or any free one
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
  std::string unresolved{};  // its name is: why
};
Finding judge(const OtherHost& other);

struct Gpus {
  struct Wish {
    TaskId worker;
    std::string device;  // "cuda:1"
  };
  std::string driver;  // its version; "" = none is loaded
  std::uint32_t devices = 0;
  std::vector<Wish> wanted;  // by workers of this host
};
Finding judge(const Gpus& gpus);

enum class FolderUse { kState, kCheckpoints, kData };

struct Folder {
  FolderUse use = FolderUse::kState;
  std::string path;
  bool hangs = false;  // nothing came back in time
  bool is_there = false;
  bool is_folder = false;
  std::string problem{};  // why it can't be looked at; "" = it can
  bool may_read = false;  // this user
  bool may_write = false;
  bool may_make = false;  // not there: this user may make it
  std::string owner{};
  unsigned mode = 0;
  std::string caller{};
  std::string daemon_user{};  // of the unit that is installed; "" = none is
  std::optional<metrics::DiskSize> disk{};
  std::uint64_t checkpoint_bytes = 0;  // 0 = not known
};
Finding judge(const Folder& folder);

// For judgements of several things in one row: the worst state, all that was found and what to do.
void worsen(Finding& finding, CheckState state, const std::string& found, const std::string& advice);
std::string with_comma(const std::string& list, const std::string& more);

// A row that says why nothing was looked at.
Finding skipped(const std::string& check, const std::string& why);
bool has_failed(const std::vector<Finding>& findings);

// The last value of KEY= in the text of a unit with its drop-ins; none: it isn't there.
std::optional<std::string> unit_setting(const std::string& text, const std::string& key);

// Who has a port, of /proc/net/tcp or tcp6: those that listen, else those that are connected from it.
struct PortOwner {
  std::uint64_t inode = 0;
  std::uint32_t user = 0;
};
std::vector<PortOwner> owners_of_port(const std::string& proc_net_tcp, std::uint16_t port);

// A page of metrics: "ps/0", whose it is, and the hash of its cluster file; "": it isn't one of a disttrain daemon.
std::string task_of_metrics(const std::string& page);
std::string hash_of_metrics(const std::string& page);

}  // namespace disttrain::cli
