// Each kind of metric is compared with a computation that has all examples at once. Accumulators are merged in random
// splits.
#include "common/model_metric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace disttrain {
namespace {

constexpr std::uint64_t kSeeds = 5;

double random_share(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>()(random);
}

std::vector<double> sum_of(std::vector<double> sum, const std::vector<double>& other) {
  std::transform(sum.begin(), sum.end(), other.begin(), sum.begin(), std::plus<>());
  return sum;
}

// An example of a classification into two classes. The probability of a positive one tends to be larger.
struct Scored {
  double probability = 0.0;
  bool is_positive = false;
};

std::vector<Scored> random_scores(std::mt19937_64& random, std::size_t examples) {
  std::vector<Scored> scores(examples);
  for (Scored& one : scores) {
    one.is_positive = random() % 3 == 0;
    const double share = random_share(random);
    one.probability = one.is_positive ? std::sqrt(share) : share * share;
  }
  return scores;
}

std::vector<double> auc_accumulator(const std::vector<Scored>& scores) {
  std::vector<double> accumulator(2 * kAucBins);
  for (const Scored& one : scores) add_to_auc(one.probability, one.is_positive, accumulator);
  return accumulator;
}

double auc_of(const std::vector<Scored>& scores) {
  return metric_value({"auc", MetricKind::kAuc}, auc_accumulator(scores));
}

// Compares each positive example with each negative one. `is_tie` says which probabilities count as equal.
template <typename IsTie>
double rank_statistic(const std::vector<Scored>& scores, IsTie is_tie) {
  double above = 0.0;
  double pairs = 0.0;
  for (const Scored& positive : scores)
    for (const Scored& negative : scores) {
      if (!positive.is_positive || negative.is_positive) continue;
      pairs += 1.0;
      if (is_tie(positive.probability, negative.probability))
        above += 0.5;
      else if (positive.probability > negative.probability)
        above += 1.0;
    }
  return above / pairs;
}

std::size_t bin_of(double probability) {
  return static_cast<std::size_t>(probability * static_cast<double>(kAucBins));
}

TEST(ModelMetric, AucIsTheRankStatisticWithTiesWithinABin) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<Scored> scores = random_scores(random, 600);
    const auto same_bin = [](double a, double b) { return bin_of(a) == bin_of(b); };
    EXPECT_NEAR(auc_of(scores), rank_statistic(scores, same_bin), 1e-12) << "seed " << seed;
    // The exact statistic differs from it by at most half the share of the pairs within a bin.
    const double exact = rank_statistic(scores, [](double a, double b) { return a == b; });
    EXPECT_NEAR(auc_of(scores), exact, 1.0 / static_cast<double>(kAucBins)) << "seed " << seed;
    EXPECT_GT(exact, 0.6);
  }
}

TEST(ModelMetric, AucOfSeparatedEqualAndReversedExamples) {
  EXPECT_DOUBLE_EQ(auc_of({{0.2, false}, {0.3, false}, {0.8, true}}), 1.0);
  EXPECT_DOUBLE_EQ(auc_of({{0.8, false}, {0.2, true}}), 0.0);
  EXPECT_DOUBLE_EQ(auc_of({{0.5, false}, {0.5, true}}), 0.5);
  EXPECT_TRUE(std::isnan(auc_of({{0.5, true}}))) << "no negative example";
  EXPECT_TRUE(std::isnan(auc_of({{0.5, false}}))) << "no positive example";
}

TEST(ModelMetric, ProbabilityOutsideZeroToOneCountsAsTheNearestOne) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double low : {-1.0, -infinity, 0.0, std::nan("")})
    EXPECT_EQ(auc_accumulator({{low, false}}), auc_accumulator({{0.0, false}})) << low;
  for (const double high : {1.0, 2.0, infinity})
    EXPECT_EQ(auc_accumulator({{high, true}}), auc_accumulator({{0.99999, true}})) << high;
}

// The accumulators of these kinds have two numbers: a numerator and a denominator.
constexpr MetricKind kQuotients[] = {MetricKind::kMean,      MetricKind::kAccuracy,  MetricKind::kTopK,
                                     MetricKind::kPrecision, MetricKind::kRecall,    MetricKind::kMse,
                                     MetricKind::kMae,       MetricKind::kPerplexity};

TEST(ModelMetric, QuotientsAreThoseOfAllExamples) {
  std::mt19937_64 random(7);
  for (const MetricKind kind : kQuotients) {
    std::vector<double> terms(500);
    for (double& term : terms) term = random_share(random);
    double sum = 0.0;
    for (const double term : terms) sum += term;
    const double mean = sum / 500.0;
    const double expected = kind == MetricKind::kPerplexity ? std::exp(mean) : mean;
    EXPECT_NEAR(metric_value({"m", kind}, std::vector<double>{sum, 500.0}), expected, 1e-12);
    EXPECT_TRUE(std::isnan(metric_value({"m", kind}, std::vector<double>{0.0, 0.0})));
  }
}

TEST(ModelMetric, PerplexityOfUniformGuessesIsTheNumberOfClasses) {
  const double loss = -std::log(1.0 / 65.0);
  EXPECT_NEAR(metric_value({"perplexity", MetricKind::kPerplexity}, std::vector<double>{10.0 * loss, 10.0}), 65.0,
              1e-9);
}

