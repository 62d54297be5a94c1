// The command-line options of each verb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace disttrain::cli {

struct CheckOptions {
  std::vector<std::string> files;
  std::vector<std::string> sets;  // for the job files
};

struct PlanOptions {
  std::string job;
  std::string cluster;  // "" = what find_cluster() finds, else the cluster that `up` would start
  std::optional<std::uint32_t> ps;
  std::optional<std::uint32_t> workers;
  std::string bandwidth;  // "" = the time of a step isn't predicted
  std::string latency = "50us";
  std::string compute;  // "" = not known
  std::vector<std::string> sets;
  bool json = false;
};

struct UpOptions {
  std::string job;
  std::string cluster;  // "" = `up` makes a cluster file
  std::optional<std::uint32_t> ps;
  std::optional<std::uint32_t> workers;
  std::optional<std::uint32_t> evaluators;
  std::vector<std::string> sets;
  bool json = false;
  std::string output = "rank0";  // rank0, all or none
  bool no_restart = false;       // don't restart daemons that end
  std::uint64_t warmup = 0;      // only for bench: global steps before the measurement
};

// bench scale
struct ScaleOptions {
  std::string job;                     // "" = a job whose model has `bytes` bytes
  std::vector<std::string> sets;       // for the job file
  std::optional<std::uint64_t> bytes;  // of the parameters
  std::string mode;                    // sync, async or ssp; "" = that of the job file, else sync
  std::uint32_t workers = 100;
  std::uint32_t ps = 10;
  std::uint32_t threads = 1;            // shards that each ps offers
  std::optional<std::uint32_t> shards;  // 0 = auto; none = that of the job file, else auto
  std::string bandwidth = "10G";
  std::string latency = "50us";
  std::string compute = "0s";
  std::uint32_t steps = 20;
  std::uint32_t records = 1'000'000;
  bool json = false;
};

struct SubmitOptions {
  std::string job;
  std::string cluster;
  std::vector<std::string> sets;
  bool json = false;
  std::string output = "rank0";  // rank0, all or none
  bool detach = false;
  std::uint64_t warmup = 0;  // only for bench: global steps before the measurement
};

struct BenchPsOptions {
  std::string transport = "auto";       // as transport.kind in cluster.toml
  std::string sizes = "4K,1M,16M,64M";  // see bench/sizes.h
  std::uint32_t ps = 1;
  std::uint32_t workers = 1;
  std::uint32_t rounds = 5;
  std::string cores = "apart";  // or "free"
  std::string address = "127.0.0.1";
  bool json = false;
};

struct BenchUpdateOptions {
  std::string sizes = "64K,64M";  // see bench/sizes.h
  std::uint32_t rounds = 5;
  bool json = false;
};

struct BenchStepOptions {
  std::string job;
  std::string device = "cpu";
  std::uint32_t threads = 1;
  std::uint32_t rounds = 5;
  bool random = false;  // random records instead of the job's data
  std::vector<std::string> sets;
  bool json = false;
};

struct StatusOptions {
  std::string job;
  std::string cluster;
  std::string chief;  // host:port of the chief; used instead of the cluster file
  bool watch = false;
  bool json = false;
  bool all = false;
};

struct TopOptions {
  std::string job;
  std::string cluster;
  std::string chief;  // host:port of the chief; used instead of the cluster file
};

struct WhyOptions {
  std::string job;
  std::string cluster;
  std::string chief;  // host:port of the chief; used instead of the cluster file
  bool json = false;
};

struct StopOptions {
  std::string job;
  std::string cluster;
  bool kill = false;
};

struct ResubmitOptions {
  std::string job;
  std::string cluster;
  std::string chief;
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
  std::string chief;  // host:port of the chief; used instead of the cluster file
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

struct PredictOptions {
  std::string checkpoint;
  std::string out;
  std::string data;    // "" = as in the job
  std::string files;   // "" = as in the job
  std::string labels;  // "" = as in the job
  std::string device = "cpu";
  std::optional<std::uint32_t> threads;  // none = one per core
  std::vector<std::string> sets;
};

struct DoctorOptions {
  std::string cluster;  // "" = what find_cluster() finds, else check only the host
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
  // f32, f16 or bf16, for all floating-point values; "": those of the exported model or of the variables
  std::string dtype;
  std::optional<std::uint64_t> max_shard_size;  // in bytes; without it `out` is one file
  bool average = false;                         // write the moving averages of the parameters
  bool force = false;
};

}  // namespace disttrain::cli
