#include "workerd/core/evaluator_core.h"

#include <gtest/gtest.h>

namespace disttrain::workerd {
namespace {

EvaluateCheckpoint order(std::uint32_t job, const std::string& path) {
  EvaluateCheckpoint order;
  order.job = JobId(job);
  order.generation = Generation(3);
  order.path = path;
  return order;
}

// "begin 1", "answer /c/1", "failed /c/1", "closed", "abandon", "release"
std::string words(const EvaluatorActions& actions) {
  std::string text;
  for (const EvaluatorAction& action : actions) {
    if (!text.empty()) text += ", ";
    if (std::holds_alternative<AbandonEvaluation>(action)) text += "abandon";
    if (std::holds_alternative<ReleaseJob>(action)) text += "release";
    if (const auto* begin = std::get_if<BeginEvaluation>(&action))
      text += "begin " + std::to_string(begin->ticket.value);
    if (const auto* answer = std::get_if<AnswerChief>(&action)) {
      if (const auto* evaluated = std::get_if<Evaluated>(&answer->message)) text += "answer " + evaluated->path;
      if (const auto* failed = std::get_if<EvaluationFailed>(&answer->message)) text += "failed " + failed->path;
      if (std::holds_alternative<JobClosed>(answer->message)) text += "closed";
    }
  }
  return text;
}

TEST(EvaluatorCore, ARepeatedOrderIsCarriedOutOnceAndItsAnswerRepeated) {
  EvaluatorCore core;
  EXPECT_EQ(words(core.on_order(order(1, "/c/1"))), "begin 1");
  EXPECT_EQ(words(core.on_order(order(1, "/c/1"))), "");
  EXPECT_EQ(words(core.on_done(EvaluationTicket(1), Evaluated{})), "answer /c/1");
  EXPECT_EQ(words(core.on_order(order(1, "/c/1"))), "answer /c/1");
  EXPECT_EQ(words(core.on_order(order(1, "/c/2"))), "begin 2");
}

TEST(EvaluatorCore, ANewOrderReplacesTheCurrentOneWhoseEndIsIgnored) {
  EvaluatorCore core;
  core.on_order(order(1, "/c/1"));
  EXPECT_EQ(words(core.on_order(order(1, "/c/2"))), "abandon, begin 2");
  EXPECT_EQ(words(core.on_done(EvaluationTicket(1), Evaluated{})), "");
  EXPECT_EQ(words(core.on_done(EvaluationTicket(2), Evaluated{})), "answer /c/2");
}

TEST(EvaluatorCore, AFailureIsTriedAgain) {
  EvaluatorCore core;
  core.on_order(order(1, "/c/1"));
  EXPECT_EQ(words(core.on_failed(EvaluationTicket(1), Error{ErrorCode::kData, "damaged"})), "failed /c/1");
  EXPECT_EQ(words(core.on_order(order(1, "/c/1"))), "begin 2");
}

TEST(EvaluatorCore, AnotherJobOrACloseReleasesTheJob) {
  EvaluatorCore core;
  core.on_order(order(1, "/c/1"));
  EXPECT_EQ(words(core.on_order(order(2, "/c/1"))), "abandon, release, begin 2");
  EXPECT_EQ(words(core.on_close(JobId(1))), "closed");
  EXPECT_EQ(core.job(), JobId(2));
  EXPECT_EQ(words(core.on_close(JobId(2))), "abandon, release, closed");
  EXPECT_EQ(words(core.on_done(EvaluationTicket(2), Evaluated{})), "");
  EXPECT_EQ(words(core.on_drop()), "");
}

}  // namespace
}  // namespace disttrain::workerd
