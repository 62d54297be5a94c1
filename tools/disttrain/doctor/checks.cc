#include "tools/disttrain/doctor/checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "common/printable.h"
#include "tools/disttrain/units.h"

namespace disttrain::cli {

namespace {

// Alerts (monitoring/prometheus) compare times of several hosts, and `logs` sorts the lines of all hosts by time. If
// the clocks differ by more than this, both give wrong results.
constexpr double kMostSkewSeconds = 1.0;
constexpr std::uint32_t kSlowLink = 1000;  // Mbit/s; a slower network slows any training
constexpr double kNearlyFull = 0.05;       // share of the disk that is free; the alert DiskFull uses the same

std::string speed_text(const Link& link) {
  if (!link.megabits_per_second) return "";
  const std::uint32_t speed = *link.megabits_per_second;
  return speed >= 1000 && speed % 1000 == 0 ? std::to_string(speed / 1000) + " Gbit/s"
                                            : std::to_string(speed) + " Mbit/s";
}

std::string link_text(const Link& link) {
  if (link.is_loopback) return link.name + " (loopback)";
  return with_comma(with_comma(link.name + " is " + link.state, speed_text(link)), "MTU " + std::to_string(link.mtu));
}

// Checks that an interface is up and fast enough.
void judge_link(const Link& link, Finding& finding) {
  if (link.state == "down" || link.state == "lowerlayerdown" || link.state == "notpresent") {
    finding.state = CheckState::kFail;
    finding.advice = "check the cable and the switch, then run: ip link set " + link.name + " up";
  } else if (link.megabits_per_second && *link.megabits_per_second < kSlowLink) {
    finding.state = CheckState::kWarn;
    finding.advice =
        "expected at least 1 Gbit/s: check the cable and the switch, or put the address of a faster interface "
        "into the cluster file";
  }
}

std::string wishes(const Gpus& gpus) {
  std::string text;
  for (const Gpus::Wish& wish : gpus.wanted) text = with_comma(text, to_string(wish.worker) + " " + wish.device);
  return text;
}

// How many devices the host must have. Devices are numbered from 0, so "cuda:3" needs four devices; "cuda" and "cuda:0"
// need one.
std::uint32_t devices_for(const std::string& device) {
  const std::size_t colon = device.find(':');
  return colon == std::string::npos ? 1 : static_cast<std::uint32_t>(std::stoul(device.substr(colon + 1))) + 1;
}

const char* name_of(FolderUse use) {
  return use == FolderUse::kState ? "state" : use == FolderUse::kCheckpoints ? "checkpoints" : "data";
}

const char* key_of(FolderUse use) {
  return use == FolderUse::kState         ? "chief.state_directory"
         : use == FolderUse::kCheckpoints ? "checkpoint.directory"
                                          : "data.path";
}

void judge_missing(const Folder& folder, Finding& finding) {
  finding.found = folder.path + " isn't there";
  if (folder.use != FolderUse::kState)
    return worsen(finding, CheckState::kFail, "",
                  std::string("create or mount this folder, or correct ") + key_of(folder.use) + " in the job file");
  if (!folder.daemon_user.empty() || folder.may_make) {
    finding.found +=
        " yet: " + std::string(folder.daemon_user.empty() ? "chiefd makes it" : "systemd makes it for chiefd.service");
    return;
  }
  worsen(finding, CheckState::kWarn, "and " + folder.caller + " can't make it",
         "create this folder for the user that chiefd runs as");
}

void judge_access(const Folder& folder, Finding& finding) {
  const bool needs_write = folder.use != FolderUse::kData;
  const bool may = needs_write ? folder.may_write : folder.may_read;
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", folder.mode & 07777);
  finding.found = folder.path + " of " + folder.owner + ", mode " + mode;
  const std::string verb = needs_write ? "write there" : "read it";
  if (folder.daemon_user.empty() || folder.daemon_user == folder.caller) {
    if (may) return;
    return worsen(finding, CheckState::kWarn, folder.caller + " may not " + verb,
                  "start the daemons as a user that may do so, or give " + folder.caller + " the permission");
  }
  const unsigned wanted = needs_write ? 0300 : 0500;
  if (folder.owner == folder.daemon_user && (folder.mode & wanted) == wanted) return;
  const unsigned everybody = wanted >> 6;
  if ((folder.mode & everybody) == everybody) return;
  worsen(finding, CheckState::kWarn,
         "can't tell from here whether " + folder.daemon_user + ", the daemons' user, may " + verb,
         "try: runuser -u " + folder.daemon_user + " -- test -" + (needs_write ? "w " : "r ") + folder.path);
}

void judge_room(const Folder& folder, Finding& finding) {
  if (!folder.disk || folder.use == FolderUse::kData) return;
  const double free = folder.disk->free_bytes;
  finding.found = with_comma(finding.found, bytes_text(static_cast<std::uint64_t>(free)) + " free");
  if (folder.checkpoint_bytes != 0) {
    const auto needed = static_cast<double>(folder.checkpoint_bytes);
    finding.found += ", a checkpoint needs " + bytes_text(folder.checkpoint_bytes);
    if (free < needed)
      return worsen(finding, CheckState::kFail, "",
                    "free some space on this disk, or put checkpoint.directory on another disk");
    if (free < 2 * needed)
      return worsen(finding, CheckState::kWarn, "room for one more only",
                    "free some space: two checkpoints must fit, because the newest stays until the next is complete");
  }
  if (free < kNearlyFull * folder.disk->size_bytes)
    worsen(finding, CheckState::kWarn, "nearly full", "free some space on that disk");
}

// Returns the value of a metric's label. "": the page has no such metric. Any process may have sent the page, so this
// looks at each byte a few times only, without recursion, and a long value is cut.
std::string label_of(std::string_view page, const std::string& metric, const std::string& label) {
  constexpr std::size_t kLongestValue = 100;
  const std::string wanted = label + "=\"";
  for (std::size_t at = page.find(metric + "{"); at != std::string_view::npos; at = page.find(metric + "{", at)) {
    at += metric.size();
    const std::size_t end = page.find_first_of("}\n", at);
    if (end == std::string_view::npos) return "";
    const std::string_view labels = page.substr(at, end - at);
    at = end;
    std::size_t found = labels.find("{" + wanted);
    if (found == std::string_view::npos) found = labels.find("," + wanted);
    if (found == std::string_view::npos) continue;
    const std::string_view value = labels.substr(found + 1 + wanted.size());
    const std::size_t quote = value.find('"');
    if (quote != std::string_view::npos) return std::string(cut_text(value.substr(0, quote), kLongestValue));
  }
  return "";
}

}  // namespace

std::string with_comma(const std::string& list, const std::string& more) {
  return list.empty() || more.empty() ? list + more : list + ", " + more;
}

void worsen(Finding& finding, CheckState state, const std::string& found, const std::string& advice) {
  finding.state = std::max(finding.state, state);
  finding.found = with_comma(finding.found, found);
  if (!advice.empty()) finding.advice += (finding.advice.empty() ? "" : "; ") + advice;
}

std::string to_string(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kWarn:
      return "warn";
    case CheckState::kFail:
      return "fail";
    case CheckState::kSkipped:
      return "skipped";
  }
  return "unknown";
}

