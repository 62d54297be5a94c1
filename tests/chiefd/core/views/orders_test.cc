// OpenJob tells a worker how many batches it has done, and with which clock it begins.
#include "chiefd/core/job/views/orders.h"

#include "tests/chiefd/core/rules/rules_fixture.h"

namespace disttrain::chiefd {
namespace {

class OrdersView : public RuleTest {
 protected:
  void make_restored_job_at(Stage stage, Mode mode, Sharding sharding) {
    config_.train.mode = mode;
    config_.data.sharding = sharding;
    make_job_at(stage);
    PacerReport pacer;
    pacer.global_step = Step(1600);
    job_->generation.restore_from(
        RestorePoint{"/data/mnist/1600", Generation(), Step(1600), pacer, 100, {{worker(0), Step(400)}}});
    job_->progress.begin(pacer);
  }
  std::uint64_t batches(std::uint32_t index) { return views::order_to_open(*job_, member(worker(index))).batches; }
  std::uint64_t clock(std::uint32_t index) { return views::order_to_open(*job_, member(worker(index))).clock.value; }
};

// The global step counts the pushes of all workers.
TEST_F(OrdersView, WorkerGoesOnInItsOwnOrderAfterARollback) {
  for (const Mode mode : {Mode::kAsync, Mode::kSsp}) {
    make_restored_job_at(Stage::kOpen, mode, Sharding::kNone);
    EXPECT_EQ(batches(0), 400u);
    EXPECT_EQ(batches(1), 0u) << "it wasn't there before";
    EXPECT_EQ(clock(0), mode == Mode::kSsp ? 1600u : 400u) << "in ssp all begin with the same clock";
    EXPECT_EQ(clock(1), mode == Mode::kSsp ? 1600u : 0u);
  }
}

TEST_F(OrdersView, WorkerThatComesBackGoesOnInItsOwnOrder) {
  for (const Mode mode : {Mode::kAsync, Mode::kSsp}) {
    make_restored_job_at(Stage::kTrain, mode, Sharding::kNone);
    EXPECT_EQ(batches(0), 400u) << "it wasn't in this generation yet";
    job_->workers.note_own_batches(worker(0), Step(450));
    job_->workers.note_own_batches(worker(1), Step(50));
    EXPECT_EQ(batches(0), 450u);
    EXPECT_EQ(batches(1), 50u);
  }
}

// The pacer's answer may come when the job rolls back already.
TEST_F(OrdersView, WhatTheGenerationBeforeHadDoneIsForgotten) {
  make_restored_job_at(Stage::kFind, Mode::kSsp, Sharding::kNone);
  job_->workers.note_own_batches(worker(0), Step(450));
  job_->workers.begin_generation();
  EXPECT_EQ(batches(0), 400u);
}

TEST_F(OrdersView, InSyncEachStepHasABatchOfEachWorker) {
  make_restored_job_at(Stage::kTrain, Mode::kSync, Sharding::kNone);
  EXPECT_EQ(batches(0), 1600u);
  EXPECT_EQ(clock(0), 1600u);
}

TEST_F(OrdersView, WorkersWithLeasesHaveNoOrder) {
  make_restored_job_at(Stage::kTrain, Mode::kAsync, Sharding::kLease);
  EXPECT_EQ(batches(0), 0u);
  EXPECT_EQ(clock(0), 1600u);
}

}  // namespace
}  // namespace disttrain::chiefd
