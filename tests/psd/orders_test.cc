// The chief sends new orders before the ps has carried out the old ones. The ps carries out only the newest order, and
// doesn't wait until cancelled work ends.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/common/checkpoint/small_job.h"
#include "tests/psd/job_on_disk.h"

namespace disttrain::psd::test {
namespace {

class PsOrders : public PsWithFolder {
 protected:
  explicit PsOrders(std::uint32_t threads = 1, Duration patience = std::chrono::minutes(1))
      : PsWithFolder(threads, patience) {}

  // The order to create a job that begins with a checkpoint of the step `step`.
  CreateShards restore(std::uint64_t generation, std::uint64_t step, std::uint32_t shards = 2) {
    CreateShards created = order_with_folder(shards, 1, "async");
    created.generation = Generation(generation);
    const auto saved = checkpoint::save(files_, folder_, created.layout, generation, step, 0, step);
    EXPECT_TRUE(saved) << saved.error().message;
    created.restore_path = *saved;
    return created;
  }
  long opened_within(const std::string& folder) const {
    const std::vector<std::string> paths = files_.opened();
    return std::count_if(paths.begin(), paths.end(), [&](const std::string& path) { return path.starts_with(folder); });
  }
  // The ps gives its shards half of the heartbeat timeout before it refuses arrivals.
  void let_heartbeats_pass(int more) {
    const int before = chief_.heartbeats;
    EXPECT_TRUE(until([&] { return chief_.heartbeats >= before + more; }));
  }
  void expect_only(Generation generation) {
    std::optional<ShardsCreated> created = hears<ShardsCreated>();
    EXPECT_EQ(created->generation, generation);
    settle();
    EXPECT_FALSE(chief_.take<ShardsCreated>()) << "one answer for the shards that are there";
    EXPECT_FALSE(chief_.take<TaskFailed>()) << "a cancelled order doesn't count as failed";
  }
};

TEST_F(PsOrders, OfThoseThatComeDuringARestoreTheNewestIsCarriedOut) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const CreateShards first = restore(3, 10);
  const CreateShards second = restore(4, 20);
  const CreateShards third = restore(5, 30);
  files_.hold(GatedFiles::Op::kRead, first.restore_path + "/shard-0");
  chief_.send(first);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  const long opened_before = opened_within(first.restore_path);
  const long opened_second = opened_within(second.restore_path);
  chief_.send(second);
  chief_.send(third);
  settle();
  files_.let_go();
  expect_only(Generation(5));
  EXPECT_EQ(opened_within(first.restore_path), opened_before) << "the rest wasn't read";
  EXPECT_EQ(opened_within(second.restore_path), opened_second) << "it was never begun";
  EXPECT_TRUE(until([&] { return chief_.last_heartbeat->generation == Generation(5); }));
}

TEST_F(PsOrders, OlderOneThatComesLateChangesNothing) {
  CreateShards first = order_with_folder(2, 1, "async");
  create_job(first);
  first.generation = Generation(2);
  chief_.send(first);
  prepare(1);  // the ps answers this only if it still has generation 3
  EXPECT_EQ(hears<CheckpointPrepared>()->generation, Generation(3));
  EXPECT_FALSE(chief_.take<ShardsCreated>());
}

TEST_F(PsOrders, JobThatIsClosedWhileItIsRestoredIsLeft) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const CreateShards first = restore(3, 10);
  const CreateShards second = restore(4, 20);
  files_.hold(GatedFiles::Op::kRead, first.restore_path + "/shard-0");
  const long opened_second = opened_within(second.restore_path);
  chief_.send(first);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  chief_.send(second);
  chief_.send(CloseJob{JobId(5), Generation(4), "killed"});
  settle();
  files_.let_go();
  EXPECT_EQ(hears<JobClosed>()->job, JobId(5)) << "once all of it is released";
  EXPECT_TRUE(until([&] { return chief_.last_heartbeat->job == JobId(0); }));
  EXPECT_EQ(opened_within(second.restore_path), opened_second) << "it was never begun";
  EXPECT_FALSE(chief_.take<ShardsCreated>());
}

// Else the other ps takes this one for unreachable, and the job rolls back.
TEST_F(PsOrders, ShardsOfOthersAreToldThatTheirPacerIsStillRestored) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const Member other{TaskId{Role::kPs, 1}, Incarnation(4712)};
  CreateShards order = restore(3, 10);
  order.owners[1] = Owner{other, "127.0.0.1:1"};
  files_.hold(GatedFiles::Op::kRead, order.restore_path + "/shard-0");
  chief_.send(order);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  let_heartbeats_pass(10);
  const Hello hello = hello_of(ShardPeerHello{JobId(5), Generation(3), ShardId(1), other, 99});
  const auto early = dial(hello);
  ASSERT_TRUE(early->answer) << "it is answered at once";
  ASSERT_TRUE(std::holds_alternative<Refused>(*early->answer));
  EXPECT_EQ(std::get<Refused>(*early->answer).code, ErrorCode::kTemporary);
  files_.let_go();
  EXPECT_EQ(hears<ShardsCreated>()->generation, Generation(3));
  const auto again = dial(hello);
  EXPECT_TRUE(again->answer && std::holds_alternative<Welcome>(*again->answer));
}

