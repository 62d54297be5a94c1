// The journal has the best checkpoints and the count for evaluate.stop_after by the job's number. With the journal
// alone, a job that was submitted again forgot them, let retention remove its best checkpoint, and exported a worse one
// over best.safetensors. The checkpoints' manifests were rejected as the place, because an evaluation ends after the
// commit.
#include "chiefd/kept_evaluations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

#include "chiefd/journal/limits.h"
#include "common/bounded_json.h"
#include "common/checkpoint/job_folder.h"
#include "common/model_metric.h"

namespace disttrain::chiefd {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kEvaluationsFormat = 1;

std::string name_in_folder(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Json to_json(const KeptCheckpoint& checkpoint) {
  return {{"name", name_in_folder(checkpoint.path)},
          {"generation", checkpoint.generation.value},
          {"step", checkpoint.step.value}};
}

std::uint64_t whole_number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned()) throw std::invalid_argument(std::string(key) + " isn't a whole number");
  return value.get<std::uint64_t>();
}

double finite_number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    throw std::invalid_argument(std::string(key) + " isn't a number");
  return value.get<double>();
}

// A value of evaluate.metric. Operators see it.
bool is_name(const std::string& text) {
  return text == "loss" || is_metric_name(text);
}

// A path that is too long for the journal would end the chief.
std::string path_in(const std::string& folder, const std::string& name) {
  if (name.find('/') != std::string::npos) throw std::invalid_argument("it has a name with \"/\"");
  std::string path = folder + "/" + name;
  if (path.size() > kMaxJournalTextBytes) throw std::invalid_argument("it has a name that is too long");
  return path;
}

KeptCheckpoint checkpoint_of(const Json& json, const std::string& folder) {
  const Generation generation(whole_number(json, "generation"));
  const Step step(whole_number(json, "step"));
  const std::string name = checkpoint::checkpoint_name(generation, step);
  if (json.at("name").get<std::string>() != name)
    throw std::invalid_argument("it has another name for the checkpoint " + name);
  return {generation, step, path_in(folder, name)};
}

KeptEvaluations kept_of(const Json& json, const std::string& folder) {
  if (whole_number(json, "format") != kEvaluationsFormat) throw std::invalid_argument("its format isn't 1");
  KeptEvaluations kept;
  kept.metric = json.at("metric").get<std::string>();
  if (!is_name(kept.metric)) throw std::invalid_argument("its metric isn't the name of one");
  kept.is_higher_better = json.at("is_higher_better").get<bool>();
  EvaluationsRecord& found = kept.found;
  for (const Json& one : json.at("evaluated")) found.evaluated.push_back(checkpoint_of(one, folder));
  std::sort(found.evaluated.begin(), found.evaluated.end());
  if (found.evaluated.size() > kMaxEvaluatedKept) throw std::invalid_argument("it has too many checkpoints");
  for (const Json& one : json.at("best"))
    found.best.push_back({checkpoint_of(one, folder), finite_number(one, "value")});
  if (found.best.size() > kMaxKeptBest) throw std::invalid_argument("it has too many best checkpoints");
  if (!json.at("best_value").is_null()) found.best_value = finite_number(json, "best_value");
  found.best_step = Step(whole_number(json, "best_step"));
  found.counted = Step(whole_number(json, "counted"));
  found.without_progress =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(whole_number(json, "without_progress"), UINT32_MAX));
  if (const std::string exported = json.at("exported").get<std::string>(); !exported.empty())
    found.exported = path_in(folder, exported);
  return kept;
}

}  // namespace

std::string encode_evaluations(const KeptEvaluations& kept) {
  const EvaluationsRecord& found = kept.found;
  Json evaluated = Json::array();
  for (const KeptCheckpoint& checkpoint : found.evaluated) evaluated.push_back(to_json(checkpoint));
  Json best = Json::array();
  // Infinity has no form in JSON, so nothing infinite is kept. A job whose best value is infinite begins the comparison
  // anew.
  for (const BestCheckpoint& one : found.best) {
    if (!std::isfinite(one.value)) continue;
    best.push_back(to_json(one.checkpoint));
    best.back()["value"] = one.value;
  }
  const bool is_finite = found.best_value && std::isfinite(*found.best_value);
  return Json{{"format", kEvaluationsFormat},
              {"metric", kept.metric},
              {"is_higher_better", kept.is_higher_better},
              {"evaluated", std::move(evaluated)},
              {"best", std::move(best)},
              {"best_value", is_finite ? Json(*found.best_value) : Json(nullptr)},
              {"best_step", found.best_step.value},
              {"counted", found.counted.value},
              {"without_progress", found.without_progress},
              {"exported", name_in_folder(found.exported)}}
             .dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

Result<KeptEvaluations> evaluations_of_best(const std::map<std::string, std::string>& metadata,
                                            const std::string& folder) {
  const auto text = [&metadata](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  const std::string name = name_in_folder(text("disttrain.checkpoint"));
  const std::optional<checkpoint::Found> checkpoint = checkpoint::parse_checkpoint_name(name);
  const std::string number = text("disttrain.value");
  double value = 0.0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool is_value = error == std::errc() && end == number.data() + number.size() && std::isfinite(value);
  const std::string path = folder + "/" + name;
  const std::string better = text("disttrain.better");
  if (!checkpoint || path.size() > kMaxJournalTextBytes || !is_value || !is_name(text("disttrain.metric")) ||
      (better != "higher" && better != "lower"))
    return fail(ErrorCode::kData, "its metadata doesn't say of which checkpoint it is, and how good that one is");
  KeptEvaluations kept;
  kept.metric = text("disttrain.metric");
  kept.is_higher_better = better == "higher";
  const KeptCheckpoint best{checkpoint->generation, checkpoint->step, path};
  kept.found.evaluated = {best};
  kept.found.best = {{best, value}};
  kept.found.best_value = value;
  kept.found.best_step = kept.found.counted = best.step;
  kept.found.exported = best.path;
  return kept;
}

Result<KeptEvaluations> decode_evaluations(const std::string& text, const std::string& folder) {
  const std::string path = folder + "/" + kEvaluationsName;
  const Json json = parse_bounded_json(text);
  if (!json.is_object()) return fail(ErrorCode::kData, path + " isn't JSON: it is damaged");
  try {
    return kept_of(json, folder);
  } catch (const std::bad_alloc&) {
    throw;  // says nothing about the file
  } catch (const std::exception& error) {
    return fail(ErrorCode::kData, path + " is damaged: " + error.what());
  }
}

}  // namespace disttrain::chiefd
