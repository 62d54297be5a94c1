// When a restarted chief goes on with a job.
#include "chiefd/core/job/rules/reclaim.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class ReclaimRule : public RuleTest {
 protected:
  ReclaimRule() {
    make_job_at(Stage::kReclaim);
    job_->stage.set_deadline(now_ + seconds(20));
    job_->reclaim.workers_until = now_ + seconds(2);
  }
  void come_back(TaskId task) { job_->reclaim.back.insert(member(task)); }
  std::string verdict() { return text(rules::reclaimed(*job_, tasks_, now_)); }
};

TEST_F(ReclaimRule, GoesOnAtOnceWhenAllAreBack) {
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1)}) come_back(task);
  EXPECT_EQ(verdict(), "stay");
  come_back(worker(2));
  EXPECT_EQ(verdict(), "reclaim");
}

TEST_F(ReclaimRule, GoesOnWithoutWorkersAfterTheirTime) {
  for (const TaskId task : {ps(0), ps(1), worker(0)}) come_back(task);
  EXPECT_EQ(verdict(), "stay");
  now_ += seconds(2);
  EXPECT_EQ(verdict(), "reclaim");
}

TEST_F(ReclaimRule, PsThatStaysAwayIsLost) {
  for (const TaskId task : {ps(0), worker(0), worker(1), worker(2)}) come_back(task);
  now_ += seconds(19);
  EXPECT_EQ(verdict(), "stay") << "the time of the workers doesn't count for a ps";
  now_ += seconds(1);
  EXPECT_EQ(verdict(), "recover (counts): ps/1: it was lost while the chief was away");
  job_->stage.clear_deadline();
  EXPECT_EQ(verdict(), "recover (counts): ps/1: it was lost while the chief was away");
  job_->reclaim.told_to_end.insert("ps/1");
  EXPECT_EQ(verdict(), "recover (left): ps/1: it was lost while the chief was away");
}

TEST_F(ReclaimRule, PacerHasToReportInTime) {
  job_->stage.await(now_, {job_->generation.pacer()}, now_ + seconds(5));
  now_ += seconds(5) - std::chrono::milliseconds(1);
  EXPECT_EQ(verdict(), "stay");
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(verdict(), "recover (counts): ps/0: it heartbeats, but didn't report the job's step in time");
  disconnect(ps(0));
  EXPECT_EQ(verdict(), "wait again") << "the pacer can't be heard";
}

}  // namespace
}  // namespace disttrain::chiefd
