// Data that a worker can't use: the job fails, the worker goes on, and its metrics count the failure by its reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/workerd/worker_process_fixture.h"

namespace disttrain::workerd {
namespace {

TEST_F(WorkerProcessTest, MissingDataComesBackWithItsCodeAndTheWorkerLivesOn) {
  std::filesystem::remove(folder_ / "train.csv");
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  const TaskFailed failed = chief_->wait_for<TaskFailed>();
  EXPECT_EQ(failed.code, ErrorCode::kNoInput);
  EXPECT_NE(failed.reason.find("train.csv"), std::string::npos) << failed.reason;
  chief_->worker().tell(CloseJob{JobId(5), Generation(), "no data"});
  EXPECT_EQ(chief_->wait_for<JobClosed>().job, JobId(5));
}

TEST_F(WorkerProcessTest, TrainingDataThatCannotBeUsedIsCountedByItsReason) {
  std::ofstream(folder_ / "train.csv") << "1,2,3,4\n";
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<TaskFailed>();
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "0", "1"}));
  chief_->messages.clear();
  std::filesystem::remove(folder_ / "train.csv");
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<TaskFailed>();
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"1", "0", "0", "1"}));
}

TEST_F(WorkerProcessTest, EngineThatCannotBeMadeIsNoErrorOfTheData) {
  no_engine_ = Error{ErrorCode::kConfig, "there is no device cuda:7"};
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<TaskFailed>().reason, no_engine_->message);
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "0", "0"}));
}

TEST_F(WorkerProcessTest, EvaluationDataThatCannotBeUsedIsCountedWhenDescribed) {
  std::filesystem::remove(folder_ / "test.csv");
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<TaskFailed>().code, ErrorCode::kNoInput);
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"1", "0", "0", "0"}));
}

TEST_F(WorkerProcessTest, EvaluationDataThatCannotBeUsedIsCountedWhenEvaluated) {
  std::ofstream(folder_ / "test.csv") << "1,1,nonsense,3\n";
  start_worker();
  lend_all();
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "0", "0"}));
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  EXPECT_EQ(chief_->wait_for<TaskFailed>().code, ErrorCode::kData);
  EXPECT_EQ(data_errors(), (std::vector<std::string>{"0", "0", "1", "0"}));
}

}  // namespace
}  // namespace disttrain::workerd