Finding judge(const Memlock& memlock) {
  const auto daemon_of = [](const Memlock::Unit& unit) { return unit.name.substr(0, unit.name.find_first_of("@.")); };
  Finding finding{"memlock", "", CheckState::kOk, ""};
  finding.found = (memlock.limit_bytes ? bytes_text(*memlock.limit_bytes) : "no limit") + " for this process";
  bool is_low = memlock.units.empty() && memlock.limit_bytes;
  for (const Memlock::Unit& unit : memlock.units) {
    finding.found += ", " + unit.name + ": " + (unit.limit.empty() ? "systemd's default" : unit.limit);
    // A host runs psd.service or instances of psd@.service, so a drop-in for one of both will do.
    const auto is_enough = [&unit, &daemon_of](const Memlock::Unit& other) {
      return daemon_of(other) == daemon_of(unit) && other.limit == "infinity";
    };
    is_low = is_low || std::ranges::none_of(memlock.units, is_enough);
  }
  if (memlock.rdma == RdmaWish::kNone) {
    finding.found += "; only RDMA needs more";
  } else if (is_low) {
    finding.state = memlock.rdma == RdmaWish::kRequired ? CheckState::kFail : CheckState::kWarn;
    finding.advice = memlock.units.empty()
                         ? "RDMA needs locked memory: run `ulimit -l unlimited` before you start the daemons"
                         : "RDMA needs locked memory: install the drop-ins for RDMA from /usr/share/disttrain/systemd; "
                           "each drop-in says where to copy it";
  }
  return finding;
}

