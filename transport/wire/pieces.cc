#include "transport/wire/pieces.h"

namespace disttrain::wire {

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

void write(const Roster& roster, schema::Roster::Builder b) {
  b.setVersion(roster.version.value);
  write_list(b.initMembers(list_size(roster.members, kMaxMembers, "members")), roster.members);
}

Roster read(schema::Roster::Reader r) {
  return Roster{RosterVersion(r.getVersion()), read_list<Member>(r.getMembers(), kMaxMembers, "members")};
}

void write(const Owner& owner, schema::Owner::Builder b) {
  write(owner.ps, b.initPs());
  b.setAddress(text(owner.address));
}

Owner read(schema::Owner::Reader r) {
  return Owner{read(r.getPs()), string(r.getAddress())};
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

// Not in an unnamed namespace: there they would hide the other overloads.
static void write(const VariableSpec& variable, schema::Variable::Builder b) {
  b.setName(text(variable.name));
  write_numbers(b.initShape(list_size(variable.shape, kMaxDimensions, "dimensions")), variable.shape);
  b.setKind(write_enum<schema::VariableKind>(variable.kind));
  b.setInitializer(write_enum<schema::InitializerKind>(variable.initializer.kind));
  b.setScale(variable.initializer.scale);
  b.setFanIn(variable.fan_in);
  b.setFanOut(variable.fan_out);
}

// Adds its elements to `elements`.
static VariableSpec read_variable(schema::Variable::Reader r, std::uint64_t& elements) {
  VariableSpec variable;
  variable.name = string(r.getName());
  variable.shape = read_numbers(r.getShape(), kMaxDimensions, "dimensions");
  variable.kind = read_enum(r.getKind(), VariableKind::kState, "kind of variable");
  variable.initializer.kind = read_enum(r.getInitializer(), InitializerKind::kHe, "initializer");
  variable.initializer.scale = r.getScale();
  variable.fan_in = r.getFanIn();
  variable.fan_out = r.getFanOut();
  std::uint64_t product = 1;
  for (std::uint64_t dimension : variable.shape) {
    if (dimension == 0 || dimension > kMaxElements / product)
      malformed("variable " + variable.name + " has an empty or an immense shape");
    product *= dimension;
  }
  if (product > kMaxElements - elements) malformed("the model has more than 2^42 elements");
  elements += product;
  return variable;
}

static void write(const Bucket& bucket, schema::Bucket::Builder b) {
  b.setShard(bucket.shard.value);
  b.setFlatBegin(bucket.flat_begin);
  b.setShardBegin(bucket.shard_begin);
  b.setElements(bucket.elements);
}

static Bucket read(schema::Bucket::Reader r) {
  return Bucket{ShardId(r.getShard()), r.getFlatBegin(), r.getShardBegin(), r.getElements()};
}

void write(const ModelSpec& model, schema::Model::Builder b) {
  auto variables = b.initVariables(list_size(model.variables, kMaxVariables, "variables"));
  for (unsigned i = 0; i < variables.size(); ++i) write(model.variables[i], variables[i]);
  b.setInputElements(model.input_elements);
  b.setClasses(model.classes);
}

ModelSpec read(schema::Model::Reader r) {
  ModelSpec model;
  const auto variables = bounded(r.getVariables(), kMaxVariables, "variables");
  model.variables.reserve(variables.size());
  std::uint64_t elements = 0;
  for (auto variable : variables) model.variables.push_back(read_variable(variable, elements));
  model.input_elements = r.getInputElements();
  model.classes = r.getClasses();
  return model;
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

}  // namespace disttrain::wire
