#include "common/program/sidecar.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "common/bounded_json.h"
#include "common/bounds.h"
#include "common/printable.h"

namespace disttrain::program {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kNewestFormat = 3;
constexpr std::size_t kMaxNameBytes = kMaxTextBytes;

// Reads one sidecar. The first problem ends the reading: each function then returns false or an empty value, and
// problem() has the text.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<Sidecar> read(const std::string& text) {
    const Json json = parse_bounded_json(text);
    if (!json.is_object())
      return bad("it isn't a JSON object, or has more than " + std::to_string(kMaxJsonNesting) + " levels");
    const Json& format = member(json, "format");
    if (!format.is_number_unsigned()) return bad("\"format\" isn't a number");
    if (format.get<std::uint64_t>() > kNewestFormat)
      return fail(ErrorCode::kConfig, path_ + ": the package has format " + format.dump() +
                                          "; this version reads up to " + std::to_string(kNewestFormat) +
                                          ": use a newer disttrain here, or export the "
                                          "model with the Python package of this version");
    has_doubles_ = format.get<std::uint64_t>() >= 2;
    Sidecar sidecar;
    const bool is_read =
        read_header(json, sidecar) && read_variables(member(json, "variables"), sidecar) &&
        read_aliases(member(json, "aliases"), sidecar) && read_columns(member(json, "columns"), sidecar.model) &&
        read_metrics(member(json, "metrics"), sidecar.model) && read_programs(member(json, "programs"), sidecar);
    if (!is_read) return bad(problem_);
    sidecar.model.brings_values = true;
    return sidecar;
  }

 private:
  tl::unexpected<Error> bad(const std::string& what) const {
    return fail(ErrorCode::kData, path_ + ": disttrain.json: " + what + "; export the model again");
  }

  bool wrong(std::string what) {
    problem_ = std::move(what);
    return false;
  }

  static const Json& member(const Json& json, const char* key) {
    static const Json none;
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found == json.end() ? none : *found;
  }

  bool read_text(const Json& json, const char* key, std::string& text) {
    const Json& value = member(json, key);
    if (!value.is_string()) return wrong("\"" + std::string(key) + "\" isn't a text");
    text = value.get<std::string>();
    if (text.size() > kMaxNameBytes)
      return wrong("\"" + std::string(key) + "\" has " + std::to_string(text.size()) + " bytes; expected at most " +
                   std::to_string(kMaxNameBytes));
    if (!is_printable(text)) return wrong("\"" + std::string(key) + "\" has control characters: " + printable(text));
    return true;
  }

  // `elements` gets the product of the shape, which is at least 1 and at most kMaxElements.
  bool read_shape(const Json& json, const std::string& whose, std::vector<std::uint64_t>& shape,
                  std::uint64_t& elements) {
    const Json& value = member(json, "shape");
    if (!value.is_array() || value.size() > kMaxDimensions)
      return wrong("the shape of " + whose + " isn't a list of at most " + std::to_string(kMaxDimensions) + " sizes");
    elements = 1;
    for (const Json& size : value) {
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() == 0)
        return wrong("the shape of " + whose + " has a size that isn't a positive integer");
      shape.push_back(size.get<std::uint64_t>());
      if (shape.back() > kMaxElements / elements)
        return wrong(whose + " has more than " + std::to_string(kMaxElements) + " elements");
      elements *= shape.back();
    }
    return true;
  }

  bool read_header(const Json& json, Sidecar& sidecar) {
    std::string kind;
    if (!read_text(json, "kind", kind) || !read_text(json, "library", sidecar.library) ||
        !read_text(json, "library_version", sidecar.library_version) || !read_text(json, "cpu", sidecar.cpu))
      return false;
    if (kind == "pt2")
      sidecar.kind = Kind::kPt2;
    else if (kind == "torchscript")
      sidecar.kind = Kind::kTorchScript;
    else if (kind == "stablehlo")
      sidecar.kind = Kind::kStableHlo;
    else
      return wrong("\"kind\" is \"" + kind + "\"; expected pt2, torchscript or stablehlo");
    const Json& batch = member(json, "batch");
    if (batch.is_null()) return true;
    if (!batch.is_number_unsigned() || batch.get<std::uint64_t>() == 0)
      return wrong("\"batch\" is neither null nor a positive integer");
    sidecar.batch = batch.get<std::uint64_t>();
    return true;
  }

  bool read_variables(const Json& json, Sidecar& sidecar) {
    if (!json.is_array() || json.size() > kMaxVariables)
      return wrong("\"variables\" isn't a list of at most " + std::to_string(kMaxVariables) + " entries");
    std::uint64_t total = 0;
    for (const Json& entry : json) {
      SidecarVariable variable;
      std::string kind;
      std::uint64_t elements = 0;
      if (!read_text(entry, "name", variable.name) || !read_text(entry, "kind", kind) ||
          !read_text(entry, "dtype", variable.dtype) ||
          !read_shape(entry, "variable " + variable.name, variable.shape, elements))
        return false;
      if (variable.name.empty() || !names_.insert(variable.name).second)
        return wrong("variable \"" + variable.name + "\" has no name, or is listed twice");
      if (!member(entry, "persistent").is_boolean())
        return wrong("\"persistent\" of variable " + variable.name + " is neither true nor false");
      variable.is_persistent = member(entry, "persistent").get<bool>();
      if (kind == "trainable")
        variable.kind = SidecarVariable::Kind::kTrainable;
      else if (kind == "state")
        variable.kind = SidecarVariable::Kind::kState;
      else if (kind == "frozen")
        variable.kind = SidecarVariable::Kind::kFrozen;
      else
        return wrong("variable " + variable.name + " has kind \"" + kind + "\"; expected trainable, state or frozen");
      total += elements;
      if (total > kMaxElements)
        return wrong("the variables have more than " + std::to_string(kMaxElements) + " elements");
      if (variable.kind != SidecarVariable::Kind::kFrozen)
        sidecar.model.variables.push_back(
            {.name = variable.name,
             .shape = variable.shape,
             .kind = kind == "state" ? VariableKind::kState : VariableKind::kTrainable,
             .initializer = {InitializerKind::kZeros, 0.0},
             .dtype = has_doubles_ && variable.dtype == "float64" ? DType::kFloat64 : DType::kFloat32});
      sidecar.variables.push_back(std::move(variable));
    }
    for (const VariableSpec& variable : sidecar.model.variables)
      if (variable.kind == VariableKind::kTrainable) return true;
    return wrong("no variable is trainable");
  }

  bool read_aliases(const Json& json, Sidecar& sidecar) {
    if (!json.is_object() || json.size() > kMaxVariables)
      return wrong("\"aliases\" isn't an object of at most " + std::to_string(kMaxVariables) + " entries");
    for (const auto& [alias, name] : json.items()) {
      if (!name.is_string() || !names_.contains(name.get<std::string>()) || names_.contains(alias) || alias.empty() ||
          alias.size() > kMaxNameBytes || !is_printable(alias))
        return wrong("alias \"" + printable(alias) + "\" has a bad name, or names no variable");
      sidecar.aliases.emplace(alias, name.get<std::string>());
    }
    return true;
  }

  bool read_columns(const Json& json, ModelSpec& model) {
    if (!json.is_array() || json.empty() || json.size() > kMaxColumns)
      return wrong("\"columns\" isn't a list of 1 to " + std::to_string(kMaxColumns) + " entries");
    for (const Json& entry : json) {
      ColumnSpec column;
      std::string dtype;
      std::uint64_t elements = 0;
      if (!read_text(entry, "name", column.name) || !read_text(entry, "dtype", dtype) ||
          !read_shape(entry, "column " + column.name, column.shape, elements))
        return false;
      if (column.name.empty() || !columns_.emplace(column.name, static_cast<std::uint32_t>(columns_.size())).second)
        return wrong("column \"" + column.name + "\" has no name, or is listed twice");
      const std::optional<DType> type = dtype_of(dtype);
      if (!type || *type == DType::kBytes)
        return wrong("column " + column.name + " has dtype \"" + dtype + "\", which programs don't take");
      column.dtype = *type;
      const Json& limit = member(entry, "limit");
      if (!limit.is_number_unsigned() ||
          limit.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return wrong("the limit of column " + column.name + " isn't an integer of 0 or more");
      column.limit = limit.get<std::uint64_t>();
      const Json& ignored = member(entry, "ignored");  // older packages have none
      if (!ignored.is_null() && !ignored.is_number_integer())
        return wrong("the ignored value of column " + column.name + " isn't a whole number");
      const bool is_float = column.dtype == DType::kFloat32 || column.dtype == DType::kFloat64;
      if (!ignored.is_null() && (is_float || column.limit == 0))
        return wrong("column " + column.name + " has an ignored value, but isn't one of integers with a limit");
      if (!ignored.is_null()) column.ignored = ignored.get<std::int64_t>();
      model.columns.push_back(std::move(column));
    }
    return true;
  }

  bool read_metrics(const Json& json, ModelSpec& model) {
    if (!json.is_array() || json.size() > kMaxMetrics)
      return wrong("\"metrics\" isn't a list of at most " + std::to_string(kMaxMetrics) + " entries");
    std::set<std::string> names;
    for (const Json& entry : json) {
      std::string name;
      std::string kind;
      if (!read_text(entry, "name", name) || !read_text(entry, "kind", kind)) return false;
      if (!is_metric_name(name) || !names.insert(name).second)
        return wrong("metric \"" + name + "\" has a bad name, or is listed twice");
      Result<MetricSpec> metric = parse_metric_kind(kind);
      if (!metric) return wrong("metric " + name + " has the unknown kind \"" + kind + "\"");
      metric->name = name;
      model.metrics.push_back(std::move(*metric));
    }
    return true;
  }

  bool read_programs(const Json& json, Sidecar& sidecar) {
    if (!json.is_object() || !json.contains("step")) return wrong("\"programs\" has no program \"step\"");
    for (const auto& [name, entry] : json.items()) {
      if (name != "step" && name != "evaluate" && name != "predict")
        return wrong("unknown program \"" + printable(name) + "\"; expected step, evaluate and predict");
      const Json& columns = member(entry, "columns");
      if (!columns.is_array() || columns.size() > kMaxColumns)
        return wrong("the columns of program " + name + " aren't a list");
      SidecarProgram program;
      for (const Json& column : columns) {
        const auto found = column.is_string() ? columns_.find(column.get<std::string>()) : columns_.end();
        if (found == columns_.end()) return wrong("program " + name + " takes a column that isn't listed");
        program.columns.push_back(found->second);
      }
      if (!read_stages(entry, name, sidecar, program)) return false;
      sidecar.programs.emplace(name, std::move(program));
    }
    sidecar.model.programs.evaluates = sidecar.programs.contains("evaluate");
    sidecar.model.programs.predicts = sidecar.programs.contains("predict");
    return true;
  }

  bool read_stages(const Json& entry, const std::string& name, const Sidecar& sidecar, SidecarProgram& program) {
    const bool is_stablehlo = sidecar.kind == Kind::kStableHlo;
    const std::size_t seeds = is_stablehlo && name == "step" ? 1 : 0;
    const auto inputs = static_cast<std::uint32_t>(sidecar.variables.size() + program.columns.size() + seeds);
    const std::size_t results = name == "step" ? 2 + sidecar.model.variables.size() : name == "evaluate" ? 2 : 1;
    const auto passed = static_cast<std::uint32_t>(inputs + results);  // the number of the first one
    const Json& stages = member(entry, "stages");
    if (stages.is_null()) {
      SidecarStage& whole = program.stages.emplace_back();
      for (std::uint32_t value = 0; value < passed; ++value)
        (value < inputs ? whole.takes : whole.gives).push_back(value);
      program.values = passed;
      return true;
    }
    if (name != "step" || !stages.is_array() || stages.size() < 2 || stages.size() > kMaxStages)
      return wrong("the stages of program " + name + " aren't a list of 2 to " + std::to_string(kMaxStages) +
                   " entries, or it isn't the step");
    std::set<std::uint32_t> given;
    for (const Json& each : stages) {
      SidecarStage& stage = program.stages.emplace_back();
      if (!read_values(member(each, "takes"), passed + kMaxPassed, stage.takes) ||
          !read_values(member(each, "gives"), passed + kMaxPassed, stage.gives))
        return false;
      for (const std::uint32_t value : stage.takes)
        if (value >= inputs && !given.contains(value))
          return wrong("a stage takes value " + std::to_string(value) + ", which no stage before it gives");
      for (const std::uint32_t value : stage.gives)
        if (value < inputs || !given.insert(value).second)
          return wrong("a stage gives value " + std::to_string(value) + ", which is an input, or given twice");
    }
    // Without metrics, a StableHLO program has no accumulators, but their number stays free.
    if (is_stablehlo && sidecar.model.metrics.empty() && !given.insert(inputs + 1).second)
      return wrong("a stage gives accumulators, but the model has no metrics");
    if (static_cast<std::size_t>(std::distance(given.begin(), given.lower_bound(passed))) != results)
      return wrong("the stages don't give all " + std::to_string(results) + " results of the step");
    program.values = std::max(*given.rbegin() + 1, passed);
    return true;
  }

  bool read_values(const Json& json, std::uint32_t end, std::vector<std::uint32_t>& values) {
    if (!json.is_array() || json.size() > end) return wrong("a stage takes or gives no list of values");
    for (const Json& value : json) {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= end)
        return wrong("a stage takes or gives a value that isn't an integer of 0 to " + std::to_string(end - 1));
      values.push_back(value.get<std::uint32_t>());
    }
    return true;
  }

  const std::string& path_;
  std::string problem_;
  bool has_doubles_ = false;                      // programs take float64 variables as they are
  std::set<std::string> names_;                   // of variables
  std::map<std::string, std::uint32_t> columns_;  // name -> index
};

}  // namespace

Result<Sidecar> parse_sidecar(const std::string& text, const std::string& path) {
  return Reader(path).read(text);
}

}  // namespace disttrain::program
