// The metrics that every daemon exports about its own process.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/metrics/page.h"

namespace disttrain::metrics {

// The current values of counters that other classes keep.
struct ProcessCounts {
  std::array<std::uint64_t, 4> log_messages{};  // debug, info, warn, error
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;
};

// Belongs to the loop.
class ProcessMetrics {
 public:
  // wall_nanoseconds: now, Unix time. config_hash: ClusterConfig::hash. transport: "tcp".
  ProcessMetrics(std::string task, std::string version, std::string transport, std::uint64_t config_hash,
                 std::int64_t wall_nanoseconds);

  // Call this when the daemon has read its cluster file again.
  void reloaded(std::uint64_t config_hash, std::int64_t wall_nanoseconds);

  void collect(Page& page, const ProcessCounts& counts) const;

 private:
  const std::string task_;
  const std::string version_;
  const std::string transport_;
  const double started_;
  std::uint64_t config_hash_;
  double reloaded_;
};

// Returns 16 hexadecimal digits, as config_info and task_config_info show them.
std::string hash_text(std::uint64_t hash);

}  // namespace disttrain::metrics
