#include "common/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "common/bounded_json.h"
#include "common/bounds.h"
#include "common/checkpoint/checksum.h"

namespace disttrain::checkpoint {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Writes 64-bit numbers as hexadecimal text, because many JSON parsers read numbers as floating point and would lose
// digits.
std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t from_hex(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
    throw std::invalid_argument("\"" + text + "\" isn't 16 hexadecimal digits");
  return value;
}

std::string hex_of(const std::vector<std::uint64_t>& values) {
  std::string text;
  for (const std::uint64_t value : values) text += hex(value);
  return text;
}

std::vector<std::uint64_t> from_hex_list(const std::string& text) {
  if (text.size() % 16 != 0)
    throw std::invalid_argument("the length of chunks_xxh3 isn't a multiple of 16 hexadecimal digits");
  std::vector<std::uint64_t> values;
  for (std::size_t at = 0; at < text.size(); at += 16) values.push_back(from_hex(text.substr(at, 16)));
  return values;
}

OrderedJson to_json(const std::vector<Interval>& intervals) {
  OrderedJson json = OrderedJson::array();
  for (const Interval& interval : intervals) json.push_back({interval.begin, interval.end});
  return json;
}

OrderedJson to_json(const VariableEntry& variable) {
  OrderedJson slices = OrderedJson::array();
  for (const SliceEntry& slice : variable.slices)
    slices.push_back({slice.begin, slice.words, slice.shard, slice.offset});
  return {{"name", variable.name},
          {"shape", variable.shape},
          {"kind", variable.kind == VariableKind::kState ? "state" : "trainable"},
          {"dtype", disttrain::to_string(variable.dtype)},
          {"slices", slices}};
}

OrderedJson to_json(const ShardEntry& shard) {
  OrderedJson workers = OrderedJson::array();
  for (const WorkerEntry& worker : shard.workers)
    workers.push_back({{"worker", worker.worker.task.index},
                       {"incarnation", hex(worker.worker.incarnation.value)},
                       {"last_sequence", worker.last.value},
                       {"clock", worker.clock.value},
                       {"batches", worker.batches.value}});
  return {{"version", shard.version.value}, {"elements", shard.words}, {"applied", workers}};
}

OrderedJson to_json(const FileEntry& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"data_begin", file.data_begin},
          {"xxh3", hex(file.checksum)},
          {"chunks_xxh3", hex_of(file.chunks)}};
}

std::uint64_t number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned()) throw std::invalid_argument(std::string(key) + " isn't a whole number");
  return value.get<std::uint64_t>();
}

std::uint32_t small_number(const Json& json, const char* key) {
  const std::uint64_t value = number(json, key);
  if (value > UINT32_MAX) throw std::invalid_argument(std::string(key) + " is too large");
  return static_cast<std::uint32_t>(value);
}

std::string text_of(const Json& json, const char* key) {
  return json.at(key).get<std::string>();
}

std::vector<Interval> intervals_of(const Json& json) {
  std::vector<Interval> intervals;
  for (const Json& pair : json) {
    const Interval interval{pair.at(0).get<std::uint64_t>(), pair.at(1).get<std::uint64_t>()};
    if (interval.begin >= interval.end || (!intervals.empty() && interval.begin <= intervals.back().end))
      throw std::invalid_argument("the ledger's intervals aren't ascending");
    intervals.push_back(interval);
  }
  return intervals;
}

VariableEntry variable_of(const Json& json) {
  VariableEntry variable;
  variable.name = text_of(json, "name");
  variable.shape = json.at("shape").get<std::vector<std::uint64_t>>();
  variable.kind = text_of(json, "kind") == "state" ? VariableKind::kState : VariableKind::kTrainable;
  const std::string dtype = json.value("dtype", "float32");  // older versions don't write it
  if (dtype != "float32" && dtype != "float64")
    throw std::invalid_argument("variable " + variable.name + " has the dtype \"" + dtype + "\"");
  variable.dtype = *disttrain::dtype_of(dtype);
  for (const Json& slice : json.at("slices"))
    variable.slices.push_back({slice.at(0).get<std::uint64_t>(), slice.at(1).get<std::uint64_t>(),
                               slice.at(2).get<std::uint32_t>(), slice.at(3).get<std::uint64_t>()});
  return variable;
}

