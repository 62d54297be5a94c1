// The metrics of a model, such as its accuracy. (The metrics that Prometheus reads are in common/metrics.)
//
// A metric is computed in two parts. An engine adds the examples of a batch to an accumulator, an array of float64
// numbers. Accumulators of several batches, or of several workers, merge by adding them element by element.
// metric_value() turns an accumulator into the metric's value. So the value doesn't depend on how the examples were
// divided into batches, except for rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace disttrain {

// The accumulator of each kind, and its value:
// kMean        {sum, weight}: sum / weight. An engine uses it for whatever it computes itself.
// kAccuracy    {correct, examples}: correct / examples. An example is correct if its largest output is at the label's
//              index, or, with one output, if the output is above the threshold exactly if the label is 1.
// kTopK        {correct, examples}: correct / examples. Correct: the label is among the k largest outputs.
// kAuc         2 * kAucBins numbers, a histogram of the predicted probabilities of the negative examples, and then of
//              the positive ones. The area under the ROC curve, by the trapezoid rule; ties within a bin count half.
// kPrecision   {true positives, predicted positives}: their quotient.
// kRecall      {true positives, positives}: their quotient.
// kPerplexity  {sum of -log(probability of the label), labels}: exp(sum / labels).
// kMse         {sum of squared errors, values}: sum / values.
// kMae         {sum of absolute errors, values}: sum / values.
enum class MetricKind : std::uint8_t { kMean, kAccuracy, kTopK, kAuc, kPrecision, kRecall, kPerplexity, kMse, kMae };

inline constexpr std::size_t kAucBins = 1024;  // of equal width over the probabilities 0 to 1
inline constexpr std::size_t kMaxMetrics = 64;
inline constexpr std::size_t kMaxMetricNameBytes = 100;

struct MetricSpec {
  std::string name;  // see is_metric_name(); unique in its model
  MetricKind kind = MetricKind::kMean;
  std::uint32_t k = 1;  // kTopK; at least 1

  bool operator==(const MetricSpec&) const = default;
};

// The value of a metric, for users.
struct MetricValue {
  std::string name;
  double value = 0.0;  // may be NaN

  bool operator==(const MetricValue&) const = default;
};

// Whether a higher value of a metric of this kind is better. None: kMean, because an engine may compute any mean.
std::optional<bool> is_higher_better(MetricKind kind);

// The number of float64 numbers in the metric's accumulator.
std::size_t accumulator_size(const MetricSpec& metric);
// The same for all metrics; their accumulators follow each other in the order of `metrics`.
std::size_t accumulator_size(const std::vector<MetricSpec>& metrics);

// NaN if the accumulator has no examples.
double metric_value(const MetricSpec& metric, std::span<const double> accumulator);
// `accumulators` has accumulator_size(metrics) numbers.
std::vector<MetricValue> metric_values(const std::vector<MetricSpec>& metrics, std::span<const double> accumulators);

// Adds one example to an accumulator of kind kAuc. A probability outside 0 to 1 counts as 0 or 1, a NaN as 0.
void add_to_auc(double probability, bool is_positive, std::span<double> accumulator);

// Whether a name may be a metric's: 1 to kMaxMetricNameBytes bytes of [A-Za-z0-9_./-]. The names "loss",
// "learning_rate", "steps_per_second" and "examples_per_second" are taken. The status and TensorBoard show a job's own
// figures under them, next to its metrics.
bool is_metric_name(const std::string& name);
// Why a metric can't have this name, for users; "" if it can.
std::string problem_with_metric_name(const std::string& name);

// Checks a list that comes from outside: at most kMaxMetrics metrics, with names that they may have and that differ,
// and k at least 1. The error (kConfig) names the metric.
Status check_metrics(const std::vector<MetricSpec>& metrics);
Status check_metrics(const std::vector<MetricValue>& metrics);

// The value of the metric with this name. None if there is no such metric.
std::optional<double> value_of(const std::vector<MetricValue>& metrics, const std::string& name);

// The kind's name in job.toml: "accuracy", "top_5" (for k = 5), "auc" and so on. parse_metric_kind() is its inverse;
// kConfig for an unknown name.
std::string to_string(const MetricSpec& metric);
Result<MetricSpec> parse_metric_kind(const std::string& text);

}  // namespace disttrain
