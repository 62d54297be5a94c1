// job.toml as plain values with their defaults. common/config/reader/reader.h fills it and reports every problem.
// Ranges stand beside each field; the reader enforces them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"

namespace disttrain {

// Of a job's name, in bytes.
inline constexpr std::size_t kMaxJobNameBytes = 100;

enum class Placement : std::uint8_t { kBalanced, kRoundRobin, kGreedy, kPartitioned };
enum class Mode : std::uint8_t { kAsync, kSync, kSsp };
enum class Activation : std::uint8_t { kSigmoid, kRelu, kTanh, kGelu };
enum class Loss : std::uint8_t { kSoftmaxCrossEntropy, kMse, kSigmoidCrossEntropy };
enum class Rule : std::uint8_t { kSgd, kMomentum, kNesterov, kAdagrad, kRmsprop, kAdam, kAdamw };
enum class ScheduleKind : std::uint8_t { kConstant, kStep, kExponential, kPolynomial, kCosine };
enum class ClipKind : std::uint8_t { kNone, kGlobalNorm, kValue };
enum class NonfiniteAction : std::uint8_t { kSkip, kFail };
enum class Sharding : std::uint8_t { kLease, kNone };
enum class DataFormat : std::uint8_t { kIdx, kCsv, kNpy };
enum class OnWorkerLoss : std::uint8_t { kShrink, kWait };
enum class Restore : std::uint8_t { kNewest, kNone };
enum class ShuffleKind : std::uint8_t { kEpoch, kBuffer, kNone };

// How a variable begins. `scale` is the standard deviation of normal(), unused by the others.
// glorot: uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010, eq. 16).
// he: normal with standard deviation sqrt(2 / fan_in) (He et al. 2015, eq. 10).
enum class InitializerKind : std::uint8_t { kZeros, kNormal, kGlorot, kHe };
struct Initializer {
  InitializerKind kind = InitializerKind::kGlorot;
  double scale = 0.0;
  bool operator==(const Initializer&) const = default;
};

struct JobSection {
  std::string name;          // [a-z0-9-]+, at most kMaxJobNameBytes; required
  std::uint64_t seed = 1;    // 0 .. 2^63 - 1
  std::uint32_t shards = 0;  // 0 = "auto"
  Placement placement = Placement::kBalanced;
  std::uint32_t min_workers = 1;  // with fewer it doesn't start, or pauses
  // kWait (sync): the steps wait for a successor in the lost worker's rank, so that the run is bitwise one without
  // loss.
  OnWorkerLoss on_worker_loss = OnWorkerLoss::kShrink;
  std::uint32_t max_restarts = 10;  // recoveries within restart_window; one more fails the job
  Duration restart_window = std::chrono::minutes(10);
  Duration stall_timeout = std::chrono::seconds(60);
};

struct ModelSection {
  std::string builtin;                // "mlp" | "cnn", required
  std::vector<std::uint32_t> layers;  // mlp: inputs, hidden..., outputs; at least 2; cnn: not allowed
  Activation activation = Activation::kRelu;
  Initializer initializer;  // of weights; biases begin at 0
  double dropout = 0.5;     // cnn, before the last layer; 0 <= dropout < 1
  Loss loss = Loss::kSoftmaxCrossEntropy;
};

struct DataSection {
  DataFormat format = DataFormat::kIdx;
  std::string path;                               // folder, absolute once read
  std::string files;                              // glob in path, required
  std::string labels;                             // glob in path; "" = found by the format's convention
  std::array<std::uint64_t, 2> records = {0, 0};  // [begin, end), {0, 0} = all
  Sharding sharding = Sharding::kLease;
  ShuffleKind shuffle = ShuffleKind::kEpoch;
  std::uint64_t shuffle_buffer = 0;  // records, for kBuffer
  double scale = 1.0;                // values are multiplied by it
  std::uint32_t prefetch = 2;        // batches, 1..1024; see batches_ahead()
};

struct OptimizerConfig {
  Rule rule = Rule::kSgd;
  double learning_rate = 0.01;  // > 0
  double weight_decay = 0.0;    // >= 0; L2 added to the gradient, decoupled in adamw
  double momentum = 0.9;        // momentum, nesterov; rmsprop: 0
  double beta1 = 0.9;           // adam, adamw
  double beta2 = 0.999;         // adam, adamw
  double rho = 0.9;             // rmsprop
  double epsilon = 1e-8;        // adagrad 1e-10, others 1e-8
};

// The factor on the learning rate at step t (the shard's own count from 0). Formulas: common/update/schedule.h.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  std::uint64_t warmup_steps = 0;  // linear from 0 over so many steps
  std::uint64_t every_steps = 0;   // step, exponential: period, > 0
  double factor = 0.1;             // step, exponential: multiplied once per period
  std::uint64_t decay_steps = 0;   // polynomial, cosine: length, > 0
  double power = 1.0;              // polynomial
  double end_factor = 0.0;         // polynomial, cosine: what is left at the end
};

struct ClipConfig {
  ClipKind kind = ClipKind::kNone;
  double value = 0.0;  // > 0 unless none
};

struct NonfiniteConfig {
  NonfiniteAction action = NonfiniteAction::kSkip;
  std::uint32_t limit = 10;  // so many skipped steps in a row fail the job; 0 = never
};

struct TrainSection {
  Mode mode = Mode::kAsync;
  std::uint32_t aggregate = 0;   // sync: gradients that make a step, 0 = all workers
  std::uint32_t staleness = 8;   // ssp: fastest minus slowest clock, at most
  std::uint32_t pipeline = 0;    // 1: the exchange of a step overlaps the next computation
  std::uint32_t batch_size = 0;  // per worker, required
  std::uint64_t epochs = 0;      // 0 = no limit; steps and epochs can't both be 0
  std::uint64_t steps = 0;       // global steps, 0 = no limit
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  bool scale_learning_rate_linear = false;  // times the number of workers in the roster
  ClipConfig clip;
  NonfiniteConfig nonfinite;
};

struct CheckpointSection {
  std::string directory;               // "" = no checkpoints; absolute once read, and seen by the chief and every ps
  std::uint64_t every_steps = 0;       // 0 = not by steps
  Duration every{};                    // 0 = not by time
  std::uint32_t keep = 3;              // newest ones, at least 1
  std::uint64_t keep_every_steps = 0;  // the first at or after each multiple stays for ever; 0 = none
  bool at_end = true;
  Restore restore = Restore::kNewest;           // kNone: the job's folder must be empty
  std::string init_from;                        // parameters to begin with; "" = initial values. Absolute once read
  std::map<std::string, std::string> init_map;  // their names to ours
};

struct EvaluateSection {
  std::string path;   // "" = data.path; absolute once read
  std::string files;  // "" = no evaluation
  std::string labels;
  std::uint64_t every_steps = 0;  // 0 = at the end only
};

struct JobConfig {
  JobSection job;
  ModelSection model;
  DataSection data;
  TrainSection train;
  CheckpointSection checkpoint;
  EvaluateSection evaluate;
};

// Of a job that the chief has resolved: shared, for messages are copied. Never null.
using SharedJobConfig = std::shared_ptr<const JobConfig>;

}  // namespace disttrain
