// The metrics in the JSON of a job's status.
#include "chiefd/status_json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace disttrain::chiefd {
namespace {

using nlohmann::json;

json json_of(const JobStatus& status) {
  return to_json(status, ChiefStatus(), LogStore());
}

TEST(StatusJson, TrainingMetricsStandBesideTheLoss) {
  JobStatus status;
  EXPECT_EQ(json_of(status)["metrics"], (json{{"loss", nullptr}}));
  status.loss = 0.5;
  status.metrics = {{"accuracy", 0.75}, {"top_5", 1.0}};
  EXPECT_EQ(json_of(status)["metrics"], (json{{"loss", 0.5}, {"accuracy", 0.75}, {"top_5", 1.0}}));
  EXPECT_EQ(json_of(status)["loss"], 0.5);
}

TEST(StatusJson, EvaluationHasItsMetricsByNameAndTheAccuracyOnceMore) {
  JobStatus status;
  EXPECT_EQ(json_of(status)["evaluation"], nullptr);
  status.evaluation = EvaluationStatus{Step(7), 0.5, {{"auc", 0.875}, {"recall", std::nan("")}}, 100, true, 0xabc};
  EXPECT_EQ(json_of(status)["evaluation"], (json{{"accuracy", nullptr},
                                                 {"loss", 0.5},
                                                 {"metrics", {{"auc", 0.875}, {"recall", nullptr}}},
                                                 {"examples", 100},
                                                 {"step", 7},
                                                 {"parameters_hash", "0000000000000abc"}}));
  status.evaluation->metrics = {{"accuracy", 0.25}};
  EXPECT_EQ(json_of(status)["evaluation"]["accuracy"], 0.25);
  status.evaluation->metrics = {};
  EXPECT_EQ(json_of(status)["evaluation"]["metrics"], json::object());
}

}  // namespace
}  // namespace disttrain::chiefd
