#include "common/checkpoint/warm_start.h"

#include <algorithm>
#include <set>
#include <vector>

#include "common/check.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/numbers.h"
#include "common/checkpoint/weights.h"
#include "common/doubles.h"
#include "common/nearest_word.h"

namespace disttrain::checkpoint {
namespace {

constexpr std::size_t kMostSaid = 10;                          // problems, and names
constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 20;  // words

// "; did you mean "w0"?" or "".
std::string guess(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(name, known);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

std::string first_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostSaid; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostSaid) text += " and " + std::to_string(names.size() - kMostSaid) + " more";
  return names.empty() ? "nothing" : text;
}

// "w0", or "fc1.weight (for w0)" if the file has another name for the model's variable w0.
std::string name_in_file(const Weights::Variable& theirs, const std::string& ours) {
  return theirs.name + (theirs.name == ours ? "" : " (for " + ours + ")");
}

// Finds the source variable in the weights file for each variable of the model, and collects every problem. "theirs"
// are the names in the weights file; "ours" are the names of the model.
class Matching {
 public:
  Matching(const Weights& weights, const ModelSpec& model) : weights_(weights), model_(model) {
    for (const Weights::Variable& variable : weights.variables()) theirs_.push_back(variable.name);
    for (const VariableSpec& variable : model.variables) ours_.push_back(variable.name);
  }

  // Returns, for each variable of the model, the index of its source in `weights`.
  Result<std::vector<std::size_t>> match(const std::map<std::string, std::string>& init_map) {
    const std::map<std::string, std::string> sources = turn(init_map);
    std::vector<std::size_t> matched;
    for (const VariableSpec& variable : model_.variables) {
      const auto source = sources.find(variable.name);
      const std::string& name = source == sources.end() ? variable.name : source->second;
      if (const auto given = init_map.find(name); given != init_map.end() && given->second != variable.name) {
        say("checkpoint.init_map maps " + name + " to " + given->second + ", so the model's " + variable.name +
            " gets no values");
        continue;
      }
      const std::optional<std::size_t> found = weights_.find(name);
      if (found) used_.insert(*found);
      if (found)
        compare(variable, weights_.variables()[*found]);
      else if (source == sources.end())
        is_missing_ = say("the file has no " + name + " " + shape_text(variable.shape), name, theirs_);
      matched.push_back(found.value_or(0));
    }
    if (problems_ == 0) return matched;
    if (problems_ > kMostSaid) said_ += "\n  and " + std::to_string(problems_ - kMostSaid) + " more like these";
    if (const std::vector<std::string> rest = unused(); is_missing_ && !rest.empty())
      said_ += "\n  the model uses none of these variables of the file: " + first_of(rest) +
               "; map names with checkpoint.init_map = { \"NAME IN THE FILE\" = \"NAME IN THE MODEL\" }";
    return fail(ErrorCode::kConfig, "can't take the initial parameters from " + weights_.path() + ":" + said_);
  }

 private:
  // The names in the file to which nothing in the model corresponds.
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (std::size_t v = 0; v < theirs_.size(); ++v)
      if (used_.count(v) == 0) names.push_back(theirs_[v]);
    return names;
  }

  // Adds a problem, and suggests the name in `known` that is nearest to `name`.
  bool say(const std::string& what, const std::string& name = "", const std::vector<std::string>& known = {}) {
    if (++problems_ <= kMostSaid) said_ += "\n  " + what + guess(name, known);
    return true;
  }

  // Maps our names to theirs.
  std::map<std::string, std::string> turn(const std::map<std::string, std::string>& init_map) {
    std::map<std::string, std::string> sources;
    for (const auto& [theirs, ours] : init_map) {
      if (!weights_.find(theirs))
        is_missing_ = say("checkpoint.init_map names \"" + theirs + "\", which isn't in the file", theirs, theirs_);
      if (std::find(ours_.begin(), ours_.end(), ours) == ours_.end())
        say("checkpoint.init_map names \"" + ours + "\", which isn't in the model (it has " + first_of(ours_) + ")",
            ours, ours_);
      if (!sources.emplace(ours, theirs).second)
        say("checkpoint.init_map gives \"" + ours + "\" two sources, \"" + sources[ours] + "\" and \"" + theirs + "\"");
    }
    return sources;
  }