ShardEntry shard_of(const Json& json) {
  ShardEntry shard;
  shard.version = Step(number(json, "version"));
  shard.words = number(json, "elements");
  for (const Json& entry : json.at("applied"))
    shard.workers.push_back({Member{TaskId{Role::kWorker, small_number(entry, "worker")},
                                    Incarnation(from_hex(text_of(entry, "incarnation")))},
                             Sequence(number(entry, "last_sequence")), Step(number(entry, "clock")),
                             // A manifest of an earlier version has no number of batches.
                             Step(number(entry, entry.contains("batches") ? "batches" : "clock"))});
  return shard;
}

FileEntry file_of(const Json& json) {
  FileEntry file;
  file.name = text_of(json, "name");
  file.bytes = number(json, "bytes");
  file.data_begin = number(json, "data_begin");
  file.checksum = from_hex(text_of(json, "xxh3"));
  file.chunks = from_hex_list(text_of(json, "chunks_xxh3"));
  return file;
}

PacerEntry pacer_of(const Json& json) {
  PacerEntry pacer;
  pacer.examples = number(json, "examples");
  pacer.late = number(json, "late");
  pacer.skipped = number(json, "skipped");
  pacer.complete_epochs = small_number(json, "complete_epochs");
  for (const Json& epoch : json.at("ledger"))
    pacer.ledger.push_back(EpochLedger{small_number(epoch, "epoch"), intervals_of(epoch.at("visited"))});
  return pacer;
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

// Checks every number that is used as an index or a size later.
void check(const Manifest& manifest) {
  expect(!manifest.shards.empty(), "it has no shards");
  expect(manifest.files.size() >= manifest.shards.size(), "it lists fewer files than shards");
  expect(!manifest.has_average || manifest.slots > 0, "it has an average, but no slots");
  expect(manifest.slots <= 16, "it has " + std::to_string(manifest.slots) + " slots");
  for (const EpochLedger& entry : manifest.pacer.ledger)
    expect(may_be_in_ledger(entry.epoch, manifest.pacer.complete_epochs),
           "its ledger has epoch " + std::to_string(entry.epoch) + ", although only " +
               std::to_string(manifest.pacer.complete_epochs) + " are complete");
  std::vector<std::uint64_t> words(manifest.shards.size(), 0);
  for (const VariableEntry& variable : manifest.variables) {
    const std::uint64_t element = element_words(variable);
    std::uint64_t size = element;
    for (const std::uint64_t extent : variable.shape)
      expect(!__builtin_mul_overflow(size, extent, &size), "variable " + variable.name + " is too large");
    std::uint64_t at = 0;
    for (const SliceEntry& slice : variable.slices) {
      expect(slice.begin == at && slice.words > 0 && slice.words <= size - at && slice.words % element == 0,
             "the slices of " + variable.name + " don't cover it");
      expect(slice.shard < manifest.shards.size(), "a slice of " + variable.name + " names a shard that doesn't exist");
      const std::uint64_t room = manifest.shards[slice.shard].words;
      expect(slice.offset <= room && slice.words <= room - slice.offset,
             "a slice of " + variable.name + " ends beyond its shard");
      at += slice.words;
      words[slice.shard] += slice.words;
    }
    expect(at == size, "the slices of " + variable.name + " don't cover it");
  }
  for (std::size_t s = 0; s < manifest.shards.size(); ++s) {
    const FileEntry& file = manifest.files[s];
    std::uint64_t bytes = sizeof(float) * (1 + manifest.slots);
    expect(!__builtin_mul_overflow(bytes, manifest.shards[s].words, &bytes), file.name + " is too large");
    expect(words[s] == manifest.shards[s].words, "shard " + std::to_string(s) + " isn't covered by slices");
    expect(file.data_begin <= file.bytes && file.bytes - file.data_begin == bytes,
           file.name + " doesn't have the size of its shard");
  }
  for (const FileEntry& file : manifest.files) {
    expect(file.chunks.size() == (file.bytes + kChunkBytes - 1) / kChunkBytes,
           file.name + " doesn't have one checksum per chunk");
    expect(!file.name.empty() && file.name.find('/') == std::string::npos && file.name != kManifestName,
           "\"" + file.name + "\" isn't a file name");
  }
}

// A manifest ends with this text and the checksum of everything before it.
constexpr std::string_view kChecksumBegins = ",\n \"manifest_xxh3\": ";

std::string end_of(const std::string& text) {
  return std::string(kChecksumBegins) + "\"" + hex(checksum_of(std::as_bytes(std::span(text)))) + "\"\n}\n";
}

}  // namespace

