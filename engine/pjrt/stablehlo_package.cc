#include "engine/pjrt/stablehlo_package.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>

#include "common/checkpoint/disk_files.h"
#include "common/program/package.h"

namespace disttrain::workerd::pjrt {
namespace {

constexpr std::string_view kFolder = "stablehlo/";
constexpr std::string_view kSuffix = ".mlirbc";
constexpr std::size_t kMaxPrograms = 10'000;
constexpr std::uint64_t kMaxBatch = 1ULL << 31;
constexpr std::uint64_t kMaxCodeBytes = 1ULL << 31;  // of one program

struct Kind {
  std::string_view name;
  Program program;
};
constexpr Kind kKinds[] = {{"step", Program::kStep}, {"evaluate", Program::kEvaluate}, {"predict", Program::kPredict}};

std::string member_of(const StableHloProgram& program) {
  std::string name(kFolder);
  for (const Kind& kind : kKinds)
    if (kind.program == program.program) name += kind.name;
  if (program.stage) name += "_" + std::to_string(*program.stage);
  return name + "-" + std::to_string(program.batch) + std::string(kSuffix);
}

// The program whose member has this name. None if the member is no program.
std::optional<StableHloProgram> program_of(std::string_view member) {
  if (!member.starts_with(kFolder) || !member.ends_with(kSuffix)) return std::nullopt;
  const char* const end = member.data() + member.size() - kSuffix.size();
  for (const Kind& kind : kKinds) {
    const std::string start = std::string(kFolder) + std::string(kind.name);
    if (!member.starts_with(start)) continue;
    StableHloProgram program{kind.program, 0, std::nullopt};
    const char* at = member.data() + start.size();
    if (*at == '_') {
      std::uint32_t stage = 0;
      at = std::from_chars(at + 1, end, stage).ptr;
      program.stage = stage;
    }
    if (at == end || *at != '-') continue;
    std::from_chars(at + 1, end, program.batch);
    // The comparison refuses what isn't a number, and another spelling of one, such as 064.
    if (program.batch >= 1 && program.batch <= kMaxBatch && member_of(program) == member) return program;
  }
  return std::nullopt;
}

class PackageSource final : public StableHloSource {
 public:
  static Result<std::unique_ptr<PackageSource>> open(const std::string& path) {
    std::unique_ptr<PackageSource> source(new PackageSource);
    Result<program::Package> package = program::Package::open(source->files_, path);
    if (!package) return tl::unexpected(package.error());
    source->package_.emplace(std::move(*package));
    return source;
  }

  program::Package& package() { return *package_; }

  Result<std::string> code(const StableHloProgram& program) override {
    const program::Member* member = package_->file().find(member_of(program));
    if (member == nullptr)
      return fail(ErrorCode::kData,
                  package_->path() + " has no member " + member_of(program) + "; export the model again");
    return package_->file().read(*member, kMaxCodeBytes);
  }

  Result<std::vector<float>> initial_values(const Layout& layout) override { return package_->initial_values(layout); }

 private:
  PackageSource() = default;

