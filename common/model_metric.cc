// In training, the chief shows the mean of the workers' values and doesn't merge their accumulators: an accumulator of
// AUC takes 16 KiB, and heartbeats should be small. Evaluations merge accumulators.
#include "common/model_metric.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "common/check.h"
#include "common/printable.h"

namespace disttrain {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kTopPrefix = "top_";

// By MetricKind. kTopK stands for "top_<k>".
constexpr std::array<const char*, 9> kNames = {"mean",   "accuracy",   "top_k", "auc", "precision",
                                               "recall", "perplexity", "mse",   "mae"};

double quotient(std::span<const double> accumulator) {
  return accumulator[1] > 0.0 ? accumulator[0] / accumulator[1] : kNan;
}

// The chance that a positive example has a larger probability than a negative one; an equal bin counts half.
double area_under_curve(std::span<const double> negatives, std::span<const double> positives) {
  double area = 0.0;
  double below = 0.0;
  double all_positives = 0.0;
  for (std::size_t bin = 0; bin < kAucBins; ++bin) {
    area += positives[bin] * (below + negatives[bin] / 2.0);
    below += negatives[bin];
    all_positives += positives[bin];
  }
  return below > 0.0 && all_positives > 0.0 ? area / (below * all_positives) : kNan;
}

// The figures of a job that have a name of their own in the status or in TensorBoard's event files.
constexpr std::array<std::string_view, 4> kTakenNames = {"loss", "learning_rate", "steps_per_second",
                                                         "examples_per_second"};

template <typename Metric>
Status check_names(const std::vector<Metric>& metrics) {
  if (metrics.size() > kMaxMetrics)
    return fail(ErrorCode::kConfig, "there are " + std::to_string(metrics.size()) + " metrics; at most " +
                                        std::to_string(kMaxMetrics) + " are allowed");
  std::set<std::string_view> names;
  for (const Metric& metric : metrics) {
    if (const std::string problem = problem_with_metric_name(metric.name); !problem.empty())
      return fail(ErrorCode::kConfig, problem);
    if (!names.insert(metric.name).second)
      return fail(ErrorCode::kConfig, "two metrics are named \"" + metric.name + "\"; give each a name of its own");
  }
  return {};
}

}  // namespace

std::optional<bool> is_higher_better(MetricKind kind) {
  switch (kind) {
    case MetricKind::kMean:
      return std::nullopt;
    case MetricKind::kAccuracy:
    case MetricKind::kTopK:
    case MetricKind::kAuc:
    case MetricKind::kPrecision:
    case MetricKind::kRecall:
      return true;
    case MetricKind::kPerplexity:
    case MetricKind::kMse:
    case MetricKind::kMae:
      return false;
  }
  return std::nullopt;
}

std::size_t accumulator_size(const MetricSpec& metric) {
  return metric.kind == MetricKind::kAuc ? 2 * kAucBins : 2;
}

std::size_t accumulator_size(const std::vector<MetricSpec>& metrics) {
  std::size_t size = 0;
  for (const MetricSpec& metric : metrics) size += accumulator_size(metric);
  return size;
}

double metric_value(const MetricSpec& metric, std::span<const double> accumulator) {
  DISTTRAIN_CHECK_EQ(accumulator.size(), accumulator_size(metric));
  switch (metric.kind) {
    case MetricKind::kAuc:
      return area_under_curve(accumulator.first(kAucBins), accumulator.last(kAucBins));
    case MetricKind::kPerplexity:
      return std::exp(quotient(accumulator));
    case MetricKind::kMean:
    case MetricKind::kAccuracy:
    case MetricKind::kTopK:
    case MetricKind::kPrecision:
    case MetricKind::kRecall:
    case MetricKind::kMse:
    case MetricKind::kMae:
      break;
  }
  return quotient(accumulator);
}

std::vector<MetricValue> metric_values(const std::vector<MetricSpec>& metrics, std::span<const double> accumulators) {
  DISTTRAIN_CHECK_EQ(accumulators.size(), accumulator_size(metrics));
  std::vector<MetricValue> values;
  std::size_t begin = 0;
  for (const MetricSpec& metric : metrics) {
    const std::size_t size = accumulator_size(metric);
    values.push_back({metric.name, metric_value(metric, accumulators.subspan(begin, size))});
    begin += size;
  }
  return values;
}

void add_to_auc(double probability, bool is_positive, std::span<double> accumulator) {
  const double inside = probability > 0.0 ? std::min(probability, 1.0) : 0.0;
  const auto bin = std::min(static_cast<std::size_t>(inside * static_cast<double>(kAucBins)), kAucBins - 1);
  accumulator[(is_positive ? kAucBins : 0) + bin] += 1.0;
}

std::string problem_with_metric_name(const std::string& name) {
  if (is_metric_name(name)) return "";
  const std::string problem = "a metric can't be named \"" + printable(cut_text(name, 64)) + "\"";
  if (std::find(kTakenNames.begin(), kTakenNames.end(), name) != kTakenNames.end())
    return problem + ", because the status shows a figure of the job under this name; choose another name";
  return problem + "; expected 1 to " + std::to_string(kMaxMetricNameBytes) + " of the characters A-Z a-z 0-9 _ . / -";
}

bool is_metric_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '/' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxMetricNameBytes && std::all_of(name.begin(), name.end(), fits) &&
         std::find(kTakenNames.begin(), kTakenNames.end(), name) == kTakenNames.end();
}

Status check_metrics(const std::vector<MetricSpec>& metrics) {
  if (Status names = check_names(metrics); !names) return names;
  for (const MetricSpec& metric : metrics)
    if (metric.k == 0) return fail(ErrorCode::kConfig, "metric " + metric.name + " has k = 0; expected at least 1");
  return {};
}

Status check_metrics(const std::vector<MetricValue>& metrics) {
  return check_names(metrics);
}

std::optional<double> value_of(const std::vector<MetricValue>& metrics, const std::string& name) {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&name](const MetricValue& metric) { return metric.name == name; });
  return found == metrics.end() ? std::nullopt : std::optional(found->value);
}

std::string to_string(const MetricSpec& metric) {
  if (metric.kind == MetricKind::kTopK) return std::string(kTopPrefix) + std::to_string(metric.k);
  return kNames[static_cast<std::size_t>(metric.kind)];
}

Result<MetricSpec> parse_metric_kind(const std::string& text) {
  if (text.starts_with(kTopPrefix)) {
    std::uint32_t k = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + kTopPrefix.size(), end, k);
    if (error == std::errc() && rest == end && k > 0)
      return MetricSpec{.name = text, .kind = MetricKind::kTopK, .k = k};
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const auto kind = static_cast<MetricKind>(i);
    if (kind != MetricKind::kTopK && text == kNames[i]) return MetricSpec{.name = text, .kind = kind};
  }
  return fail(ErrorCode::kConfig, "\"" + text +
                                      "\" is no kind of metric; expected accuracy, top_5 (or another number), auc, "
                                      "precision, recall, perplexity, mse, mae or mean");
}

}  // namespace disttrain
