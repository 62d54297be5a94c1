#include "chiefd/core/evaluation_book.h"

#include <gtest/gtest.h>

#include <cmath>

namespace disttrain::chiefd {
namespace {

KeptCheckpoint at(std::uint64_t step, std::uint64_t generation = 1) {
  return {Generation(generation), Step(step), "/c/" + std::to_string(generation) + "-" + std::to_string(step)};
}

class EvaluationBookTest : public testing::Test {
 protected:
  void note(std::uint64_t step, double loss, std::uint64_t generation = 1) {
    const KeptCheckpoint checkpoint = at(step, generation);
    EvaluationStatus status;
    status.step = Step(step);
    status.loss = loss;
    book_.note(status, &checkpoint, rules_);
  }
  std::vector<std::uint64_t> best() const {
    std::vector<std::uint64_t> steps;
    for (const BestCheckpoint& one : book_.record().best) steps.push_back(one.checkpoint.step.value);
    return steps;
  }

  EvaluationRules rules_{"loss", false, 3, 2};
  EvaluationBook book_;
};

TEST_F(EvaluationBookTest, TheJobEndsAfterSoManyEvaluationsInARowWithoutProgress) {
  note(10, 0.5);
  note(20, 0.6);
  note(30, 0.6);
  EXPECT_EQ(book_.record().early_end, "");
  note(40, 0.4);
  note(50, 0.4);
  note(60, 0.5);
  EXPECT_EQ(book_.record().early_end, "");
  note(70, 0.5);
  EXPECT_EQ(book_.record().early_end,
            "finished early: 3 evaluations in a row had no better loss; the best one is 0.4, at step 40 "
            "(evaluate.stop_after)");
}

TEST_F(EvaluationBookTest, ACheckpointCountsOnce) {
  note(10, 0.5);
  for (int i = 0; i < 5; ++i) note(20, 0.6);
  EXPECT_EQ(book_.record().without_progress, 1u);
}

TEST_F(EvaluationBookTest, StepsThatTheJobRepeatsAfterARollbackDontCountAgain) {
  note(10, 0.5);
  note(20, 0.6);
  note(15, 0.7, 2);
  note(20, 0.7, 2);
  EXPECT_EQ(book_.record().without_progress, 1u);
  note(30, 0.7, 2);
  EXPECT_EQ(book_.record().without_progress, 2u);
}

TEST_F(EvaluationBookTest, TheBestAreKeptInTheirOrderAndTheOlderOfTwoEqualOnesComesFirst) {
  note(10, 0.5);
  note(20, 0.3);
  note(30, 0.3);
  EXPECT_EQ(best(), (std::vector<std::uint64_t>{20, 30}));
  note(40, 0.1);
  EXPECT_EQ(best(), (std::vector<std::uint64_t>{40, 20}));
}

TEST_F(EvaluationBookTest, NotANumberIsNoProgressAndNeverTheBest) {
  note(10, std::nan(""));
  note(20, 0.5);
  note(30, std::nan(""));
  EXPECT_EQ(best(), std::vector<std::uint64_t>{20});
  EXPECT_EQ(book_.record().without_progress, 1u);
}

TEST_F(EvaluationBookTest, ACheckpointThatIsGoneIsForgotten) {
  note(10, 0.5);
  note(20, 0.3);
  EXPECT_TRUE(book_.keep_only({at(10), at(30)}));
  EXPECT_EQ(best(), std::vector<std::uint64_t>{10});
  EXPECT_TRUE(book_.has_evaluated(at(10)));
  EXPECT_FALSE(book_.has_evaluated(at(30)));
}

TEST_F(EvaluationBookTest, TheListOfEvaluatedCheckpointsIsBounded) {
  for (std::uint64_t step = 1; step <= kMaxEvaluatedKept + 10; ++step) note(step, 0.5);
  EXPECT_EQ(book_.record().evaluated.size(), kMaxEvaluatedKept);
  for (std::uint64_t step = 1; step <= kMaxEvaluatedKept + 10; ++step) EXPECT_TRUE(book_.has_evaluated(at(step)));
}

TEST(EvaluationRules, TheKindOfAMetricSaysWhichValuesAreBetter) {
  const std::vector<MetricSpec> metrics = {
      {"auc", MetricKind::kAuc, 1}, {"mse", MetricKind::kMse, 1}, {"mine", MetricKind::kMean, 1}};
  EvaluateSection section;
  EXPECT_FALSE(evaluation_rules(section, metrics)->is_higher_better);
  section.metric = "auc";
  EXPECT_TRUE(evaluation_rules(section, metrics)->is_higher_better);
  section.metric = "mse";
  EXPECT_FALSE(evaluation_rules(section, metrics)->is_higher_better);
  section.metric = "mine";
  EXPECT_NE(evaluation_rules(section, metrics).error().message.find("set evaluate.better"), std::string::npos);
  section.better = Better::kHigher;
  EXPECT_TRUE(evaluation_rules(section, metrics)->is_higher_better);
  section.metric = "f1";
  EXPECT_EQ(
      evaluation_rules(section, metrics).error().message,
      "evaluate.metric is \"f1\", but the model's metrics are \"loss\", \"auc\", \"mse\", \"mine\": set it to one "
      "of these");
}

TEST_F(EvaluationBookTest, TheNextJobInTheFolderGoesOnWithWhatThisOneFound) {
  note(10, 0.3);
  note(20, 0.6);
  note(30, 0.5);
  EvaluationBook next;
  ASSERT_TRUE(next.resume(book_.kept(rules_), rules_));
  book_ = next;
  EXPECT_EQ(best(), (std::vector<std::uint64_t>{10, 30}));
  EXPECT_TRUE(book_.has_evaluated(at(20)));
  note(30, 0.9);  // the job repeats this step
  EXPECT_EQ(book_.record().without_progress, 2u);
  note(40, 0.9);
  EXPECT_NE(book_.record().early_end, "") << "the third in a row, counted over both jobs";
  EXPECT_EQ(best(), (std::vector<std::uint64_t>{10, 30}));
}

TEST_F(EvaluationBookTest, AJobThatFinishedEarlyDoesSoAgainUnlessItsLimitIsLarger) {
  for (const std::uint64_t step : {10, 20, 30, 40}) note(step, 0.5);
  ASSERT_NE(book_.record().early_end, "");
  EvaluationBook same;
  ASSERT_TRUE(same.resume(book_.kept(rules_), rules_));
  EXPECT_EQ(same.record().early_end, book_.record().early_end);
  EvaluationBook larger;
  rules_.stop_after = 4;
  ASSERT_TRUE(larger.resume(book_.kept(rules_), rules_));
  EXPECT_EQ(larger.record().early_end, "");
}

TEST_F(EvaluationBookTest, ValuesOfAnotherMetricAreNotCompared) {
  note(10, 0.3);
  const KeptEvaluations kept = book_.kept(rules_);
  EvaluationBook next;
  EXPECT_FALSE(next.resume(kept, {"auc", false, 3, 2}));
  EXPECT_FALSE(next.resume(kept, {"loss", true, 3, 2}));
  EXPECT_EQ(next.record(), EvaluationsRecord());
}

TEST_F(EvaluationBookTest, FewerBestAreKeptIfTheNextJobSaysSo) {
  note(10, 0.3);
  note(20, 0.2);
  EvaluationBook next;
  rules_.keep_best = 1;
  ASSERT_TRUE(next.resume(book_.kept(rules_), rules_));
  book_ = next;
  EXPECT_EQ(best(), std::vector<std::uint64_t>{20});
}

}  // namespace
}  // namespace disttrain::chiefd