// Its thread makes the second shard after the pacer.
TEST_F(PsOrders, ShardsOfOthersAreToldThatTheThreadOfTheirPacerIsBusy) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const Member other{TaskId{Role::kPs, 1}, Incarnation(4712)};
  CreateShards order = restore(3, 10, 3);
  order.owners[2] = Owner{other, "127.0.0.1:1"};
  files_.hold(GatedFiles::Op::kRead, order.restore_path + "/shard-1");
  chief_.send(order);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  let_heartbeats_pass(10);
  const auto early = dial(hello_of(ShardPeerHello{JobId(5), Generation(3), ShardId(2), other, 99}));
  ASSERT_TRUE(early->answer) << "it is answered at once";
  EXPECT_TRUE(std::holds_alternative<Refused>(*early->answer));
  files_.let_go();
}

TEST_F(PsOrders, CheckpointThatHangsHoldsOnlyItsJob) {
  create_job(order_with_folder(2, 1, "async"));
  const std::string hung = begin_attempt(1);
  files_.hold(GatedFiles::Op::kReserve, hung);
  chief_.send(PrepareCheckpoint{JobId(5), Generation(3), 1, hung, false});
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  chief_.send(CloseJob{JobId(5), Generation(3), "killed"});
  EXPECT_EQ(hears<JobClosed>()->job, JobId(5));
  CreateShards next = order_with_folder(2, 1, "async");
  next.job = JobId(6);
  chief_.send(next);
  EXPECT_EQ(hears<ShardsCreated>()->job, JobId(6));
  const std::string path = begin_attempt(2);
  chief_.send(PrepareCheckpoint{JobId(6), Generation(3), 2, path, false});
  EXPECT_EQ(hears<CheckpointPrepared>()->job, JobId(6));
  EXPECT_TRUE(files_.is_waiting()) << "the first job's checkpoint still hangs";
  files_.let_go();
}

// The other thread gets on meanwhile.
class PsThatHangs : public PsOrders {
 protected:
  PsThatHangs() : PsOrders(2, std::chrono::milliseconds(200)) {}
};

TEST_F(PsThatHangs, EndsItsProcessIfAFileKeepsAThreadInAJobThatIsOver) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const CreateShards order = restore(3, 10);
  files_.hold(GatedFiles::Op::kRead, order.restore_path + "/shard-0");
  chief_.send(order);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  let_heartbeats_pass(5);
  EXPECT_FALSE(has_hung_) << "the job isn't over, and may wait for its file system";
  chief_.send(CloseJob{JobId(5), Generation(3), "killed"});
  EXPECT_TRUE(until([&] { return has_hung_.load(); }));
  files_.let_go();
}

// A job that rolls back may read the same files again, so the end of this process would help nobody.
TEST_F(PsThatHangs, WaitsForAFileThatTheNextGenerationMayNeed) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const CreateShards first = restore(3, 10);
  const CreateShards second = restore(4, 20);
  files_.hold(GatedFiles::Op::kRead, first.restore_path + "/shard-0");
  chief_.send(first);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  chief_.send(second);
  let_heartbeats_pass(5);
  EXPECT_FALSE(has_hung_);
  files_.let_go();
  expect_only(Generation(4));
}

TEST_F(PsThatHangs, EndsItsProcessIfTheJobEndsWhileItsRollbackWaits) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const CreateShards first = restore(3, 10);
  const CreateShards second = restore(4, 20);
  files_.hold(GatedFiles::Op::kRead, first.restore_path + "/shard-0");
  chief_.send(first);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  chief_.send(second);
  let_heartbeats_pass(5);
  chief_.send(CloseJob{JobId(5), Generation(4), "killed"});
  EXPECT_TRUE(until([&] { return has_hung_.load(); }));
  files_.let_go();
}

TEST_F(PsOrders, HeartbeatsSayThatARestoreGetsOn) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  const CreateShards order = restore(3, 10);
  files_.hold(GatedFiles::Op::kRead, order.restore_path + "/shard-0");
  chief_.send(order);
  ASSERT_TRUE(until([&] { return files_.is_waiting() && chief_.last_heartbeat->job == JobId(5); }));
  const std::uint64_t before = chief_.last_heartbeat->work;
  files_.let_go();
  EXPECT_TRUE(until([&] { return chief_.last_heartbeat->work > before; }));
}

}  // namespace
}  // namespace disttrain::psd::test
