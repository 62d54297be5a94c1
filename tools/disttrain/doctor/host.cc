#include "tools/disttrain/doctor/host.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "common/daemon/host.h"
#include "tools/disttrain/with_timeout.h"
#include "transport/tcp/socket.h"

namespace disttrain::cli {

namespace {

namespace fs = std::filesystem;

// Returns the text of a file. "": the file doesn't exist, or this user may not read it.
std::string text_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string first_line(const fs::path& path) {
  const std::string text = text_of_file(path);
  return text.substr(0, text.find('\n'));
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

// Returns a unit's text as systemd reads it: first the unit's file, then its drop-ins. None: the unit isn't installed.
std::optional<std::string> text_of_unit(const std::string& unit) {
  const std::vector<std::string> folders = {"/etc/systemd/system/", "/run/systemd/system/",
                                            "/usr/local/lib/systemd/system/", "/usr/lib/systemd/system/",
                                            "/lib/systemd/system/"};
  const auto is_there = [&unit](const std::string& folder) { return ::access((folder + unit).c_str(), F_OK) == 0; };
  const auto folder = std::find_if(folders.begin(), folders.end(), is_there);
  if (folder == folders.end()) return std::nullopt;
  std::string text = text_of_file(*folder + unit);
  std::vector<fs::path> drop_ins;
  for (const std::string& one : folders)
    for (const fs::path& path : entries(one + unit + ".d"))
      if (path.extension() == ".conf") drop_ins.push_back(path);
  std::stable_sort(drop_ins.begin(), drop_ins.end(),
                   [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  for (const fs::path& path : drop_ins) text += "\n" + text_of_file(path);
  return text;
}

std::string name_of_user(uid_t user) {
  const passwd* entry = getpwuid(user);
  return entry != nullptr ? entry->pw_name : std::to_string(user);
}

std::string numeric_host(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST] = "";
  if (getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return host;
}

Link link_of(const std::string& name, unsigned flags) {
  const fs::path folder = "/sys/class/net/" + name;
  Link link;
  link.name = name;
  link.state = first_line(folder / "operstate");
  // Some links have no speed, because they are virtual or down. Then the kernel reports -1 or nothing.
  std::istringstream speed(first_line(folder / "speed"));
  if (long value = 0; speed >> value && value > 0) link.megabits_per_second = static_cast<std::uint32_t>(value);
  std::istringstream(first_line(folder / "mtu")) >> link.mtu;
  link.is_loopback = (flags & IFF_LOOPBACK) != 0;
  if ((flags & IFF_UP) == 0) link.state = "down";
  return link;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns the process that has a socket open, such as "python3 (pid 4711)". "": this user can't see which process it
// is.
std::string process_with_socket(std::uint64_t inode) {
  const std::string socket = "socket:[" + std::to_string(inode) + "]";
  for (const fs::path& process : entries("/proc")) {
    if (!is_number(process.filename())) continue;
    for (const fs::path& descriptor : entries(process / "fd")) {
      std::error_code error;
      if (fs::read_symlink(descriptor, error) == socket)
        return first_line(process / "comm") + " (pid " + process.filename().string() + ")";
    }
  }
  return "";
}

Folder look_at(Folder folder) {
  struct stat found {};
  folder.disk = metrics::ask_disk(folder.path);
  if (::stat(folder.path.c_str(), &found) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) folder.problem = std::strerror(errno);
    fs::path above = folder.path;
    std::error_code ignored;
    while (above.has_relative_path() && !fs::exists(above, ignored)) above = above.parent_path();
    folder.may_make = ::access(above.c_str(), W_OK | X_OK) == 0;
    return folder;
  }
  folder.is_there = true;
  folder.is_folder = S_ISDIR(found.st_mode);
  folder.owner = name_of_user(found.st_uid);
  folder.mode = found.st_mode;
  folder.may_read = ::access(folder.path.c_str(), R_OK | X_OK) == 0;
  folder.may_write = ::access(folder.path.c_str(), W_OK | X_OK) == 0;
  return folder;
}

}  // namespace

Memlock find_memlock(RdmaWish rdma) {
  Memlock memlock;
  memlock.rdma = rdma;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) memlock.limit_bytes = limit.rlim_cur;
  for (const char* unit : {"psd.service", "psd@.service", "workerd.service", "workerd@.service"})
    if (const auto text = text_of_unit(unit))
      memlock.units.push_back({unit, unit_setting(*text, "LimitMEMLOCK").value_or("")});
  return memlock;
}

std::string user_of_unit(const std::string& daemon) {
  const auto text = text_of_unit(daemon + ".service");
  return text ? unit_setting(*text, "User").value_or("root") : "";
}

std::vector<Interface> find_interfaces() {
  std::vector<Interface> interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> freed(list, freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const bool is_ipv6 = one->ifa_addr->sa_family == AF_INET6;
    if (!is_ipv6 && one->ifa_addr->sa_family != AF_INET) continue;
    interfaces.push_back({link_of(one->ifa_name, one->ifa_flags),
                          numeric_host(one->ifa_addr, is_ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in))});
  }
  return interfaces;
}

HostName find_host(const std::string& address) {
  const auto asked = within(kHostPatience, [address] {
    HostName name;
    const Result<bool> is_own = daemon::is_own_address(address);
    if (!is_own.has_value()) {
      name.problem = is_own.error().message;
      return name;
    }
    name.is_own = *is_own;
    const auto parsed = transport::parse_address(address);
    if (!parsed) return name;
    const auto endpoints = transport::resolve(*parsed);
    if (endpoints) name.address = numeric_host(endpoints->front().get(), endpoints->front().length);
    return name;
  });
  if (asked) return *asked;
  return HostName{
      false, "", "host name \"" + daemon::host_part(address) + "\" can't be looked up: the name server doesn't answer"};
}

std::vector<RdmaDevice> find_rdma_devices() {
  std::vector<RdmaDevice> devices;
  for (const fs::path& device : entries("/sys/class/infiniband"))
    for (const fs::path& port : entries(device / "ports"))
      devices.push_back({device.filename().string() + " port " + port.filename().string(), first_line(port / "state"),
                         first_line(port / "rate"), first_line(port / "gid_attrs/ndevs/0")});
  return devices;
}

bool may_use_rdma_cm() {
  return ::access("/dev/infiniband/rdma_cm", R_OK | W_OK) == 0;
}

Gpus find_gpus() {
  Gpus gpus;
  // Example of the file: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"
  std::istringstream words(first_line("/proc/driver/nvidia/version"));
  for (std::string word; gpus.driver.empty() && words >> word;)
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 && word.find('.') != std::string::npos)
      gpus.driver = word;
  for (const fs::path& device : entries("/dev")) {
    const std::string name = device.filename();
    if (name.starts_with("nvidia") && is_number(name.substr(6))) ++gpus.devices;
  }
  return gpus;
}

std::optional<bool> is_clock_synchronised() {
  timex asked{};  // modes = 0, so adjtimex() changes nothing
  const int state = adjtimex(&asked);
  if (state < 0) return std::nullopt;
  return state != TIME_ERROR && (asked.status & STA_UNSYNC) == 0;
}

Folder find_folder(FolderUse use, const std::string& path, const std::string& unit) {
  Folder folder;
  folder.use = use;
  folder.path = path;
  folder.caller = name_of_user(geteuid());
  folder.daemon_user = user_of_unit(unit);
  auto found = within(kHostPatience, [folder] { return look_at(folder); });
  if (found) return std::move(*found);
  folder.hangs = true;
  return folder;
}

std::string find_holder(std::uint16_t port) {
  std::string holders;
  const auto add = [&holders](const std::string& one) {
    if (holders.find(one) == std::string::npos) holders += (holders.empty() ? "" : " and ") + one;
  };
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"})
    for (const PortOwner& owner : owners_of_port(text_of_file(table), port)) {
      const std::string process = process_with_socket(owner.inode);
      add(process.empty() ? "a process of " + name_of_user(owner.user) : process);
    }
  return holders;
}

}  // namespace disttrain::cli
