#include "chiefd/core/evaluation_book.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

double metric_of(const EvaluationStatus& evaluation, const EvaluationRules& rules) {
  if (rules.metric == "loss") return evaluation.loss;
  return value_of(evaluation.metrics, rules.metric).value_or(std::numeric_limits<double>::quiet_NaN());
}

bool is_better(double a, double b, const EvaluationRules& rules) {
  return rules.is_higher_better ? a > b : a < b;
}

std::string number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string names_of(const std::vector<MetricSpec>& metrics) {
  std::string names = "\"loss\"";
  for (const MetricSpec& metric : metrics) names += ", \"" + metric.name + "\"";
  return names;
}

}  // namespace

Result<EvaluationRules> evaluation_rules(const EvaluateSection& config, const std::vector<MetricSpec>& metrics) {
  EvaluationRules rules{config.metric, config.better == Better::kHigher, config.stop_after, config.keep_best};
  if (config.metric == "loss") return rules;
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&config](const MetricSpec& metric) { return metric.name == config.metric; });
  if (found == metrics.end())
    return fail(ErrorCode::kConfig, "evaluate.metric is \"" + config.metric + "\", but the model's metrics are " +
                                        names_of(metrics) + ": set it to one of these");
  if (config.better != Better::kAuto) return rules;
  const std::optional<bool> is_higher = is_higher_better(found->kind);
  if (!is_higher)
    return fail(ErrorCode::kConfig, "the kind of the metric \"" + config.metric +
                                        "\" (evaluate.metric) is \"mean\", which doesn't say whether a higher value is "
                                        "better: set evaluate.better to \"higher\" or \"lower\"");
  rules.is_higher_better = *is_higher;
  return rules;
}

bool EvaluationBook::resume(const KeptEvaluations& kept, const EvaluationRules& rules) {
  if (kept.metric != rules.metric || kept.is_higher_better != rules.is_higher_better) return false;
  record_ = kept.found;
  if (record_.best.size() > rules.keep_best) record_.best.resize(rules.keep_best);
  check_early_end(rules);
  return true;
}

KeptEvaluations EvaluationBook::kept(const EvaluationRules& rules) const {
  KeptEvaluations kept{rules.metric, rules.is_higher_better, record_};
  kept.found.job = JobId();
  kept.found.newest.reset();
  kept.found.early_end.clear();
  return kept;
}

bool EvaluationBook::has_evaluated(const KeptCheckpoint& checkpoint) const {
  const std::vector<KeptCheckpoint>& evaluated = record_.evaluated;
  // A full list has lost its oldest entries.
  if (evaluated.size() == kMaxEvaluatedKept && checkpoint < evaluated.front()) return true;
  return std::binary_search(evaluated.begin(), evaluated.end(), checkpoint);
}

void EvaluationBook::skip(const KeptCheckpoint& checkpoint) {
  std::vector<KeptCheckpoint>& evaluated = record_.evaluated;
  if (has_evaluated(checkpoint)) return;
  evaluated.insert(std::upper_bound(evaluated.begin(), evaluated.end(), checkpoint), checkpoint);
  if (evaluated.size() > kMaxEvaluatedKept) evaluated.erase(evaluated.begin());
}

void EvaluationBook::note(const EvaluationStatus& evaluation, const KeptCheckpoint* checkpoint,
                          const EvaluationRules& rules) {
  const bool is_again = checkpoint != nullptr && has_evaluated(*checkpoint);
  if (is_again && !DISTTRAIN_MUTANT(kEvaluationCountedAgain)) return;
  count(metric_of(evaluation, rules), evaluation.step, rules);
  if (checkpoint != nullptr) rank(*checkpoint, evaluation, rules);
}

void EvaluationBook::count(double value, Step step, const EvaluationRules& rules) {
  const bool is_progress = !std::isnan(value) && (!record_.best_value || is_better(value, *record_.best_value, rules));
  if (is_progress) {
    record_.best_value = value;
    record_.best_step = step;
    record_.without_progress = 0;
  } else if (step > record_.counted || DISTTRAIN_MUTANT(kEvaluationCountedAgain)) {
    ++record_.without_progress;
  }
  record_.counted = std::max(record_.counted, step);
  check_early_end(rules);
}

void EvaluationBook::check_early_end(const EvaluationRules& rules) {
  if (rules.stop_after == 0 || record_.without_progress < rules.stop_after || !record_.early_end.empty()) return;
  const std::string best = record_.best_value ? "the best one is " + number(*record_.best_value) + ", at step " +
                                                    std::to_string(record_.best_step.value)
                                              : "no evaluation had a value";
  record_.early_end = "finished early: " + std::to_string(record_.without_progress) +
                      (record_.without_progress == 1 ? " evaluation" : " evaluations in a row") + " had no better " +
                      rules.metric + "; " + best + " (evaluate.stop_after)";
}

void EvaluationBook::rank(const KeptCheckpoint& checkpoint, const EvaluationStatus& evaluation,
                          const EvaluationRules& rules) {
  if (has_evaluated(checkpoint)) return;
  skip(checkpoint);
  const double value = metric_of(evaluation, rules);
  if (rules.keep_best == 0 || std::isnan(value)) return;
  std::vector<BestCheckpoint>& best = record_.best;
  // Of two equal values the older checkpoint is the better one. So the best one doesn't change without need.
  const auto place = std::find_if(best.begin(), best.end(),
                                  [&](const BestCheckpoint& other) { return is_better(value, other.value, rules); });
  best.insert(place, BestCheckpoint{checkpoint, value});
  if (best.size() > rules.keep_best) best.pop_back();
}

bool EvaluationBook::keep_only(const std::vector<KeptCheckpoint>& kept) {
  const auto is_gone = [&kept](const KeptCheckpoint& checkpoint) {
    return !std::binary_search(kept.begin(), kept.end(), checkpoint);
  };
  std::erase_if(record_.evaluated, is_gone);
  return std::erase_if(record_.best, [&](const BestCheckpoint& best) { return is_gone(best.checkpoint); }) > 0;
}

}  // namespace disttrain::chiefd
