#include "common/daemon/reload.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "common/config/reader/keys.h"
#include "common/config/reader/reader.h"
#include "common/daemon/log/message_ids.h"

namespace disttrain::daemon {

namespace {

// pairs of a key, such as "ps[1].address", and its value as TOML
using Values = std::vector<std::pair<std::string, std::string>>;

void add_values(const config::TomlValue& value, const std::string& path, Values& values) {
  if (const auto* table = value.as<config::TomlValue::Table>()) {
    for (const config::TomlEntry& entry : *table)
      add_values(entry.value, path.empty() ? entry.key : path + "." + entry.key, values);
    return;
  }
  const auto* array = value.as<config::TomlValue::Array>();
  if (array == nullptr || array->empty() || array->front().as<config::TomlValue::Table>() == nullptr)
    return void(values.emplace_back(path, config::to_toml(value)));
  for (std::size_t i = 0; i < array->size(); ++i) add_values((*array)[i], path + "[" + std::to_string(i) + "]", values);
}

Values values_of(const ClusterConfig& cluster) {
  ClusterConfig copy = cluster;  // a copy, because the rows need variables that they can write to
  config::TomlValue document;
  document.value = config::write_table(config::cluster_keys(copy));
  Values values;
  add_values(document, "", values);
  return values;
}

std::string value_of(const Values& values, const std::string& key) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&key](const auto& entry) { return entry.first == key; });
  return found == values.end() ? "nothing" : found->second;
}

// Returns a line such as "log.level is "debug" now, was "info"" for each change, in the order of the file.
std::vector<std::string> differences(const ClusterConfig& before, const ClusterConfig& after) {
  const Values was = values_of(before);
  const Values is = values_of(after);
  std::vector<std::string> lines;
  for (const auto& [key, value] : is)
    if (value_of(was, key) != value) lines.push_back(key + " is " + value + " now, was " + value_of(was, key));
  for (const auto& [key, value] : was)
    if (value_of(is, key) == "nothing") lines.push_back(key + " is gone, was " + value);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

}  // namespace

Reload compare(const ClusterConfig& running, const ClusterConfig& file) {
  Reload reload{running, {}, {}};
  reload.cluster.log.level = file.log.level;
  reload.cluster.log.rate = file.log.rate;
  reload.cluster.heartbeat.timeout = file.heartbeat.timeout;
  reload.cluster.hash = config::hash_of(reload.cluster);
  reload.taken = differences(running, reload.cluster);
  reload.waiting = differences(reload.cluster, file);
  return reload;
}

ReloadSignal::ReloadSignal(asio::io_context& loop, const Startup& startup, Log& log, Service& service,
                           std::function<void(const ClusterConfig&)> take)
    : signals_(loop, SIGHUP),
      read_file_(startup.read_file),
      running_(startup.cluster),
      log_(log),
      service_(service),
      take_(std::move(take)) {
  wait();
}

void ReloadSignal::wait() {
  signals_.async_wait([this](const asio::error_code& error, int) {
    if (error) return;  // this object is destroyed
    service_.reloading();
    reload();
    service_.reloaded();
    wait();
  });
}

void ReloadSignal::reload() {
  const Result<ClusterConfig> file = read_file_();
  if (!file)
    return log_.write(Level::kError,
                      "re-read the cluster file, but ignored it because of errors: " + file.error().message,
                      {.kind = kReloadRefused});
  Reload reload = compare(running_, *file);
  running_ = reload.cluster;
  log_.change(running_.log);
  take_(running_);
  log_.write(
      Level::kInfo,
      "re-read the cluster file: " + (reload.taken.empty() ? "the settings that can change at run time haven't changed"
                                                           : "applied these changes: " + joined(reload.taken)),
      {.kind = kReloaded});
  if (!reload.waiting.empty()) log_.warn("these changes need a restart of this daemon: " + joined(reload.waiting));
}

}  // namespace disttrain::daemon
