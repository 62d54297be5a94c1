#include "engine/trainer/trainer_protocol.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "common/bounded_json.h"
#include "common/bounds.h"
#include "common/printable.h"

namespace disttrain::workerd {

using nlohmann::json;

namespace {

// A sentence's part: what is wrong with a message. Caught in parse_trainer_message() alone.
struct Wrong {
  std::string what;
};

const json& member(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw Wrong{std::string("without the key \"") + key + "\""};
  return *found;
}

std::uint64_t count_of(const json& value, const char* what, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    throw Wrong{std::string("with ") + what + " = " + std::string(cut_text(value.dump(), 100)) +
                ", expected a whole number of at most " + std::to_string(most)};
  return value.get<std::uint64_t>();
}

const std::string& text_of(const json& value, const char* what, std::size_t most) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr || text->size() > most)
    throw Wrong{std::string("with ") + what + " that isn't a text of at most " + std::to_string(most) + " bytes"};
  return *text;
}

const json& list_of(const json& value, const char* what, std::size_t most) {
  if (!value.is_array()) throw Wrong{std::string("with \"") + what + "\" that isn't a list"};
  if (value.size() > most)
    throw Wrong{"with " + std::to_string(value.size()) + " " + what + ", expected at most " + std::to_string(most)};
  return value;
}

bool flag_of(const json& value, const char* what) {
  if (!value.is_boolean()) throw Wrong{std::string("with ") + what + " that is neither true nor false"};
  return value.get<bool>();
}

// JSON has no infinite numbers: they come as texts.
double real_of(const json& value, const char* what) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  throw Wrong{std::string("with ") + what + " that isn't a number"};
}

Bounds bounds_of(const json& low, const json& high, const VariableSpec& variable) {
  const Bounds bounds{real_of(low, "a variable's smallest value"), real_of(high, "a variable's largest value")};
  if (!(bounds.low <= bounds.high) || !represents(variable.dtype, bounds.low) ||
      !represents(variable.dtype, bounds.high) || variable.kind != VariableKind::kTrainable)
    throw Wrong{"with bounds of the variable \"" + variable.name +
                "\"; expected them for a trainable variable, in ascending order, and as values of its dtype"};
  return bounds;
}

VariableSpec variable_of(const json& entry) {
  if (!entry.is_array() || (entry.size() != 3 && entry.size() != 4 && entry.size() != 6))
    throw Wrong{"with a variable that isn't [name, shape, kind, dtype], and maybe its two bounds"};
  VariableSpec variable;
  variable.name = text_of(entry[0], "a variable's name", kMaxVariableNameBytes);
  if (variable.name.empty() || !is_printable(variable.name))
    throw Wrong{"with a variable whose name \"" + printable(variable.name) + "\" is empty or can't be printed"};
  std::uint64_t elements = 1;
  for (const json& dimension : list_of(entry[1], "dimensions of a variable", kMaxDimensions)) {
    const std::uint64_t size =
        count_of(dimension, ("a dimension of the variable \"" + variable.name + "\"").c_str(), kMaxElements);
    if (size == 0)
      throw Wrong{"with the variable \"" + variable.name +
                  "\", which has no elements (a dimension is 0); expected a model without such variables"};
    if (elements > kMaxElements / size)
      throw Wrong{"with the variable \"" + variable.name + "\", which has more than " + std::to_string(kMaxElements) +
                  " elements; expected a smaller one"};
    elements *= size;
    variable.shape.push_back(size);
  }
  const std::string& kind = text_of(entry[2], "a variable's kind", 20);
  if (kind != "trainable" && kind != "state")
    throw Wrong{"with the variable \"" + variable.name + "\" of kind \"" + printable(kind) +
                "\", expected \"trainable\" or \"state\""};
  if (kind == "state") variable.kind = VariableKind::kState;
  const std::string dtype = entry.size() >= 4 ? text_of(entry[3], "a variable's dtype", 20) : "float32";
  if (dtype != "float32" && dtype != "float64")
    throw Wrong{"with the variable \"" + variable.name + "\" of dtype \"" + printable(dtype) +
                "\", expected \"float32\" or \"float64\""};
  if (dtype == "float64") variable.dtype = DType::kFloat64;
  if (entry.size() == 6) variable.bounds = bounds_of(entry[4], entry[5], variable);
  variable.initializer = Initializer{InitializerKind::kZeros, 0.0};
  return variable;
}

TrainerModel model_of(const json& message) {
  TrainerModel model;
  std::set<std::string> names;
  std::uint64_t elements = 0;
  bool trains = false;
  for (const json& entry : list_of(member(message, "variables"), "variables", kMaxVariables)) {
    VariableSpec variable = variable_of(entry);
    if (!names.insert(variable.name).second) throw Wrong{"with two variables named \"" + variable.name + "\""};
    elements += element_count(variable);
    if (elements > kMaxElements) throw Wrong{"with more than " + std::to_string(kMaxElements) + " parameters"};
    trains = trains || variable.kind == VariableKind::kTrainable;
    model.variables.push_back(std::move(variable));
  }
  if (!trains) throw Wrong{"without a trainable variable"};
  names.clear();
  for (const json& name : list_of(member(message, "metrics"), "metrics", kMaxMetrics)) {
    MetricSpec metric{text_of(name, "a metric's name", kMaxMetricNameBytes), MetricKind::kMean, 1};
    if (const std::string problem = problem_with_metric_name(metric.name); !problem.empty())
      throw Wrong{"with a wrong name: " + problem};
    if (!names.insert(metric.name).second)
      throw Wrong{"with two metrics named \"" + metric.name + "\"; expected different names"};
    model.metrics.push_back(std::move(metric));
  }
  model.records = count_of(member(message, "records"), "records", kMaxRecords);
  model.evaluation_records = count_of(member(message, "evaluation_records"), "evaluation_records", kMaxRecords);
  model.programs.evaluates = flag_of(member(message, "evaluates"), "evaluates");
  model.programs.predicts = flag_of(member(message, "predicts"), "predicts");
  model.clears_ahead = flag_of(member(message, "clears_ahead"), "clears_ahead");
  return model;
}

