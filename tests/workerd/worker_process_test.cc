// What a worker does for a job that nothing disturbs.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <optional>

#include "common/checkpoint/kept_csv.h"
#include "tests/workerd/worker_process_fixture.h"

namespace disttrain::workerd {
namespace {

TEST_F(WorkerProcessTest, RegistersAndBeats) {
  start_worker();
  EXPECT_EQ(chief_->hellos.at(0).member.incarnation, Incarnation(42));
  EXPECT_FALSE(chief_->hellos.at(0).address.ends_with(":0"));
  const Heartbeat beat = chief_->wait_for<Heartbeat>();
  EXPECT_EQ(beat.job, JobId());
  EXPECT_EQ(beat.phase, Phase::kIdle);
  EXPECT_EQ(beat.phase_times.size(), static_cast<std::size_t>(kPhases));
}

TEST_F(WorkerProcessTest, DescribesTheModelAndTheData) {
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  const JobDescribed described = chief_->wait_for<JobDescribed>();
  EXPECT_EQ(described.model, describe_fake(fake_model()));
  EXPECT_EQ(described.train_records, kRecords);
  EXPECT_EQ(described.evaluation_records, 20U);
}

// Without [data.columns], too: the numbers of the labels follow from all of their words.
TEST_F(WorkerProcessTest, DescribesTheLabelsAndTheHeaderOfCsvFiles) {
  std::ofstream(folder_ / "train.csv") << "width,height,kind\n1,2,dog\n3,4,cat\n5,6,Cat\n7,8,dog\n";
  std::ofstream(folder_ / "test.csv") << "width,height,kind\n1,2,dog\n";
  start_worker();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  const JobDescribed described = chief_->wait_for<JobDescribed>();
  const auto columns = checkpoint::decode_columns(described.columns, "columns");
  ASSERT_TRUE(columns) << columns.error().message;
  const checkpoint::KeptCsv expected{{"Cat", "cat", "dog"}, {"width", "height", "kind"}};
  EXPECT_EQ(checkpoint::csv_of(*columns), expected);
}

TEST_F(WorkerProcessTest, TrainsAWholeJobAndEvaluates) {
  start_worker();
  lend_all();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<JobDescribed>();
  open_and_start();
  const WorkerFinished finished = chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(finished.steps, 13U) << "30 and 20 records by 4: 8 and 5";
  EXPECT_EQ(shards_.examples, kRecords);
  EXPECT_EQ(shards_.values, expected());
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  const Evaluated evaluated = chief_->wait_for<Evaluated>();
  EXPECT_TRUE(evaluated.final);
  EXPECT_EQ(evaluated.examples, 20U);
  EXPECT_EQ(evaluated.step, Step(13));
  EXPECT_TRUE(value_of(evaluated.metrics, "accuracy").has_value());
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), "finished"});
  chief_->wait_for<JobClosed>();
  run_until(loop_, [this] { return shards_.peers[0]->closed && shards_.peers[1]->closed; });
}

TEST_F(WorkerProcessTest, PipelineTrainsTheSame) {
  start_worker();
  lend_all();
  open_and_start("pipeline = 1");
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.examples, kRecords);
  EXPECT_EQ(shards_.values, expected());
}

TEST_F(WorkerProcessTest, HeartbeatsGoOnDuringAComputationAndTellOfIt) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  run_until(loop_, [this] {
    const auto beats = chief_->heard<Heartbeat>();
    return !beats.empty() && beats.back().phase == Phase::kCompute && beats.back().in_phase > Duration::zero();
  });
  open_gate();
  chief_->wait_for<WorkerFinished>();
}

TEST_F(WorkerProcessTest, ProbeOfItsAddressIsAnswered) {
  start_worker();
  chief_->wait_for<Heartbeat>();
  Hello hello;
  hello.cluster = "test";
  hello.who = ClientHello{"somebody"};
  const auto bytes = wire::encode(hello);
  transport::OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  frame.control = bytes;
  std::unique_ptr<Peer> probe;
  std::optional<wire::FrameType> answer;
  transport_->dial(loop_, chief_->hellos[0].address, frame, std::chrono::seconds(5),
                   [&](Result<std::unique_ptr<transport::Connection>> connection) {
                     ASSERT_TRUE(connection) << connection.error().message;
                     probe = std::make_unique<Peer>(
                         std::move(*connection), [&](Peer&, const wire::FrameHeader& header, wire::Bytes, wire::Bytes) {
                           answer = header.type;
                         });
                   });
  run_until(loop_, [&] { return answer.has_value(); });
  EXPECT_EQ(*answer, wire::FrameType::kRefused);
}

}  // namespace
}  // namespace disttrain::workerd