  checkpoint::DiskFiles files_;
  std::optional<program::Package> package_;  // set by open()
};

// Whether each batch size of the step has a program for each of so many stages, or one program if there is one stage.
// There are no two equal ones.
bool has_all_stages(const std::vector<StableHloProgram>& programs, std::size_t stages) {
  std::map<std::uint64_t, std::size_t> counts;  // batch size -> its programs
  for (const StableHloProgram& each : programs) {
    if (each.program != Program::kStep) continue;
    if (each.stage ? stages == 1 || *each.stage >= stages : stages > 1) return false;
    ++counts[each.batch];
  }
  return std::all_of(counts.begin(), counts.end(), [stages](const auto& each) { return each.second == stages; });
}

tl::unexpected<Error> misfit(const std::string& path, const std::string& what) {
  return fail(ErrorCode::kData, path + ": " + what + "; export the model again with disttrain.export_jax");
}

Status read_frozen(program::Package& package, StableHloModel& model) {
  const std::vector<program::SidecarVariable>& variables = package.sidecar().variables;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const program::SidecarVariable& variable = variables[v];
    if (variable.kind != program::SidecarVariable::Kind::kFrozen) {
      if (!model.frozen.empty()) return misfit(package.path(), "frozen variables must come after all others");
      continue;
    }
    const std::optional<DType> dtype = dtype_of(variable.dtype);
    if (!dtype || *dtype == DType::kBytes)
      return misfit(package.path(), "frozen variable " + variable.name + " has dtype \"" + variable.dtype +
                                        "\", which a program can't take");
    Result<std::vector<std::byte>> values = package.read(v);
    if (!values) return tl::unexpected(values.error());
    const std::uint64_t elements =
        std::accumulate(variable.shape.begin(), variable.shape.end(), std::uint64_t{1}, std::multiplies<>());
    if (values->size() != elements * size_of(*dtype))
      return misfit(package.path(), "frozen variable " + variable.name + " has " + std::to_string(values->size()) +
                                        " bytes; expected " + std::to_string(elements * size_of(*dtype)));
    model.frozen.push_back({variable.name, *dtype, variable.shape, std::move(*values)});
  }
  return {};
}

Status read_programs(program::Package& package, StableHloModel& model) {
  for (const program::Member& member : package.file().members()) {
    const std::optional<StableHloProgram> program = program_of(member.name);
    if (!program) continue;
    if (model.programs.size() == kMaxPrograms)
      return misfit(package.path(), "more than " + std::to_string(kMaxPrograms) + " programs");
    if (std::find(model.programs.begin(), model.programs.end(), *program) != model.programs.end())
      return misfit(package.path(), "two members are named " + member.name);
    model.programs.push_back(*program);
  }
  std::vector<std::uint32_t> all_columns(model.spec.columns.size());
  std::iota(all_columns.begin(), all_columns.end(), 0U);
  for (const Kind& kind : kKinds) {
    const auto described = package.sidecar().programs.find(std::string(kind.name));
    if (described == package.sidecar().programs.end()) continue;
    if (described->second.columns != all_columns)
      return misfit(package.path(), "program " + std::string(kind.name) + " doesn't take all columns");
    if (std::none_of(model.programs.begin(), model.programs.end(),
                     [&kind](const StableHloProgram& program) { return program.program == kind.program; }))
      return misfit(package.path(), "no member has the program " + std::string(kind.name));
    if (kind.program != Program::kStep) continue;
    const std::vector<program::SidecarStage>& stages = described->second.stages;
    if (!has_all_stages(model.programs, stages.size()))
      return misfit(package.path(),
                    "the step's members aren't those of its " + std::to_string(stages.size()) + " stages");
    if (stages.size() > 1)
      for (const program::SidecarStage& stage : stages) model.stages.push_back({stage.takes, stage.gives});
  }
  if (std::any_of(model.programs.begin(), model.programs.end(), [](const StableHloProgram& each) {
        return each.program != Program::kStep && each.stage.has_value();
      }))
    return misfit(package.path(), "a program that isn't the step has stages");
  return {};
}

}  // namespace

Result<StableHloModel> read_stablehlo_package(const std::string& path) {
  Result<std::unique_ptr<PackageSource>> source = PackageSource::open(path);
  if (!source) return tl::unexpected(source.error());
  program::Package& package = (*source)->package();
  const program::Sidecar& sidecar = package.sidecar();
  if (sidecar.kind != program::Kind::kStableHlo)
    return fail(ErrorCode::kConfig, path + " was exported from " + sidecar.library +
                                        ", but a PJRT device computes models of JAX: set device = \"cpu\" in " +
                                        "cluster.toml, or export the model with disttrain.export_jax");
  StableHloModel model;
  model.spec = sidecar.model;
  if (Status status = read_frozen(package, model); !status) return tl::unexpected(status.error());
  if (Status status = read_programs(package, model); !status) return tl::unexpected(status.error());
  model.source = std::move(*source);
  return model;
}

}  // namespace disttrain::workerd::pjrt