TrainerHello hello_of(const json& message) {
  const TrainerHello hello{printable(text_of(member(message, "sdk"), "sdk", 100))};
  const std::uint64_t protocol = count_of(member(message, "protocol"), "protocol", 1'000'000);
  if (protocol != kTrainerProtocol)
    throw Wrong{"of protocol " + std::to_string(protocol) + " (package disttrain " + hello.sdk +
                "), but this worker speaks protocol " + std::to_string(kTrainerProtocol) +
                ": install the package disttrain of this workerd's version for the trainer's Python"};
  return hello;
}

TrainerFinished finished_of(const json& message, const RawMessage& raw) {
  TrainerFinished finished;
  finished.number = count_of(member(message, "number"), "number", kMaxRecords);
  finished.loss_sum = real_of(member(message, "loss_sum"), "loss_sum");
  for (const json& number : list_of(member(message, "metrics"), "metrics", 2 * kMaxMetrics))
    finished.metrics.push_back(real_of(number, "a metric"));
  if (raw.payload.size() % sizeof(float) != 0) throw Wrong{"with outputs that aren't float32 numbers"};
  finished.outputs.resize(raw.payload.size() / sizeof(float));
  if (!raw.payload.empty()) std::memcpy(finished.outputs.data(), raw.payload.data(), raw.payload.size());
  return finished;
}

TrainerMessage message_of(const std::string& type, const json& message, const RawMessage& raw) {
  if (type == "hello") return hello_of(message);
  if (type == "describe") return model_of(message);
  if (type == "values") return TrainerValues();
  if (type == "ready")
    return TrainerReady{count_of(member(message, "number"), "number", kMaxRecords),
                        count_of(member(message, "end"), "end", kMaxElements)};
  if (type == "finished") return finished_of(message, raw);
  if (type == "checkpoint") return TrainerCheckpoint();
  if (type == "failed")
    return TrainerFailed{printable(cut_text(text_of(member(message, "message"), "message", 64 * 1024), 1000))};
  throw Wrong{"of the unknown type \"" + printable(cut_text(type, 100)) + "\""};
}

json place(const Arena::Place& at) {
  return json::array({at.block, at.offset});
}

const char* name_of(Program program) {
  switch (program) {
    case Program::kEvaluate:
      return "evaluate";
    case Program::kPredict:
      return "predict";
    case Program::kStep:
      break;
  }
  return "step";
}

}  // namespace

Result<TrainerMessage> parse_trainer_message(const RawMessage& raw) {
  const json message = parse_bounded_json(raw.text);
  const auto type = message.is_object() ? message.find("type") : message.end();
  if (!message.is_object() || type == message.end() || !type->is_string())
    return fail(ErrorCode::kConfig, "sent bytes on its socket that aren't a message of the package disttrain");
  const std::string& name = type->get_ref<const std::string&>();
  try {
    return message_of(name, message, raw);
  } catch (const Wrong& wrong) {
    return fail(ErrorCode::kConfig, "sent the message \"" + printable(cut_text(name, 100)) + "\" " + wrong.what);
  }
}

json welcome_message(const std::vector<ColumnSpec>& columns, std::uint64_t batch_size, std::uint64_t seed) {
  json message = {{"type", "welcome"}, {"protocol", kTrainerProtocol}, {"batch_size", batch_size}, {"seed", seed}};
  json& list = message["columns"] = json::array();
  for (const ColumnSpec& column : columns) {
    json parts = json::array();
    for (const ColumnPart& part : column.parts) parts.push_back({part.name, part.first, part.shape});
    list.push_back({{"name", column.name},
                    {"dtype", to_string(column.dtype)},
                    {"shape", column.shape},
                    {"ragged", column.ragged},
                    {"pad", column.pad},
                    {"parts", std::move(parts)}});
  }
  return message;
}

json open_message(const Layout& layout) {
  return {{"type", "open"}, {"begins", layout.variable_begins}, {"words", word_count(layout.model)}};
}

json values_message(const Arena::Place& into) {
  return {{"type", "values"}, {"into", place(into)}};
}

json start_message(const TrainerStart& start) {
  json message = {{"type", "start"},
                  {"number", start.number},
                  {"program", name_of(start.program)},
                  {"step", start.seed.step},
                  {"seed", start.seed.job_seed},
                  {"rank", start.seed.rank},
                  {"size", start.workers},
                  {"examples", start.examples},
                  {"parameters", place(start.parameters)},
                  {"gradients", place(start.gradients)}};
  if (start.spare_gradients) message["spare"] = place(*start.spare_gradients);
  json& columns = message["columns"] = json::array();
  for (const SharedColumn& column : start.columns) {
    json part = {column.values.block, column.values.offset, column.bytes};
    if (column.row_end_bytes > 0) {
      part.push_back(column.row_ends.block);
      part.push_back(column.row_ends.offset);
      part.push_back(column.row_end_bytes);
    }
    columns.push_back(std::move(part));
  }
  if (start.next) message["next"] = {start.next->values.block, start.next->values.offset, start.next->bytes};
  return message;
}

json end_message() {
  return {{"type", "end"}};
}

}  // namespace disttrain::workerd