  void compare(const VariableSpec& ours, const Weights::Variable& theirs) {
    const std::string name = name_in_file(theirs, ours.name);
    if (theirs.shape != ours.shape)
      say("the file's " + name + " has shape " + shape_text(theirs.shape) + "; the model expects " +
          shape_text(ours.shape));
    else if (!is_convertible(theirs.dtype))
      say("the file's " + name + " has dtype " + name_of(theirs.dtype) + ", which can't be read as float32");
  }

  const Weights& weights_;
  const ModelSpec& model_;
  std::vector<std::string> theirs_;
  std::vector<std::string> ours_;
  std::set<std::size_t> used_;  // indexes in theirs_
  std::size_t problems_ = 0;
  std::string said_;
  bool is_missing_ = false;
};

}  // namespace

Status check_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                        const ModelSpec& model) {
  const Result<Weights> weights = Weights::open(files, path);
  if (!weights) return tl::unexpected(weights.error());
  const Result<std::vector<std::size_t>> matched = Matching(*weights, model).match(init_map);
  return matched ? Status() : tl::unexpected(matched.error());
}

Result<std::string> ignored_parameters(Files& files, const std::string& path,
                                       const std::map<std::string, std::string>& init_map, const ModelSpec& model) {
  const Result<Weights> weights = Weights::open(files, path);
  if (!weights) return tl::unexpected(weights.error());
  const Result<std::vector<std::size_t>> matched = Matching(*weights, model).match(init_map);
  if (!matched) return tl::unexpected(matched.error());
  const std::set<std::size_t> used(matched->begin(), matched->end());
  std::vector<std::string> ignored;
  for (std::size_t v = 0; v < weights->variables().size(); ++v)
    if (used.count(v) == 0) ignored.push_back(weights->variables()[v].name);
  if (ignored.empty()) return std::string();
  return "checkpoint.init_from: " + std::to_string(ignored.size()) +
         (ignored.size() == 1 ? " variable of " : " variables of ") + weights->path() +
         (ignored.size() == 1 ? " is" : " are") +
         " ignored, because the job trains no variable of this name: " + first_of(ignored) +
         "; frozen variables keep the values of the job's program";
}

Status read_parameters(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map,
                       const Layout& target, ShardId shard, std::span<float> parameters,
                       const IsCancelled& is_cancelled) {
  DISTTRAIN_CHECK_EQ(parameters.size(), shard_words(target, shard));
  Result<Weights> weights = Weights::open(files, path, is_cancelled);
  if (!weights) return tl::unexpected(weights.error());
  const Result<std::vector<std::size_t>> matched = Matching(*weights, target.model).match(init_map);
  if (!matched) return tl::unexpected(matched.error());
  const std::vector<VariableEntry> wanted = variables_of(target);
  for (std::size_t v = 0; v < wanted.size(); ++v)
    for (const SliceEntry& slice : wanted[v].slices) {
      if (slice.shard != shard.value) continue;
      for (std::uint64_t done = 0; done < slice.words; done += kReadAtOnce) {
        if (is_cancelled && is_cancelled()) return fail(ErrorCode::kTemporary, path + ": reading it was cancelled");
        const std::uint64_t count = std::min(kReadAtOnce, slice.words - done);
        const std::span<float> out = parameters.subspan(slice.offset + done, count);
        const std::uint64_t first = (slice.begin + done) / element_words(wanted[v]);
        const Status read = disttrain::with_type(
            wanted[v].dtype, [&]<typename T>(T) { return weights->read((*matched)[v], first, values_in<T>(out)); });
        if (!read) return read;
        if (const std::optional<std::uint64_t> bad = first_nonfinite(out, wanted[v].dtype))
          return fail(ErrorCode::kData, "can't take the initial parameters from " + weights->path() + ": the file's " +
                                            name_in_file(weights->variables()[(*matched)[v]], wanted[v].name) +
                                            " has a value that is NaN or infinite as " + to_string(wanted[v].dtype) +
                                            ", at index " + std::to_string(first + *bad) + " of its " +
                                            std::to_string(element_count(target.model.variables[v])) +
                                            " values in row-major order; correct the file, or name another one");
      }
    }
  return {};
}

}  // namespace disttrain::checkpoint