Finding judge(const OwnHost& own) {
  Finding finding{"nic", own.host, CheckState::kOk, ""};
  const std::string where =
      own.address == own.host || own.address.empty() ? "" : own.host + " is " + own.address + ": ";
  if (!own.link) {
    finding.state = CheckState::kWarn;
    finding.found = where + "no interface has this address of " + own.tasks;
    finding.advice =
        "a daemon can't tell which tasks belong to this host, because net.ipv4.ip_nonlocal_bind lets it bind any "
        "address: start the daemons with --index, or correct the cluster file";
    return finding;
  }
  finding.found = where + link_text(*own.link);
  if (!own.link->is_loopback) {
    judge_link(*own.link, finding);
  } else if (own.has_other_hosts) {
    finding.state = CheckState::kWarn;
    finding.found += ", so other hosts of the cluster file can't reach " + own.tasks;
    finding.advice = own.address == own.host
                         ? "give " + own.tasks + " an address of this host's network in every host's cluster file"
                         : "correct this host's name in /etc/hosts, or use its address in the cluster file";
  }
  return finding;
}

Finding judge(const Link& link) {
  Finding finding{"nic", link.name, CheckState::kOk, link_text(link)};
  if (link.state != "down") judge_link(link, finding);  // an interface that is down is often unused
  return finding;
}

Finding judge(const Rdma& rdma) {
  Finding finding{"rdma", "", rdma.devices.empty() ? CheckState::kSkipped : CheckState::kOk, ""};
  bool is_active = false;
  for (const RdmaDevice& device : rdma.devices) {
    const std::string facts = with_comma(with_comma(device.state, device.rate), device.interface);
    finding.found = with_comma(finding.found, device.name + " (" + facts + ")");
    is_active = is_active || device.is_active();
  }
  if (rdma.devices.empty()) finding.found = "no device";
  if (rdma.wish == RdmaWish::kNone) {
    finding.found += "; transport.kind doesn't need one";
    return finding;
  }
  if (!is_active) {
    finding.advice =
        "transport.kind needs RDMA: load the device's driver and bring its port up, or set transport.kind to tcp";
  } else if (!rdma.has_manager) {
    finding.found += "; /dev/infiniband/rdma_cm can't be opened";
    finding.advice = "load the kernel's module rdma_ucm (Debian: install rdma-core)";
  } else if (!rdma.elsewhere.empty()) {
    finding.found += "; no device has the address of " + rdma.elsewhere;
    finding.advice = "in the cluster file, give " + rdma.elsewhere + " the address of a device's interface";
  }
  if (finding.advice.empty()) return finding;
  finding.state = rdma.wish == RdmaWish::kRequired ? CheckState::kFail : CheckState::kWarn;
  if (rdma.wish == RdmaWish::kIfPossible) finding.advice += "; otherwise tensors travel between hosts over TCP";
  return finding;
}

Finding judge(const Clock& clock) {
  Finding finding{"clock", "", CheckState::kOk, ""};
  const std::string kernel = !clock.is_synchronised   ? "the kernel doesn't say whether the clock is synchronised"
                             : *clock.is_synchronised ? "the kernel says that the clock is synchronised"
                                                      : "the kernel says that the clock isn't synchronised";
  const std::string advice =
      "run chrony or systemd-timesyncd on all hosts, because alerts and `disttrain logs` compare the hosts' times";
  if (clock.ahead_seconds) {
    const double most = std::abs(*clock.ahead_seconds) + clock.round_trip_seconds / 2;
    const double least = std::abs(*clock.ahead_seconds) - clock.round_trip_seconds / 2;
    if (least > kMostSkewSeconds) {
      finding.state = CheckState::kWarn;
      finding.found = seconds_text(std::abs(*clock.ahead_seconds)) +
                      (*clock.ahead_seconds > 0 ? " ahead of" : " behind") + " the chief's clock (round trip " +
                      seconds_text(clock.round_trip_seconds) + "); " + kernel;
      finding.advice = advice;
    } else {
      finding.found = "at most " + seconds_text(most) + " from the chief's clock; " + kernel;
    }
    return finding;
  }
  if (!clock.chief.empty()) finding.found = "no chief answers at " + clock.chief + " to compare the clocks; ";
  finding.found += kernel;
  if (!clock.is_synchronised) finding.state = CheckState::kSkipped;
  if (clock.is_synchronised == false) {
    finding.state = CheckState::kWarn;
    finding.advice = advice;
  }
  return finding;
}

