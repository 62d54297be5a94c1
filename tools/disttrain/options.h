// The command-line options of each verb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace disttrain::cli {

struct CheckOptions {
  std::vector<std::string> files;
};

struct PlanOptions {
  std::string job;
  std::string cluster;  // "" = find_cluster(); if that finds none, the cluster that `up` would make
  std::optional<std::uint32_t> ps;
  std::optional<std::uint32_t> workers;
  std::vector<std::string> sets;
  bool json = false;
};

struct UpOptions {
  std::string job;
  std::string cluster;  // "" = a cluster is made
  std::optional<std::uint32_t> ps;
  std::optional<std::uint32_t> workers;
  std::vector<std::string> sets;
  bool json = false;
  bool no_restart = false;   // daemons that end stay down
  std::uint64_t warmup = 0;  // bench only: global steps to skip
};

struct SubmitOptions {
  std::string job;
  std::string cluster;
  std::vector<std::string> sets;
  bool json = false;
  bool detach = false;
  std::uint64_t warmup = 0;  // bench only: global steps to skip
};

struct StatusOptions {
  std::string job;
  std::string cluster;
  std::string chief;  // host:port, instead of a cluster file
  bool watch = false;
  bool json = false;
  bool all = false;
};

struct TopOptions {
  std::string job;
  std::string cluster;
  std::string chief;  // host:port, instead of a cluster file
};

struct WhyOptions {
  std::string job;
  std::string cluster;
  std::string chief;  // host:port, instead of a cluster file
  bool json = false;
};

struct StopOptions {
  std::string job;
  std::string cluster;
  bool kill = false;
};

struct LogsOptions {
  std::string job;
  std::string cluster;
  std::vector<std::string> tasks;
  std::string level = "debug";
  std::string since;
  bool follow = false;
};

struct EventsOptions {
  std::string job;
  std::string cluster;
  std::string chief;  // host:port, instead of a cluster file
  bool all = false;
  bool follow = false;
  bool json = false;
};

struct CheckpointSaveOptions {
  std::string job;
  std::string cluster;
  std::string chief;
  bool json = false;
};

struct DoctorOptions {
  std::string cluster;  // "" = find_cluster(); if that finds none, only the host is checked
  std::string job;      // "" = none
  bool json = false;
};

// checkpoint list, inspect and verify
struct CheckpointOptions {
  std::string path;
  bool json = false;
};

struct CheckpointDiffOptions {
  std::string a;
  std::string b;
  bool slots = false;
  bool json = false;
};

struct CheckpointExportOptions {
  std::string path;
  std::string out;
  std::string dtype = "f32";                    // f32, f16 or bf16
  std::optional<std::uint64_t> max_shard_size;  // bytes; none: `out` is one file
  bool force = false;
};

}  // namespace disttrain::cli
