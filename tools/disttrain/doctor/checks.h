// The verdicts of `doctor`. host.h and ports.h collect facts about a host. Each judge() takes such facts and returns
// one row of the table that `doctor` prints. These functions do no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/metrics/disks.h"

namespace disttrain::cli {

// kFail: training can't work, and `doctor` exits with 1. kWarn: training may work, but something isn't as it should be.
enum class CheckState { kOk, kWarn, kFail, kSkipped };
std::string to_string(CheckState state);

struct Finding {
  std::string check;  // the name of the check, such as "port"; scripts depend on it (docs/json.md)
  std::string of;     // the subject, such as "ps/0"; "" if the check has only one subject
  CheckState state = CheckState::kOk;
  std::string found;
  std::string advice{};  // how to repair it; only with kWarn and kFail
};

// What the cluster file's transport.kind asks for. kIfPossible: tasks of two hosts use TCP otherwise.
enum class RdmaWish { kNone, kIfPossible, kRequired };

struct Memlock {
  struct Unit {
    std::string name;   // "psd.service"
    std::string limit;  // the unit's LimitMEMLOCK=; "" = not set
  };
  std::optional<std::uint64_t> limit_bytes;  // the limit of this process; none = unlimited
  std::vector<Unit> units;                   // the installed units of psd and workerd, which may use RDMA
  RdmaWish rdma = RdmaWish::kNone;
};
Finding judge(const Memlock& memlock);

struct Link {
  std::string name;
  std::string state;  // from the kernel: "up", "down" or, for virtual interfaces, "unknown"
  std::optional<std::uint32_t> megabits_per_second;
  std::uint32_t mtu = 0;
  bool is_loopback = false;
};

// A host name or address that stands for this host in the cluster file.
struct OwnHost {
  std::string host;              // as written in the cluster file
  std::string tasks;             // the tasks there: "ps/0, worker/1"
  std::string address;           // the address that `host` resolves to
  std::optional<Link> link;      // the interface with this address; none: no interface has it
  bool has_other_hosts = false;  // the cluster file names other hosts too
};
Finding judge(const OwnHost& own);
// Judges an interface of this host if doctor has no cluster file.
Finding judge(const Link& link);

struct RdmaDevice {
  std::string name;
  std::string state;         // "4: ACTIVE"
  std::string rate;          // "100 Gb/sec (4X EDR)"
  std::string interface {};  // the network interface whose addresses it has: "eth2"; "" = none
  bool is_active() const { return state.find("ACTIVE") != std::string::npos; }
};
struct Rdma {
  std::vector<RdmaDevice> devices;
  bool has_manager = true;  // this process may use rdma_cm
  std::string elsewhere{};  // the ps and workers of this host whose addresses no active device has: "ps/0, worker/1"
  RdmaWish wish = RdmaWish::kNone;
};
Finding judge(const Rdma& rdma);

struct Clock {
  std::optional<bool> is_synchronised;  // none: the kernel doesn't say
  std::string chief;                    // the chief's address; "" if there is no cluster file
  // How many seconds this host's clock is ahead of the chief's clock. doctor asks the chief for its time, and assumes
  // that the chief answered in the middle of the round trip. None: the chief didn't answer.
  std::optional<double> ahead_seconds;
  double round_trip_seconds = 0;
};
Finding judge(const Clock& clock);

enum class Listening {
  kNobody,       // the host refused the connection
  kOurs,         // a disttrain daemon answered
  kSilent,       // a process accepted the connection, but didn't answer as a disttrain daemon does
  kUnreachable,  // the connection failed in another way, for example by a time-out
};

struct PortAnswer {
  Listening listening = Listening::kNobody;
  bool is_welcome = false;   // a chief accepted doctor's hello
  bool is_busy = false;      // the task refused the hello with kTemporary, so a retry may succeed
  std::string said{};        // the task's reason for a refusal, or why the connection failed
  std::string said_task{};   // the task that a metrics page names as its own
  std::string said_hash{};   // the hash of the task's cluster file, from its metrics page
  std::string unbindable{};  // why a daemon can't bind the port although nobody listens; "" = it can
  std::string holder{};      // the process on this host that has the port: "python3 (pid 4711)"
};

struct OwnPort {
  TaskId task;
  std::string address;
  PortAnswer port;
  std::string metrics_address;  // "" if the task serves no metrics, or serves them at any free port
  PortAnswer metrics{};
  std::string hash{};  // the hash of the cluster file that doctor has read
};
Finding judge(const OwnPort& own);

// Another host of the cluster file, with its tasks.
struct OtherHost {
  struct Task {
    TaskId task;
    PortAnswer port;
  };
  std::string host;
  std::vector<Task> tasks;
  std::string unresolved{};  // why the host's name can't be resolved; "" = it can be
};
Finding judge(const OtherHost& other);

struct Gpus {
  struct Wish {
    TaskId worker;
    std::string device;  // "cuda:1"
  };
  std::string driver;  // the driver's version; "" = no driver is loaded
  std::uint32_t devices = 0;
  std::vector<Wish> wanted;  // the devices that workers of this host use
};
Finding judge(const Gpus& gpus);

enum class FolderUse { kState, kCheckpoints, kData };

struct Folder {
  FolderUse use = FolderUse::kState;
  std::string path;
  bool hangs = false;  // the file system didn't answer within the time limit
  bool is_there = false;
  bool is_folder = false;
  std::string problem{};   // why stat() failed; "" = it didn't, or the folder doesn't exist
  bool may_read = false;   // true: the user that runs doctor may read the folder
  bool may_write = false;  // the same for writing
  bool may_make = false;   // the folder doesn't exist, and this user may create it
  std::string owner{};
  unsigned mode = 0;
  std::string caller{};       // the user that runs doctor
  std::string daemon_user{};  // the user of the daemon's systemd unit; "" = no unit is installed
  std::optional<metrics::DiskSize> disk{};
  std::uint64_t checkpoint_bytes = 0;  // the size of one checkpoint; 0 = unknown
};
Finding judge(const Folder& folder);

// Adds another verdict to a row. The row gets the worse state of both, and both texts and both pieces of advice.
void worsen(Finding& finding, CheckState state, const std::string& found, const std::string& advice);
std::string with_comma(const std::string& list, const std::string& more);

// Returns a row that says why a check was skipped.
Finding skipped(const std::string& check, const std::string& why);
bool has_failed(const std::vector<Finding>& findings);

// Returns the value of KEY= in the text of a unit and its drop-ins. If there are several, the last one counts. None:
// there is no such key.
std::optional<std::string> unit_setting(const std::string& text, const std::string& key);

// A socket that uses a port. owners_of_port() finds these sockets in the text of /proc/net/tcp or tcp6. If sockets
// listen at the port, it returns only them. Otherwise it returns the connected sockets that have this local port.
struct PortOwner {
  std::uint64_t inode = 0;
  std::uint32_t user = 0;
};
std::vector<PortOwner> owners_of_port(const std::string& proc_net_tcp, std::uint16_t port);

// Return the task ("ps/0") that serves a page of metrics, and the hash of the task's cluster file. "": the page isn't
// from a disttrain daemon.
std::string task_of_metrics(const std::string& page);
std::string hash_of_metrics(const std::string& page);

}  // namespace disttrain::cli
