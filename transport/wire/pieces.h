// Encodes and decodes the values that several messages share, and texts, lists, enums and times. Only codecs may
// include this: those of transport/wire, and the codec of the chief's journal (chiefd/journal/codec.cc). write() writes
// a value to a Cap'n Proto builder. read() reads a value from a Cap'n Proto reader and checks it; if the value is bad,
// read() throws Malformed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/model_metric.h"
#include "common/printable.h"
#include "transport/wire/message_io.h"
#include "transport/wire/protocol.capnp.h"

namespace disttrain::wire {

// --- Texts. Each kind of text has a function to write and one to read it.

// Bytes that the codec doesn't look into, such as a job.toml or JSON.
capnp::Text::Reader write_bytes(const std::string& s, std::size_t most, const char* what);
std::string read_bytes(capnp::Text::Reader t, std::size_t most, const char* what);

// A path: any bytes except zero.
capnp::Text::Reader write_path(const std::string& s, const char* what);
std::string read_path(capnp::Text::Reader t, const char* what);

// The name of something, such as an address, a host, a job or a variable. read_name() refuses a name that isn't
// printable.
capnp::Text::Reader write_name(const std::string& s, const char* what);
std::string read_name(capnp::Text::Reader t, const char* what);

// A sentence. write_sentence() truncates it if it is too long, and read_sentence() makes it printable.
struct CutText {
  std::string text;
  operator capnp::Text::Reader() const { return {text.c_str(), text.size()}; }
};
inline CutText write_sentence(const std::string& s) {
  return {std::string(cut_text(s, kMaxTextBytes))};
}
std::string read_sentence(capnp::Text::Reader t, const char* what);
// Several lines of text.
inline CutText write_lines(const std::string& s, std::size_t most) {
  return {std::string(cut_text(s, most))};
}
std::string read_lines(capnp::Text::Reader t, std::size_t most, const char* what);

// --- Times, numbers, enums.

// 0 to kMaxDuration.
Duration read_duration(std::int64_t nanoseconds, const char* what);

// A time of a monotonic clock, 0 to kMaxDuration since the clock's zero.
inline Instant read_instant(std::int64_t nanoseconds, const char* what) {
  return Instant(read_duration(nanoseconds, what));
}

double read_finite(double number, const char* what);

std::uint64_t read_number(std::uint64_t number, std::uint64_t most, const char* what);

// Reads an enum and checks that it isn't above `last`. `Value` must have the same enumerators as the schema's enum: in
// the same order, from 0 to `last` without gaps.
template <typename Value, typename SchemaEnum>
Value read_enum(SchemaEnum raw, Value last, const char* what) {
  const auto number = static_cast<std::uint16_t>(raw);
  if (number > static_cast<std::uint16_t>(last))
    malformed(std::string(what) + " is " + std::to_string(number) + "; expected 0 to " +
              std::to_string(static_cast<std::uint16_t>(last)));
  return static_cast<Value>(number);
}
template <typename SchemaEnum, typename Value>
SchemaEnum write_enum(Value value) {
  return static_cast<SchemaEnum>(static_cast<std::uint16_t>(value));
}

schema::ErrorCode write(ErrorCode code);
ErrorCode read(schema::ErrorCode code);

// Checks a log level: 0 debug, 1 info, 2 warn, 3 error.
std::uint8_t read_level(std::uint8_t level);

// --- Shared values.

// For messages that begin with job and generation.
template <typename Message, typename Builder>
void write_job(const Message& message, Builder& builder) {
  builder.setJob(message.job.value);
  builder.setGeneration(message.generation.value);
}
template <typename Message, typename Reader>
Message read_job(Reader& reader) {
  Message message;
  message.job = JobId(reader.getJob());
  message.generation = Generation(reader.getGeneration());
  return message;
}

template <typename Builder>
void write_task(TaskId task, Builder& builder) {
  builder.setRole(write_enum<schema::Role>(task.role));
  builder.setIndex(task.index);
}
template <typename Reader>
TaskId read_task(Reader& reader) {
  return TaskId{read_enum(reader.getRole(), Role::kEvaluator, "role"), reader.getIndex()};
}

void write(const Member& member, schema::Member::Builder b);
Member read(schema::Member::Reader r);

// If the reason is too long, write() truncates it.
void write(const Refused& refused, schema::Refused::Builder b);
Refused read(schema::Refused::Reader r);

void write(const Roster& roster, schema::Roster::Builder b);
Roster read(schema::Roster::Reader r);

void write(const Owner& owner, schema::Owner::Builder b);
Owner read(schema::Owner::Reader r);

// read() checks that begin <= end.
void write(const Interval& interval, schema::Interval::Builder b);
Interval read(schema::Interval::Reader r);

// read() checks that each variable and each column has at least one element, that the model and a record have at most
// kMaxElements each, and the metrics (check_metrics in common/model_metric.h).
void write(const ModelSpec& model, schema::Model::Builder b);
ModelSpec read(schema::Model::Reader r);

void write(const MetricValue& metric, schema::Metric::Builder b);
// Checks the metrics (check_metrics).
std::vector<MetricValue> read_metrics(capnp::List<schema::Metric>::Reader list);
// Reads the metrics of an evaluation from a message, or from a record of the journal. If an older writer left them out
// and set the retired field `accuracy`, returns this accuracy as a metric.
template <typename Reader>
std::vector<MetricValue> read_evaluation_metrics(Reader reader);

// The result of read() passes validate().
void write(const Layout& layout, schema::Layout::Builder b);
Layout read(schema::Layout::Reader r);

// A job's settings (job_config_codec.cc). read() checks enums, texts and lists, but not the ranges of numbers.
void write(const JobConfig& config, schema::JobConfig::Builder b);
JobConfig read(schema::JobConfig::Reader r);

// The same for its [model] section (model_section_codec.cc).
void write(const ModelSection& section, schema::ModelSection::Builder b);
ModelSection read(schema::ModelSection::Reader r);

// --- Lists of the values above.

// A map of names. map_size() returns the size of the list of pairs for it; throws Malformed if it is too long.
unsigned map_size(const std::map<std::string, std::string>& map, const char* what);
void write_name_map(capnp::List<schema::NamePair>::Builder list, const std::map<std::string, std::string>& map);
std::map<std::string, std::string> read_name_map(capnp::List<schema::NamePair>::Reader list, const char* what);

// The size of a list that will be written; throws Malformed if the list is too long.
template <typename List>
unsigned list_size(const List& list, std::size_t max, const char* what) {
  if (list.size() > max)
    malformed("its list of " + std::string(what) + " has " + std::to_string(list.size()) + " entries; at most " +
              std::to_string(max) + " are allowed");
  return static_cast<unsigned>(list.size());
}

template <typename ListBuilder, typename List>
void write_list(ListBuilder builder, const List& list) {
  unsigned i = 0;
  for (const auto& item : list) write(item, builder[i++]);
}

template <typename ListReader>
ListReader bounded(ListReader list, std::size_t max, const char* what) {
  if (list.size() > max)
    malformed("its list of " + std::string(what) + " has " + std::to_string(list.size()) + " entries; at most " +
              std::to_string(max) + " are allowed");
  return list;
}

template <typename T, typename ListReader>
std::vector<T> read_list(ListReader list, std::size_t max, const char* what) {
  bounded(list, max, what);
  std::vector<T> values;
  values.reserve(list.size());
  for (auto item : list) values.push_back(read(item));
  return values;
}

template <typename ListBuilder>
void write_numbers(ListBuilder builder, const std::vector<std::uint64_t>& numbers) {
  for (unsigned i = 0; i < numbers.size(); ++i) builder.set(i, numbers[i]);
}

template <typename ListReader>
std::vector<std::uint64_t> read_numbers(ListReader list, std::size_t max, const char* what) {
  bounded(list, max, what);
  std::vector<std::uint64_t> numbers;
  numbers.reserve(list.size());
  for (std::uint64_t number : list) numbers.push_back(number);
  return numbers;
}

template <typename Reader>
std::vector<MetricValue> read_evaluation_metrics(Reader reader) {
  if (reader.getMetrics().size() == 0 && reader.getHasAccuracy()) return {{"accuracy", reader.getAccuracy()}};
  return read_metrics(reader.getMetrics());
}

}  // namespace disttrain::wire
