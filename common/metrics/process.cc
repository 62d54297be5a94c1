#include "common/metrics/process.h"

#include <utility>

#include "common/metrics/families.h"

namespace disttrain::metrics {

namespace {

double to_unix_seconds(std::int64_t wall_nanoseconds) {
  return static_cast<double>(wall_nanoseconds) * 1e-9;
}

}  // namespace

ProcessMetrics::ProcessMetrics(std::string task, std::string version, std::string transport, std::uint64_t config_hash,
                               std::int64_t wall_nanoseconds)
    : task_(std::move(task)),
      version_(std::move(version)),
      transport_(std::move(transport)),
      started_(to_unix_seconds(wall_nanoseconds)),
      config_hash_(config_hash),
      reloaded_(started_) {}

void ProcessMetrics::reloaded(std::uint64_t config_hash, std::int64_t wall_nanoseconds) {
  config_hash_ = config_hash;
  reloaded_ = to_unix_seconds(wall_nanoseconds);
}

void ProcessMetrics::collect(Page& page, const ProcessCounts& counts) const {
  page.set(kBuildInfo, {task_, version_}, 1);
  page.set(kConfigInfo, {task_, hash_text(config_hash_)}, 1);
  page.set(kStartTime, {task_}, started_);
  page.set(kConfigReloaded, {task_}, reloaded_);
  page.set(kTransportBytes, {task_, "in", transport_}, static_cast<double>(counts.bytes_received));
  page.set(kTransportBytes, {task_, "out", transport_}, static_cast<double>(counts.bytes_sent));
  constexpr std::array<const char*, 4> kLevels = {"debug", "info", "warn", "error"};
  for (std::size_t i = 0; i < kLevels.size(); ++i)
    page.set(kLogMessages, {task_, kLevels[i]}, static_cast<double>(counts.log_messages[i]));
}

std::string hash_text(std::uint64_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = kDigits[hash & 15];
  return text;
}

}  // namespace disttrain::metrics