const FileEntry* find_file(const Manifest& manifest, const std::string& name) {
  for (std::size_t f = manifest.shards.size(); f < manifest.files.size(); ++f)
    if (manifest.files[f].name == name) return &manifest.files[f];
  return nullptr;
}

std::string shard_file_name(std::uint32_t shard, std::uint32_t shards) {
  return "shard-" + std::to_string(shard) + "-of-" + std::to_string(shards) + ".safetensors";
}

std::uint64_t element_words(const VariableEntry& variable) {
  return variable.dtype == disttrain::DType::kFloat64 ? 2 : 1;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::vector<VariableEntry> variables_of(const Layout& layout) {
  std::vector<VariableEntry> variables;
  for (const VariableSpec& spec : layout.model.variables)
    variables.push_back(VariableEntry{spec.name, spec.shape, spec.kind, {}, spec.dtype});
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b) {
    const Bucket& bucket = layout.buckets[b];
    for (const Slice& slice : slices_of(layout, BucketId(b))) {
      const SliceEntry entry{slice.variable_begin, slice.words, bucket.shard.value,
                             bucket.shard_begin + slice.bucket_begin};
      variables[slice.variable].slices.push_back(entry);
    }
  }
  for (VariableEntry& variable : variables) {
    std::sort(variable.slices.begin(), variable.slices.end(),
              [](const SliceEntry& a, const SliceEntry& b) { return a.begin < b.begin; });
    std::vector<SliceEntry> joined;
    for (const SliceEntry& slice : variable.slices) {
      SliceEntry* last = joined.empty() ? nullptr : &joined.back();
      if (last != nullptr && last->shard == slice.shard && last->offset + last->words == slice.offset)
        last->words += slice.words;
      else
        joined.push_back(slice);
    }
    variable.slices = std::move(joined);
  }
  return variables;
}

std::string to_json(const Manifest& manifest) {
  OrderedJson variables = OrderedJson::array();
  for (const VariableEntry& variable : manifest.variables) variables.push_back(to_json(variable));
  OrderedJson shards = OrderedJson::array();
  for (const ShardEntry& shard : manifest.shards) shards.push_back(to_json(shard));
  OrderedJson files = OrderedJson::array();
  for (const FileEntry& file : manifest.files) files.push_back(to_json(file));
  OrderedJson ledger = OrderedJson::array();
  for (const EpochLedger& epoch : manifest.pacer.ledger)
    ledger.push_back({{"epoch", epoch.epoch}, {"visited", to_json(epoch.visited)}});
  const bool has_doubles = std::any_of(manifest.variables.begin(), manifest.variables.end(),
                                       [](const VariableEntry& entry) { return element_words(entry) > 1; });
  OrderedJson json = {{"format", has_doubles ? kFormat : 2},
                      {"job", manifest.job},
                      {"generation", manifest.generation.value},
                      {"step", manifest.step.value},
                      {"attempt", manifest.attempt},
                      {"created", manifest.created},
                      {"seed", hex(manifest.seed)},
                      {"records", manifest.records},
                      {"rule", manifest.rule},
                      {"slots", manifest.slots},
                      {"average", manifest.has_average},
                      {"variables", variables},
                      {"shards", shards},
                      {"files", files},
                      {"pacer",
                       {{"examples", manifest.pacer.examples},
                        {"late", manifest.pacer.late},
                        {"skipped", manifest.pacer.skipped},
                        {"complete_epochs", manifest.pacer.complete_epochs},
                        {"ledger", ledger}}},
                      {"job_toml", manifest.job_toml}};
  if (manifest.own_batch) json["own_batch"] = *manifest.own_batch;
  std::string text = json.dump(1, ' ', false, OrderedJson::error_handler_t::replace);
  text.resize(text.size() - std::string_view("\n}").size());
  return text + end_of(text);
}