// Counts are whole numbers, and the other terms are multiples of 1/1024. So their sums are exact in any order.
TEST(ModelMetric, AnySplitMergesToTheSameValues) {
  std::vector<MetricSpec> metrics = {{"auc", MetricKind::kAuc}};
  for (const MetricKind kind : kQuotients) metrics.push_back({to_string(MetricSpec{"", kind, 5}), kind, 5});
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t workers = 1 + random() % 8;
    std::vector<double> whole(accumulator_size(metrics));
    std::vector<std::vector<double>> parts(workers, whole);
    for (const Scored& one : random_scores(random, 400)) {
      std::vector<double>& part = parts[random() % workers];
      for (std::vector<double>* accumulators : {&whole, &part}) {
        add_to_auc(one.probability, one.is_positive, std::span(*accumulators).first(2 * kAucBins));
        for (std::size_t i = 2 * kAucBins; i < accumulators->size(); i += 2) {
          (*accumulators)[i] += std::floor(one.probability * 1024.0) / 1024.0;
          (*accumulators)[i + 1] += 1.0;
        }
      }
    }
    std::shuffle(parts.begin(), parts.end(), random);
    std::vector<double> merged(accumulator_size(metrics));
    for (const std::vector<double>& part : parts) merged = sum_of(merged, part);
    EXPECT_EQ(metric_values(metrics, merged), metric_values(metrics, whole)) << "seed " << seed;
  }
}

TEST(ModelMetric, ValuesHaveTheNamesAndTheOrderOfTheMetrics) {
  const std::vector<MetricSpec> metrics = {
      {"right", MetricKind::kAccuracy}, {"auc", MetricKind::kAuc}, {"mae", MetricKind::kMae}};
  std::vector<double> accumulators(accumulator_size(metrics));
  ASSERT_EQ(accumulators.size(), 4 + 2 * kAucBins);
  accumulators[0] = 3.0;
  accumulators[1] = 4.0;
  add_to_auc(0.1, false, std::span(accumulators).subspan(2, 2 * kAucBins));
  add_to_auc(0.9, true, std::span(accumulators).subspan(2, 2 * kAucBins));
  accumulators[2 + 2 * kAucBins] = 1.0;
  accumulators[3 + 2 * kAucBins] = 2.0;
  EXPECT_EQ(metric_values(metrics, accumulators),
            (std::vector<MetricValue>{{"right", 0.75}, {"auc", 1.0}, {"mae", 0.5}}));
}

TEST(ModelMetric, EachKindHasANameThatIsParsedBack) {
  for (int kind = 0; kind <= static_cast<int>(MetricKind::kMae); ++kind) {
    const MetricSpec metric{"x", static_cast<MetricKind>(kind), 5};
    const Result<MetricSpec> parsed = parse_metric_kind(to_string(metric));
    ASSERT_TRUE(parsed) << to_string(metric);
    EXPECT_EQ(parsed->kind, metric.kind);
    EXPECT_EQ(parsed->name, to_string(metric));
    if (metric.kind == MetricKind::kTopK) {
      EXPECT_EQ(parsed->k, 5u);
    }
  }
  for (const char* text : {"", "top_", "top_0", "top_x", "top_5x", "top_k", "top_99999999999", "f1", "Accuracy"})
    EXPECT_FALSE(parse_metric_kind(text)) << text;
  EXPECT_EQ(parse_metric_kind("f1").error().code, ErrorCode::kConfig);
}

TEST(ModelMetric, NamesAreShortPlainAndNotTakenByTheJobsOwnFigures) {
  for (const char* name : {"accuracy", "top_5", "val/F1-macro.2", "a"}) EXPECT_TRUE(is_metric_name(name)) << name;
  for (const char* name : {"", "two words", "a\n", "caf\u00e9", "a{b}", "a\"b", "loss", "learning_rate",
                           "steps_per_second", "examples_per_second"})
    EXPECT_FALSE(is_metric_name(name)) << name;
  EXPECT_TRUE(is_metric_name(std::string(kMaxMetricNameBytes, 'a')));
  EXPECT_FALSE(is_metric_name(std::string(kMaxMetricNameBytes + 1, 'a')));
}

std::string why(const Status& status) {
  return status ? "" : status.error().message;
}

TEST(ModelMetric, ListsOfMetricsAreChecked) {
  EXPECT_TRUE(check_metrics(std::vector<MetricSpec>()));
  EXPECT_TRUE(check_metrics(std::vector<MetricSpec>{{"a"}, {"b", MetricKind::kTopK, 5}}));
  EXPECT_EQ(why(check_metrics(std::vector<MetricSpec>{{"a", MetricKind::kTopK, 0}})),
            "metric a has k = 0; expected at least 1");
  EXPECT_EQ(why(check_metrics(std::vector<MetricSpec>{{"a"}, {"b"}, {"a"}})),
            "two metrics are named \"a\"; give each a name of its own");
  EXPECT_EQ(why(check_metrics(std::vector<MetricValue>{{"a", 1.0}, {"a", 2.0}})),
            "two metrics are named \"a\"; give each a name of its own");
  EXPECT_EQ(why(check_metrics(std::vector<MetricValue>{{"a\nb", 1.0}})).rfind("a metric can't be named \"a\\nb\"", 0),
            0u);
  std::vector<MetricValue> many;
  for (std::size_t i = 0; i <= kMaxMetrics; ++i) many.push_back({"m" + std::to_string(i), 0.0});
  EXPECT_EQ(why(check_metrics(many)), "there are 65 metrics; at most 64 are allowed");
  many.pop_back();
  EXPECT_TRUE(check_metrics(many));
}

TEST(ModelMetric, ValueOfAMetricThatIsNotThereIsNone) {
  EXPECT_EQ(value_of({{"a", 1.0}, {"b", 2.0}}, "b"), 2.0);
  EXPECT_EQ(value_of({{"a", 1.0}}, "b"), std::nullopt);
}

}  // namespace
}  // namespace disttrain
