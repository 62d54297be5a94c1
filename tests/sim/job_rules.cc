#include "tests/sim/job_rules.h"

#include <cstring>
#include <string>
#include <vector>

namespace disttrain::sim {
namespace {

constexpr const char* kInitFile = "/c/init.safetensors";

// Writes a file of initial parameters in the format of safetensors, without our own code for this format.
Status write_init(checkpoint::MemoryFiles& files, const ModelSpec& model) {
  std::string header = "{";
  std::vector<std::byte> values;
  for (std::uint32_t v = 0; v < model.variables.size(); ++v) {
    const VariableSpec& variable = model.variables[v];
    const std::uint64_t elements = element_count(variable);
    const std::size_t begin = values.size();
    with_type(variable.dtype, [&]<typename T>(T) {
      for (std::uint64_t e = 0; e < elements; ++e) {
        const auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(init_value<T>(v, e));
        values.insert(values.end(), bytes.begin(), bytes.end());
      }
    });
    header += std::string(v == 0 ? "" : ",") + "\"" + variable.name + R"(":{"dtype":")" +
              (variable.dtype == DType::kFloat64 ? "F64" : "F32") + R"(","shape":[)" + std::to_string(elements) +
              R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(values.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  std::vector<std::byte> bytes(sizeof(length) + length + values.size());
  std::memcpy(bytes.data(), &length, sizeof(length));
  std::memcpy(bytes.data() + sizeof(length), header.data(), length);
  std::memcpy(bytes.data() + sizeof(length) + length, values.data(), values.size());
  auto file = files.create(kInitFile);
  if (!file) return tl::unexpected(file.error());
  if (Status written = (*file)->append(bytes); !written) return written;
  if (Status synced = (*file)->sync(); !synced) return synced;
  return files.sync_directory("/c");
}

void draw_rule(Random& random, JobConfig& job) {
  OptimizerConfig& optimizer = job.train.optimizer;
  constexpr Rule kRules[] = {Rule::kSgd,  Rule::kMomentum, Rule::kNesterov, Rule::kAdagrad, Rule::kRmsprop,
                             Rule::kAdam, Rule::kAdamw,    Rule::kFtrl,     Rule::kLamb};
  const std::size_t rules = std::size(kRules) - (job.train.mode == Mode::kSync ? 0 : 1);  // lamb needs sync
  optimizer.rule = kRules[random.below(rules)];
  optimizer.l1 = 0.5;
  optimizer.l2 = 0.25;
  // Floats represent these rates exactly. The rates are small, so the parameters stay small.
  optimizer.learning_rate = random.below(2) == 0 ? 0.125 : 0.0078125;
  // With lamb a step may multiply a variable's norm by 1 + the rate. A long job has thousands of steps.
  if (optimizer.rule == Rule::kLamb) optimizer.learning_rate = 0.0009765625;
  optimizer.weight_decay = random.below(3) == 0 ? 0.0625 : 0.0;
  optimizer.momentum = 0.5;
  const std::uint64_t clip = random.below(3);
  if (clip == 0) return;
  job.train.clip.kind = clip == 1 ? ClipKind::kValue : ClipKind::kGlobalNorm;
  job.train.clip.value = static_cast<double>(1 + random.below(30));
}

}  // namespace

// In half of the seeds all variables are float32. In a quarter all are float64: these runs have the same events as with
// float32. In the rest each variable has a type of its own, and the layout differs.
void draw_doubles(std::uint64_t seed, World& world, Jobs& jobs) {
  Random random(seed, stream_of("doubles"));
  const std::uint64_t lot = random.below(4);
  if (lot < 2) return;
  std::uint64_t doubles = 0;
  for (VariableSpec& variable : jobs.model.variables) {
    if (lot == 3 && random.below(2) == 0) continue;
    variable.dtype = DType::kFloat64;
    ++doubles;
    world.whisper(variable.name + " is float64");
  }
  if (doubles == 0) return;
  const bool is_mixed = doubles < jobs.model.variables.size();
  world.count(is_mixed ? Happening::kBothTypes : Happening::kAllFloat64);
}

void draw_rules(std::uint64_t seed, World& world, Jobs& jobs, Storage& disk) {
  Random random(seed, stream_of("rules"));
  const bool has_file = random.below(6) == 0;
  if (has_file && !write_init(disk.truth(), jobs.model)) return;
  const bool has_state = jobs.model.variables.size() > 1 && random.below(2) == 0;
  if (has_state) jobs.model.variables[random.below(jobs.model.variables.size())].kind = VariableKind::kState;
  for (auto& [name, job] : jobs.configs) {
    if (random.below(3) == 0) draw_rule(random, job);
    if (has_file && random.below(3) != 0) job.checkpoint.init_from = kInitFile;
    if (random.below(6) == 0) {
      jobs.nonfinite[name] = 5 + random.below(100);
      job.train.nonfinite.limit = random.below(2) == 0 ? 0 : static_cast<std::uint32_t>(2 + random.below(5));
      if (random.below(4) == 0) job.train.nonfinite.action = NonfiniteAction::kFail;
    }
    if (random.below(4) == 0) job.train.accumulate = static_cast<std::uint32_t>(2 + random.below(3));
    if (random.below(6) == 0) job.evaluate.average = 0.5;
    if (has_state && random.below(2) == 0) job.train.state = StateRule::kLowestRank;
    if (job.evaluate.average > 0.0) world.count(Happening::kAverage);
    if (has_state) world.count(Happening::kState);
    if (job.train.optimizer.rule != Rule::kSgd) world.count(Happening::kSlots);
    if (job.train.clip.kind != ClipKind::kNone) world.count(Happening::kClipping);
    if (!job.checkpoint.init_from.empty()) world.count(Happening::kInitFrom);
  }
}

}  // namespace disttrain::sim