Result<Manifest> parse_manifest(const std::string& text, const std::string& path) {
  // Each key of a nlohmann::ordered_json is compared with all others of its object, so an object with many of them
  // would take hours.
  // Each shard has an entry of 5 values and a bracket for each worker: so 13,000 shards and 1,000 workers fit.
  constexpr std::size_t kMaxValues = std::size_t{80} << 20;
  const Json json = parse_bounded_json(text, kMaxJsonNesting, kMaxValues);
  if (!json.is_object()) return fail(ErrorCode::kData, path + " isn't JSON: it is damaged");
  const std::size_t end = text.rfind(kChecksumBegins);
  if (end != std::string::npos && text.substr(end) != end_of(text.substr(0, end)))
    return fail(ErrorCode::kData,
                path + ": its content changed after it was written (its XXH3 differs): it is damaged");
  try {
    const std::uint64_t format = number(json, "format");
    if (format > kFormat)
      return fail(ErrorCode::kConfig, path + " has format " + std::to_string(format) +
                                          "; this version reads formats up to " + std::to_string(kFormat) +
                                          ": use the version that wrote it, or a newer one");
    expect(format <= 1 || end != std::string::npos, "it lacks its checksum");
    Manifest manifest;
    manifest.job = text_of(json, "job");
    manifest.generation = Generation(number(json, "generation"));
    manifest.step = Step(number(json, "step"));
    manifest.attempt = number(json, "attempt");
    manifest.created = json.at("created").get<std::int64_t>();
    manifest.seed = from_hex(text_of(json, "seed"));
    manifest.records = number(json, "records");
    if (json.contains("own_batch")) manifest.own_batch = number(json, "own_batch");
    manifest.rule = text_of(json, "rule");
    manifest.slots = small_number(json, "slots");
    manifest.has_average = json.value("average", false);  // older versions keep no average
    for (const Json& entry : json.at("variables")) manifest.variables.push_back(variable_of(entry));
    for (const Json& entry : json.at("shards")) manifest.shards.push_back(shard_of(entry));
    for (const Json& entry : json.at("files")) manifest.files.push_back(file_of(entry));
    manifest.pacer = pacer_of(json.at("pacer"));
    manifest.job_toml = text_of(json, "job_toml");
    check(manifest);
    return manifest;
  } catch (const std::bad_alloc&) {
    throw;  // says nothing about the file, which would be set aside as damaged
    // Catches the exceptions of nlohmann's library and of the functions above. The file may contain anything.
  } catch (const std::exception& error) {
    return fail(ErrorCode::kData, path + " isn't a valid manifest: " + error.what());
  }
}

PacerReport report_of(const Manifest& manifest) {
  PacerReport report;
  report.global_step = manifest.step;
  report.loss = std::numeric_limits<double>::quiet_NaN();  // not kept in a manifest
  report.examples = manifest.pacer.examples;
  report.late = manifest.pacer.late;
  report.skipped = manifest.pacer.skipped;
  report.complete_epochs = manifest.pacer.complete_epochs;
  report.ledger = manifest.pacer.ledger;
  return report;
}

}  // namespace disttrain::checkpoint
