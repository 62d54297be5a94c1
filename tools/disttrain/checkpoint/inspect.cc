// disttrain checkpoint inspect PATH: shows what a checkpoint holds. It reads the checkpoint's manifest,
// and the description of the step program if the job has one.
#include <iostream>
#include <optional>
#include <set>

#include "common/checkpoint/disk_files.h"
#include "common/counted.h"
#include "common/daemon/startup.h"
#include "common/printable.h"
#include "common/program/kept_program.h"
#include "tools/disttrain/checkpoint/checkpoint.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

using checkpoint::Manifest;
using program::Sidecar;

// Writes 64 random bits as text, because many JSON readers parse numbers as double, which has only 53 bits.
std::string hex_text(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

Json variables_of(const Manifest& manifest, const std::optional<Sidecar>& sidecar) {
  Json variables = Json::array();
  for (const checkpoint::VariableEntry& variable : manifest.variables) {
    std::set<std::uint32_t> shards;
    for (const checkpoint::SliceEntry& slice : variable.slices) shards.insert(slice.shard);
    variables.push_back({{"name", variable.name},
                         {"shape", variable.shape},
                         {"kind", variable.kind == VariableKind::kState ? "state" : "trainable"},
                         {"dtype", to_string(variable.dtype)},
                         {"elements", element_count(variable)},
                         {"slices", variable.slices.size()},
                         {"shards", shards}});
  }
  if (!sidecar) return variables;
  for (const program::SidecarVariable& variable : sidecar->variables)
    if (variable.kind == program::SidecarVariable::Kind::kFrozen && variable.is_persistent) {
      std::uint64_t elements = 1;
      for (const std::uint64_t extent : variable.shape) elements *= extent;
      variables.push_back({{"name", variable.name},
                           {"shape", variable.shape},
                           {"kind", "frozen"},
                           {"dtype", variable.dtype},
                           {"elements", elements},
                           {"slices", 0},
                           {"shards", Json::array()}});
    }
  return variables;
}

// The entries of the state_dict that an export writes. Null if the checkpoint keeps no program.
Json state_dict_of(const std::optional<Sidecar>& sidecar) {
  if (!sidecar) return nullptr;
  Json entries = Json::array();
  const auto listed = program::state_dict_of(*sidecar);
  if (!listed) return nullptr;
  for (const program::StateEntry& entry : *listed)
    entries.push_back(
        {{"name", entry.name}, {"variable", entry.variable}, {"dtype", checkpoint::name_of(entry.dtype)}});
  return entries;
}

// Returns the number of parameters in each shard.
std::vector<std::uint64_t> elements_of(const Manifest& manifest) {
  std::vector<std::uint64_t> elements(manifest.shards.size(), 0);
  for (const checkpoint::VariableEntry& variable : manifest.variables)
    for (const checkpoint::SliceEntry& slice : variable.slices)
      elements[slice.shard] += slice.words / checkpoint::element_words(variable);
  return elements;
}

Json shards_of(const Manifest& manifest) {
  const std::vector<std::uint64_t> elements = elements_of(manifest);
  Json shards = Json::array();
  for (std::size_t s = 0; s < manifest.shards.size(); ++s) {
    Json applied = Json::array();
    for (const checkpoint::WorkerEntry& worker : manifest.shards[s].workers)
      applied.push_back({{"task", to_string(worker.worker.task)},
                         {"incarnation", hex_text(worker.worker.incarnation.value)},
                         {"last_sequence", worker.last.value},
                         {"clock", worker.clock.value}});
    shards.push_back({{"shard", s},
                      {"file", manifest.files[s].name},
                      {"bytes", manifest.files[s].bytes},
                      {"elements", elements[s]},
                      {"version", manifest.shards[s].version.value},
                      {"applied", applied}});
  }
  return shards;
}

Json ledger_of(const Manifest& manifest) {
  Json ledger = Json::array();
  for (const EpochLedger& epoch : manifest.pacer.ledger) {
    std::uint64_t records = 0;
    for (const Interval& interval : epoch.visited) records += interval.end - interval.begin;
    ledger.push_back({{"epoch", epoch.epoch}, {"visited_records", records}, {"intervals", epoch.visited.size()}});
  }
  return ledger;
}

Json to_json(const checkpoint::OpenCheckpoint& open, const std::optional<Sidecar>& sidecar) {
  const Manifest& manifest = open.manifest;
  std::uint64_t elements = 0;
  for (const std::uint64_t of_shard : elements_of(manifest)) elements += of_shard;
  std::uint64_t bytes = 0;
  for (const checkpoint::FileEntry& file : manifest.files) bytes += file.bytes;
  return {{"path", open.path},
          {"job", manifest.job},
          {"generation", manifest.generation.value},
          {"step", manifest.step.value},
          {"created", time_text(manifest.created)},
          {"attempt", manifest.attempt},
          {"seed", hex_text(manifest.seed)},
          {"bytes", bytes},
          {"elements", elements},
          {"optimizer", {{"rule", manifest.rule}, {"slots", manifest.slots}, {"average", manifest.has_average}}},
          {"state_dict", state_dict_of(sidecar)},
          {"variables", variables_of(manifest, sidecar)},
          {"shards", shards_of(manifest)},
          {"examples", manifest.pacer.examples},
          {"late", manifest.pacer.late},
          {"skipped", manifest.pacer.skipped},
          {"complete_epochs", manifest.pacer.complete_epochs},
          {"ledger", ledger_of(manifest)},
          {"job_toml", manifest.job_toml}};
}

std::string count_text(const Json& json, const char* key) {
  return with_commas(json[key].get<double>());
}

// "1 parameter", "1,000 parameters".
std::string counted_text(const Json& json, const char* key, const std::string& noun) {
  return count_text(json, key) + " " + noun_for(json[key].get<std::uint64_t>(), noun);
}

std::string joined(const Json& numbers) {
  std::string text;
  for (const Json& number : numbers) text += (text.empty() ? "" : ",") + number.dump();
  return text;
}

void print_tables(const Json& json) {
  Table variables({"VARIABLE", "SHAPE", "KIND", "DTYPE", "ELEMENTS", "SHARDS"});
  for (const Json& one : json["variables"])
    variables.add({text_of(one, "name"), "[" + joined(one["shape"]) + "]", text_of(one, "kind"), text_of(one, "dtype"),
                   count_text(one, "elements"), joined(one["shards"])});
  std::cout << '\n' << variables.text() << '\n';
  if (const Json& entries = json["state_dict"]; entries.is_array()) {
    Table state_dict({"STATE_DICT", "DTYPE", "VALUE OF"});
    for (const Json& one : entries)
      state_dict.add({text_of(one, "name"), text_of(one, "dtype"), text_of(one, "variable")});
    std::cout << state_dict.text() << '\n';
  }
  Table shards({"FILE", "VERSION", "ELEMENTS", "SIZE"});
  for (const Json& one : json["shards"])
    shards.add({text_of(one, "file"), count_text(one, "version"), count_text(one, "elements"),
                bytes_text(one["bytes"].get<std::uint64_t>())});
  std::cout << shards.text() << '\n';
  Table applied({"APPLIED", "SHARD", "LAST SEQUENCE", "CLOCK"});
  for (const Json& shard : json["shards"])
    for (const Json& one : shard["applied"])
      applied.add({text_of(one, "task"), shard["shard"].dump(), one["last_sequence"].dump(), one["clock"].dump()});
  std::cout << applied.text();
}

void print_checkpoint(const Json& json) {
  const Json& optimizer = json["optimizer"];
  std::cout << text_of(json, "path") << '\n'
            << "job " << printable(text_of(json, "job")) << ", step " << count_text(json, "step") << " of generation "
            << json["generation"].dump() << ", made " << text_of(json, "created") << " (attempt "
            << json["attempt"].dump() << "), seed " << text_of(json, "seed") << '\n'
            << counted_text(json, "elements", "parameter") << ", optimizer " << printable(text_of(optimizer, "rule"))
            << " with " << counted(optimizer["slots"].get<std::uint64_t>(), "slot") << " each"
            << (optimizer["average"].get<bool>() ? " (the last one is the moving average); " : "; ")
            << bytes_text(json["bytes"].get<std::uint64_t>()) << '\n'
            << counted_text(json, "examples", "example") << " in "
            << counted(json["complete_epochs"].get<std::uint64_t>(), "whole epoch");
  for (const Json& epoch : json["ledger"])
    std::cout << ", " << counted_text(epoch, "visited_records", "record") << " of epoch " << epoch["epoch"].dump();
  std::cout << "; " << json["late"].dump() << " late, " << json["skipped"].dump() << " skipped\n";
  print_tables(json);
}

}  // namespace

int checkpoint_inspect(const CheckpointOptions& options) {
  checkpoint::DiskFiles files;
  const auto open = checkpoint::open_named(files, absolute_path(options.path));
  if (!open) return daemon::report("disttrain checkpoint inspect", open.error());
  const Result<std::optional<Sidecar>> sidecar = program::kept_program(files, *open);
  if (!sidecar.has_value()) return daemon::report("disttrain checkpoint inspect", sidecar.error());
  const Json json = to_json(*open, *sidecar);
  if (options.json)
    std::cout << line_of(json) << '\n';
  else
    print_checkpoint(json);
  return 0;
}

}  // namespace disttrain::cli