Finding judge(const Gpus& gpus) {
  Finding finding{"gpu", "", CheckState::kOk, ""};
  finding.found = gpus.driver.empty() ? "no NVIDIA driver is loaded"
                                      : "driver " + gpus.driver + ", " + std::to_string(gpus.devices) +
                                            (gpus.devices == 1 ? " device" : " devices");
  if (gpus.wanted.empty()) {
    finding.state = CheckState::kSkipped;
    finding.found = "no worker of this host uses a GPU; " + finding.found;
    return finding;
  }
  finding.found += "; wanted: " + wishes(gpus);
  std::uint32_t wanted = 0;
  for (const Gpus::Wish& wish : gpus.wanted) wanted = std::max(wanted, devices_for(wish.device));
  if (gpus.driver.empty() || gpus.devices < wanted) {
    finding.state = CheckState::kFail;
    finding.advice = gpus.driver.empty()
                         ? "install and load NVIDIA's driver, or set the workers' device to \"cpu\""
                         : "this host has fewer devices: correct the workers' device in the cluster file";
  }
  return finding;
}

Finding judge(const Folder& folder) {
  Finding finding{"disk", name_of(folder.use), CheckState::kOk, ""};
  if (folder.hangs) {
    finding.state = CheckState::kFail;
    finding.found = folder.path + " doesn't answer";
    finding.advice = "check the file system of this folder; its NFS server may be down";
    return finding;
  }
  if (!folder.problem.empty()) {
    finding.state = CheckState::kWarn;
    finding.found = folder.path + " can't be read: " + folder.problem;
    finding.advice = "run doctor again as a user that may read this folder";
    return finding;
  }
  if (!folder.is_there) {
    judge_missing(folder, finding);
  } else if (!folder.is_folder) {
    finding.state = CheckState::kFail;
    finding.found = folder.path + " isn't a folder";
    finding.advice = std::string("correct ") + key_of(folder.use);
    return finding;
  } else {
    judge_access(folder, finding);
  }
  judge_room(folder, finding);
  return finding;
}

Finding skipped(const std::string& check, const std::string& why) {
  return Finding{check, "", CheckState::kSkipped, why};
}

bool has_failed(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.state == CheckState::kFail; });
}

std::optional<std::string> unit_setting(const std::string& text, const std::string& key) {
  std::optional<std::string> value;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key + "=")) value = line.substr(key.size() + 1);
  return value;
}

std::vector<PortOwner> owners_of_port(const std::string& proc_net_tcp, std::uint16_t port) {
  constexpr unsigned kListens = 0x0A;
  constexpr unsigned kWaitsForItsEnd = 0x06;  // TIME_WAIT, in which no process owns the socket any more
  std::vector<PortOwner> listening;
  std::vector<PortOwner> connected;
  std::istringstream lines(proc_net_tcp);
  for (std::string line; std::getline(lines, line);) {
    // The columns are: sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode ...
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits;
    PortOwner owner;
    std::uint64_t timeout = 0;
    if (!(words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> owner.user >> timeout >>
          owner.inode))
      continue;  // the header
    if (std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16) != port) continue;
    const unsigned long code = std::stoul(state, nullptr, 16);
    if (code == kListens)
      listening.push_back(owner);
    else if (code != kWaitsForItsEnd)
      connected.push_back(owner);
  }
  return listening.empty() ? connected : listening;
}

std::string task_of_metrics(const std::string& page) {
  return label_of(page, "disttrain_build_info", "task");
}

std::string hash_of_metrics(const std::string& page) {
  return label_of(page, "disttrain_config_info", "hash");
}

}  // namespace disttrain::cli
