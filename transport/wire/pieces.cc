#include "transport/wire/pieces.h"

#include <cmath>

namespace disttrain::wire {
namespace {

constexpr std::size_t kMaxNames = 1 << 16;

void check_size(std::size_t size, std::size_t most, const char* what) {
  if (size > most)
    malformed("its " + std::string(what) + " has " + std::to_string(size) + " bytes; at most " + std::to_string(most) +
              " are allowed");
}

capnp::Text::Reader text(const std::string& s) {
  return capnp::Text::Reader(s.c_str(), s.size());
}

}  // namespace

capnp::Text::Reader write_bytes(const std::string& s, std::size_t most, const char* what) {
  check_size(s.size(), most, what);
  return text(s);
}

std::string read_bytes(capnp::Text::Reader t, std::size_t most, const char* what) {
  check_size(t.size(), most, what);
  return std::string(t.begin(), t.size());
}

capnp::Text::Reader write_path(const std::string& s, const char* what) {
  return write_bytes(s, kMaxTextBytes, what);
}

std::string read_path(capnp::Text::Reader t, const char* what) {
  std::string path = read_bytes(t, kMaxTextBytes, what);
  if (path.find('\0') != std::string::npos) malformed("its " + std::string(what) + " has a zero byte");
  return path;
}

capnp::Text::Reader write_name(const std::string& s, const char* what) {
  return write_bytes(s, kMaxTextBytes, what);
}

std::string read_name(capnp::Text::Reader t, const char* what) {
  std::string name = read_bytes(t, kMaxTextBytes, what);
  if (!is_printable(name))
    malformed("its " + std::string(what) + " isn't printable: \"" + printable(cut_text(name, 64)) + "\"");
  return name;
}

std::string read_sentence(capnp::Text::Reader t, const char* what) {
  check_size(t.size(), kMaxTextBytes, what);
  return printable({t.begin(), t.size()});
}

std::string read_lines(capnp::Text::Reader t, std::size_t most, const char* what) {
  check_size(t.size(), most, what);
  return printable({t.begin(), t.size()}, Lines::kMany);
}

Duration read_duration(std::int64_t nanoseconds, const char* what) {
  if (nanoseconds < 0 || nanoseconds > kMaxDuration.count())
    malformed(std::string(what) + " is " + std::to_string(nanoseconds) + " ns; expected 0 to " +
              std::to_string(kMaxDuration.count()));
  return Duration(nanoseconds);
}

double read_finite(double number, const char* what) {
  if (!std::isfinite(number))
    malformed(std::string(what) + " is " + std::to_string(number) + "; expected a finite number");
  return number;
}

std::uint64_t read_number(std::uint64_t number, std::uint64_t most, const char* what) {
  if (number > most)
    malformed(std::string(what) + " is " + std::to_string(number) + "; expected at most " + std::to_string(most));
  return number;
}

schema::ErrorCode write(ErrorCode code) {
  switch (code) {
    case ErrorCode::kFailed:
      return schema::ErrorCode::FAILED;
    case ErrorCode::kUsage:
      return schema::ErrorCode::USAGE;
    case ErrorCode::kData:
      return schema::ErrorCode::DATA;
    case ErrorCode::kNoInput:
      return schema::ErrorCode::NO_INPUT;
    case ErrorCode::kUnavailable:
      return schema::ErrorCode::UNAVAILABLE;
    case ErrorCode::kSoftware:
      return schema::ErrorCode::SOFTWARE;
    case ErrorCode::kTemporary:
      return schema::ErrorCode::TEMPORARY;
    case ErrorCode::kNoPermission:
      return schema::ErrorCode::NO_PERMISSION;
    case ErrorCode::kConfig:
      return schema::ErrorCode::CONFIG;
  }
  return schema::ErrorCode::SOFTWARE;
}

ErrorCode read(schema::ErrorCode code) {
  switch (code) {
    case schema::ErrorCode::FAILED:
      return ErrorCode::kFailed;
    case schema::ErrorCode::USAGE:
      return ErrorCode::kUsage;
    case schema::ErrorCode::DATA:
      return ErrorCode::kData;
    case schema::ErrorCode::NO_INPUT:
      return ErrorCode::kNoInput;
    case schema::ErrorCode::UNAVAILABLE:
      return ErrorCode::kUnavailable;
    case schema::ErrorCode::SOFTWARE:
      return ErrorCode::kSoftware;
    case schema::ErrorCode::TEMPORARY:
      return ErrorCode::kTemporary;
    case schema::ErrorCode::NO_PERMISSION:
      return ErrorCode::kNoPermission;
    case schema::ErrorCode::CONFIG:
      return ErrorCode::kConfig;
  }
  malformed("error code " + std::to_string(static_cast<std::uint16_t>(code)) + " is unknown");
}

std::uint8_t read_level(std::uint8_t level) {
  if (level > 3) malformed("log level " + std::to_string(level) + " is unknown; expected 0 to 3");
  return level;
}

void write(const Member& member, schema::Member::Builder b) {
  write_task(member.task, b);
  b.setIncarnation(member.incarnation.value);
}

Member read(schema::Member::Reader r) {
  return Member{read_task(r), Incarnation(r.getIncarnation())};
}

void write(const Refused& refused, schema::Refused::Builder b) {
  b.setCode(write(refused.code));
  b.setReason(write_lines(refused.reason, kMaxProblemsBytes));
  b.setEnds(refused.ends);
  if (refused.by.incarnation.value != 0) write(refused.by, b.initBy());
}

Refused read(schema::Refused::Reader r) {
  Refused refused{read(r.getCode()), read_lines(r.getReason(), kMaxProblemsBytes, "reason"), r.getEnds(), {}};
  if (r.hasBy()) refused.by = read(r.getBy());
  return refused;
}

void write(const Roster& roster, schema::Roster::Builder b) {
  b.setVersion(roster.version.value);
  write_list(b.initMembers(list_size(roster.members, kMaxMembers, "members")), roster.members);
}

Roster read(schema::Roster::Reader r) {
  return Roster{RosterVersion(r.getVersion()), read_list<Member>(r.getMembers(), kMaxMembers, "members")};
}

void write(const Owner& owner, schema::Owner::Builder b) {
  write(owner.ps, b.initPs());
  b.setAddress(write_name(owner.address, "address"));
}

Owner read(schema::Owner::Reader r) {
  return Owner{read(r.getPs()), read_name(r.getAddress(), "address")};
}

void write(const Interval& interval, schema::Interval::Builder b) {
  b.setBegin(interval.begin);
  b.setEnd(interval.end);
}

Interval read(schema::Interval::Reader r) {
  const Interval interval{r.getBegin(), r.getEnd()};
  if (interval.begin > interval.end)
    malformed("an interval ends at " + std::to_string(interval.end) + " before it begins at " +
              std::to_string(interval.begin));
  return interval;
}

// The product of a shape's dimensions, at most kMaxElements. `what` names the tensor in errors.
static std::uint64_t checked_product(const std::vector<std::uint64_t>& shape, const std::string& what) {
  std::uint64_t product = 1;
  for (std::uint64_t dimension : shape) {
    if (dimension == 0 || dimension > kMaxElements / product) malformed(what + " has an empty or an immense shape");
    product *= dimension;
  }
  return product;
}

// The overloads that follow are static instead of in an unnamed namespace, because the namespace would hide the other
// overloads.
static void write(const VariableSpec& variable, schema::Variable::Builder b) {
  b.setName(write_name(variable.name, "name of a variable"));
  write_numbers(b.initShape(list_size(variable.shape, kMaxDimensions, "dimensions")), variable.shape);
  b.setKind(write_enum<schema::VariableKind>(variable.kind));
  b.setInitializer(write_enum<schema::InitializerKind>(variable.initializer.kind));
  b.setScale(variable.initializer.scale);
  b.setFanIn(variable.fan_in);
  b.setFanOut(variable.fan_out);
  b.setDtype(write_enum<schema::DType>(variable.dtype));
  b.setLow(variable.bounds.low);
  b.setHigh(variable.bounds.high);
}

// Reads a variable, and adds the number of its elements to `elements`.
static VariableSpec read_variable(schema::Variable::Reader r, std::uint64_t& elements) {
  VariableSpec variable;
  variable.name = read_name(r.getName(), "name of a variable");
  variable.shape = read_numbers(r.getShape(), kMaxDimensions, "dimensions");
  variable.kind = read_enum(r.getKind(), VariableKind::kState, "kind of variable");
  variable.initializer.kind = read_enum(r.getInitializer(), InitializerKind::kUniform, "initializer");
  variable.initializer.scale = r.getScale();
  variable.fan_in = r.getFanIn();
  variable.fan_out = r.getFanOut();
  variable.dtype = read_enum(r.getDtype(), DType::kFloat64, "type of a variable");
  variable.bounds = {r.getLow(), r.getHigh()};
  if (!(variable.bounds.low <= variable.bounds.high))  // also if one of them is NaN
    malformed("the variable " + variable.name + " has bounds from " + std::to_string(variable.bounds.low) + " to " +
              std::to_string(variable.bounds.high));
  if (!represents(variable.dtype, variable.bounds.low) || !represents(variable.dtype, variable.bounds.high))
    malformed("the variable " + variable.name + " has bounds that aren't values of its dtype, " +
              to_string(variable.dtype));
  const std::uint64_t product = checked_product(variable.shape, "variable " + variable.name);
  if (product > kMaxElements - elements)
    malformed("the model has more than " + std::to_string(kMaxElements) + " elements");
  elements += product;
  return variable;
}

static void write(const ColumnPart& part, schema::ColumnPart::Builder b) {
  b.setName(write_name(part.name, "name of a column"));
  b.setFirst(part.first);
  write_numbers(b.initShape(list_size(part.shape, kMaxDimensions, "dimensions")), part.shape);
  b.setLimit(part.limit);
}

static ColumnPart read(schema::ColumnPart::Reader r) {
  return {read_name(r.getName(), "name of a column"), r.getFirst(),
          read_numbers(r.getShape(), kMaxDimensions, "dimensions"), r.getLimit()};
}

static void write(const ColumnSpec& column, schema::Column::Builder b) {
  b.setName(write_name(column.name, "name of a column"));
  b.setDtype(write_enum<schema::DType>(column.dtype));
  write_numbers(b.initShape(list_size(column.shape, kMaxDimensions, "dimensions")), column.shape);
  b.setRagged(column.ragged);
  b.setLimit(column.limit);
  b.setPad(column.pad);
  b.setHasIgnored(column.ignored.has_value());
  b.setIgnored(column.ignored.value_or(0));
  auto parts = b.initParts(list_size(column.parts, kMaxColumns, "parts of a column"));
  for (unsigned i = 0; i < parts.size(); ++i) write(column.parts[i], parts[i]);
}

// Reads a column, and adds the number of its values for one record to `values`.
static ColumnSpec read_column(schema::Column::Reader r, std::uint64_t& values) {
  ColumnSpec column;
  column.name = read_name(r.getName(), "name of a column");
  column.dtype = read_enum(r.getDtype(), DType::kBytes, "type of a column");
  column.shape = read_numbers(r.getShape(), kMaxDimensions, "dimensions");
  column.ragged = r.getRagged();
  column.limit = r.getLimit();
  column.pad = r.getPad();
  if (r.getHasIgnored()) column.ignored = r.getIgnored();
  for (auto part : bounded(r.getParts(), kMaxColumns, "parts of a column")) column.parts.push_back(read(part));
  if (column.ragged && column.shape.empty())
    malformed("column " + column.name + " is ragged and has no dimension for the length of a record");
  const std::uint64_t product = checked_product(column.shape, "column " + column.name);
  if (product > kMaxElements - values) malformed("a record has more than " + std::to_string(kMaxElements) + " values");
  values += product;
  return column;
}

static void write(const MetricSpec& metric, schema::ModelMetric::Builder b) {
  b.setName(write_name(metric.name, "name of a metric"));
  b.setKind(write_enum<schema::MetricKind>(metric.kind));
  b.setK(metric.k);
}

static MetricSpec read(schema::ModelMetric::Reader r) {
  return MetricSpec{read_name(r.getName(), "name of a metric"),
                    read_enum(r.getKind(), MetricKind::kMae, "kind of metric"), r.getK()};
}

static void write(const Bucket& bucket, schema::Bucket::Builder b) {
  b.setShard(bucket.shard.value);
  b.setFlatBegin(bucket.flat_begin);
  b.setShardBegin(bucket.shard_begin);
  b.setWords(bucket.words);
}

static Bucket read(schema::Bucket::Reader r) {
  return Bucket{ShardId(r.getShard()), r.getFlatBegin(), r.getShardBegin(), r.getWords()};
}

void write(const ModelSpec& model, schema::Model::Builder b) {
  auto variables = b.initVariables(list_size(model.variables, kMaxVariables, "variables"));
  for (unsigned i = 0; i < variables.size(); ++i) write(model.variables[i], variables[i]);
  auto columns = b.initColumns(list_size(model.columns, kMaxColumns, "columns"));
  for (unsigned i = 0; i < columns.size(); ++i) write(model.columns[i], columns[i]);
  auto metrics = b.initMetrics(list_size(model.metrics, kMaxMetrics, "metrics"));
  for (unsigned i = 0; i < metrics.size(); ++i) write(model.metrics[i], metrics[i]);
  b.setEvaluates(model.programs.evaluates);
  b.setPredicts(model.programs.predicts);
  b.setBringsValues(model.brings_values);
}

ModelSpec read(schema::Model::Reader r) {
  ModelSpec model;
  const auto variables = bounded(r.getVariables(), kMaxVariables, "variables");
  model.variables.reserve(variables.size());
  std::uint64_t elements = 0;
  for (auto variable : variables) model.variables.push_back(read_variable(variable, elements));
  const auto columns = bounded(r.getColumns(), kMaxColumns, "columns");
  model.columns.reserve(columns.size());
  std::uint64_t values = 0;
  for (auto column : columns) model.columns.push_back(read_column(column, values));
  for (auto metric : bounded(r.getMetrics(), kMaxMetrics, "metrics")) model.metrics.push_back(read(metric));
  if (const Status valid = check_metrics(model.metrics); !valid) malformed(valid.error().message);
  model.programs = {r.getEvaluates(), r.getPredicts()};
  model.brings_values = r.getBringsValues();
  return model;
}

void write(const MetricValue& metric, schema::Metric::Builder b) {
  b.setName(write_name(metric.name, "name of a metric"));
  b.setValue(metric.value);
}

std::vector<MetricValue> read_metrics(capnp::List<schema::Metric>::Reader list) {
  std::vector<MetricValue> metrics;
  for (auto metric : bounded(list, kMaxMetrics, "metrics"))
    metrics.push_back({read_name(metric.getName(), "name of a metric"), metric.getValue()});
  if (const Status valid = check_metrics(metrics); !valid) malformed(valid.error().message);
  return metrics;
}

void write(const Layout& layout, schema::Layout::Builder b) {
  write(layout.model, b.initModel());
  b.setShards(layout.shards);
  write_numbers(b.initVariableBegins(list_size(layout.variable_begins, kMaxVariables, "variables")),
                layout.variable_begins);
  auto buckets = b.initBuckets(list_size(layout.buckets, kMaxBuckets, "buckets"));
  for (unsigned i = 0; i < buckets.size(); ++i) write(layout.buckets[i], buckets[i]);
}

Layout read(schema::Layout::Reader r) {
  Layout layout;
  layout.model = read(r.getModel());
  layout.shards = r.getShards();
  layout.variable_begins = read_numbers(r.getVariableBegins(), kMaxVariables, "variables");
  const auto buckets = bounded(r.getBuckets(), kMaxBuckets, "buckets");
  layout.buckets.reserve(buckets.size());
  for (auto bucket : buckets) layout.buckets.push_back(read(bucket));
  if (Status valid = validate(layout); !valid) malformed(valid.error().message);
  return layout;
}

unsigned map_size(const std::map<std::string, std::string>& map, const char* what) {
  if (map.size() > kMaxNames)
    malformed("its map " + std::string(what) + " has " + std::to_string(map.size()) + " names; at most " +
              std::to_string(kMaxNames) + " are allowed");
  return static_cast<unsigned>(map.size());
}

void write_name_map(capnp::List<schema::NamePair>::Builder list, const std::map<std::string, std::string>& map) {
  unsigned i = 0;
  for (const auto& [from, to] : map) {
    list[i].setFrom(write_name(from, "name"));
    list[i++].setTo(write_name(to, "name"));
  }
}

std::map<std::string, std::string> read_name_map(capnp::List<schema::NamePair>::Reader list, const char* what) {
  std::map<std::string, std::string> map;
  for (auto pair : bounded(list, kMaxNames, what))
    map.emplace(read_name(pair.getFrom(), "name"), read_name(pair.getTo(), "name"));
  return map;
}

}  // namespace disttrain::wire
