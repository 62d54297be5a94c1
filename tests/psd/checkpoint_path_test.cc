// A checkpoint on a real ps. The test sends the chief's orders and the workers' marks, leaves some of them out, and
// checks the files on the disk.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "tests/psd/job_on_disk.h"

namespace disttrain::psd::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PsCheckpoint : public PsWithFolder {
 protected:
  // Two shards, two workers with a channel to each.
  void train(std::optional<Duration> stall_timeout = std::nullopt) {
    create_job(order_with_folder(2, 2, "async", stall_timeout));
    for (std::uint32_t w = 0; w < 2; ++w)
      for (std::uint32_t s = 0; s < 2; ++s) channels_.push_back(open_channel(w, s));
  }
  FakePeer& channel(std::uint32_t worker_index, std::uint32_t shard) { return *channels_[worker_index * 2 + shard]; }
  void mark_all(std::uint64_t attempt) {
    for (const auto& channel : channels_) channel->mark(attempt);
  }
  void prepare_and_hear(std::uint64_t attempt, bool holds = false) {
    prepare(attempt, holds);
    EXPECT_EQ(hears<CheckpointPrepared>()->attempt, attempt);
  }
  // The ps refuses a new attempt while it still closes the files of an earlier one. So this function repeats the order
  // with the next attempt number, as the chief does. Returns the attempt that the ps has prepared.
  std::uint64_t prepare_when_free(std::uint64_t first) {
    constexpr std::uint64_t kMostAttempts = 1000;
    for (std::uint64_t attempt = first; attempt < first + kMostAttempts; ++attempt) {
      prepare(attempt);
      std::optional<CheckpointPrepared> prepared;
      std::optional<CheckpointFailed> failed;
      EXPECT_TRUE(until([&] {
        prepared = chief_.take<CheckpointPrepared>();
        if (!prepared) failed = chief_.take<CheckpointFailed>();
        return prepared || failed;
      }));
      if (prepared) return prepared->attempt;
      if (!failed) break;
      EXPECT_EQ(failed->code, ErrorCode::kTemporary) << failed->reason;
    }
    ADD_FAILURE() << "the writer stays busy";
    return 0;
  }
  bool all_let_go(std::uint64_t attempt) {
    return until([&] {
      return std::all_of(channels_.begin(), channels_.end(), [attempt](const auto& channel) {
        return std::find(channel->let_go.begin(), channel->let_go.end(), attempt) != channel->let_go.end();
      });
    });
  }
  // The reports of both shards, in the order of their numbers.
  std::vector<ShardWritten> written() {
    std::vector<ShardWritten> both = {*hears<ShardWritten>(), *hears<ShardWritten>()};
    if (both[0].shard > both[1].shard) std::swap(both[0], both[1]);
    return both;
  }
  // The shard's parameters, which are the first values in its file.
  std::vector<float> values_in(const std::string& folder, const ShardWritten& shard) {
    std::ifstream file(folder + "/" + shard.file.name, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<float> values(shard.entry.words);
    EXPECT_GE(bytes.size(), shard.file.data_begin + values.size() * sizeof(float));
    std::memcpy(values.data(), bytes.data() + shard.file.data_begin, values.size() * sizeof(float));
    return values;
  }
  bool hears_parameters(FakePeer& channel) {
    return until([&] {
      const auto* last = channel.heard.empty() ? nullptr : std::get_if<Parameters>(&channel.heard.back().message);
      return last != nullptr && last->last;
    });
  }
  std::vector<float> values_at(FakePeer& channel) {
    channel.heard.clear();
    channel.pull(1);
    EXPECT_TRUE(hears_parameters(channel));
    // The answer begins with the buckets of the first layer. The file has the buckets in the order of their numbers, so
    // this function sorts them by number.
    std::map<std::uint32_t, std::vector<float>> buckets;
    for (const Heard& heard : channel.heard)
      if (const auto* answer = std::get_if<Parameters>(&heard.message)) buckets[answer->bucket.value] = heard.values;
    std::vector<float> values;
    for (const auto& [bucket, part] : buckets) values.insert(values.end(), part.begin(), part.end());
    return values;
  }
  // Returns when the shard has answered, because a pull on another channel may overtake a push.
  void push(FakePeer& channel, std::uint64_t clock, std::uint32_t bucket, std::size_t elements) {
    channel.heard.clear();
    Push push;
    push.bucket = BucketId(bucket);
    push.clock = Step(clock);
    push.last = true;
    push.want = Want::kAll;
    push.examples = 10;
    channel.push(clock, push, std::vector<float>(elements, 1.0F));
    EXPECT_TRUE(hears_parameters(channel));
  }

  std::vector<std::unique_ptr<FakePeer>> channels_;
};

TEST_F(PsCheckpoint, FilesHoldWhatTheShardsHeldAtTheCut) {
  train();
  push(channel(0, 0), 1, 4, 4);
  const std::vector<float> at_cut = values_at(channel(1, 0));
  const std::string folder = prepare(1);
  hears<CheckpointPrepared>();
  for (std::uint32_t s = 0; s < 2; ++s) channel(0, s).mark(1);
  EXPECT_THAT(channel(0, 0).let_go, IsEmpty()) << "the other worker hasn't sent its marks";
  for (std::uint32_t s = 0; s < 2; ++s) channel(1, s).mark(1);
  ASSERT_TRUE(all_let_go(1));
  push(channel(0, 0), 2, 4, 4);
  EXPECT_NE(values_at(channel(1, 0)), at_cut) << "training goes on";
  const std::vector<ShardWritten> shards = written();
  EXPECT_EQ(shards[0].entry.version, Step(1));
  EXPECT_EQ(shards[0].pacer->global_step, Step(1));
  EXPECT_EQ(shards[1].entry.version, Step(0));
  EXPECT_FALSE(shards[1].pacer);
  ASSERT_EQ(shards[0].entry.workers.size(), 2U);
  EXPECT_EQ(shards[0].entry.workers[0].clock, Step(1));
  EXPECT_EQ(values_in(folder, shards[0]), at_cut);
  for (const ShardWritten& shard : shards) {
    const Status verified = checkpoint::verify_file(files_, folder, shard.file);
    EXPECT_TRUE(verified) << verified.error().message;
  }
}

TEST_F(PsCheckpoint, SyncIsCutByThePacerAndTheOtherShardsFollow) {
  create_job(order_with_folder(2, 1, "sync"));
  prepare_and_hear(1);
  chief_.send(TakeCut{JobId(5), Generation(3), 1, Step()});
  const std::vector<ShardWritten> shards = written();
  EXPECT_EQ(shards[0].attempt, 1U);
  EXPECT_EQ(shards[0].entry.version, shards[1].entry.version);
}

TEST_F(PsCheckpoint, AbandonedOneLetsWorkersGoOnAndTheNextIsTaken) {
  train();
  prepare_and_hear(1);
  for (std::uint32_t s = 0; s < 2; ++s) channel(0, s).mark(1);
  settle();
  chief_.send(AbandonCheckpoint{JobId(5), Generation(3), 1});
  for (std::uint32_t s = 0; s < 2; ++s) {
    EXPECT_TRUE(until([&] { return !channel(0, s).let_go.empty(); }));
    channel(1, s).mark(1);  // this worker sends its mark before it hears that the attempt has ended
  }
  EXPECT_TRUE(all_let_go(1));
  prepare_and_hear(2);
  mark_all(2);
  EXPECT_TRUE(all_let_go(2));
  EXPECT_EQ(written()[0].attempt, 2U) << "nothing was written of the first";
}

TEST_F(PsCheckpoint, HoldKeepsTheMarkedUntilTheChiefEndsIt) {
  train(std::chrono::seconds(1));
  prepare_and_hear(1, true);
  mark_all(1);
  EXPECT_EQ(written()[0].attempt, 1U);
  // worker 0 lost its connection to shard 0 and sends the mark again. This mark isn't answered either.
  channels_[0] = open_channel(0, 0);
  channel(0, 0).mark(1);
  // Waits for longer than a shard waits for missing marks. The time is measured in heartbeats.
  std::set<std::uint64_t> turns;
  EXPECT_TRUE(until([&] {
    turns.insert(chief_.last_heartbeat->turns[0]);
    return turns.size() > 20;
  }));
  for (const auto& channel : channels_) EXPECT_THAT(channel->let_go, IsEmpty());
  EXPECT_FALSE(chief_.take<CheckpointFailed>());
  chief_.send(AbandonCheckpoint{JobId(5), Generation(3), 1});
  EXPECT_TRUE(all_let_go(1));
}

TEST_F(PsCheckpoint, MarksThatDoNotComeAreGivenUpAndSaidSo) {
  train(std::chrono::seconds(1));
  prepare_and_hear(1);
  for (std::uint32_t s = 0; s < 2; ++s) channel(0, s).mark(1);
  const auto failed = hears<CheckpointFailed>();
  EXPECT_EQ(failed->attempt, 1U);
  EXPECT_THAT(failed->reason, HasSubstr("lacks the marks of some workers"));
  for (std::uint32_t s = 0; s < 2; ++s) EXPECT_TRUE(until([&] { return !channel(0, s).let_go.empty(); }));
}

TEST_F(PsCheckpoint, DiskWithoutRoomIsSaidBeforeAnybodyWaits) {
  train();
  files_.fail_with(GatedFiles::Op::kReserve, Error{ErrorCode::kFailed, "no space left on device"});
  prepare(1);
  EXPECT_THAT(hears<CheckpointFailed>()->reason, HasSubstr("no space left"));
  mark_all(1);
  EXPECT_TRUE(all_let_go(1)) << "marks of an unknown attempt are answered at once";
  files_.fail_with(GatedFiles::Op::kReserve, std::nullopt);
  prepare_and_hear(2);
  EXPECT_FALSE(chief_.take<CheckpointPrepared>());
}

TEST_F(PsCheckpoint, DiskThatFailsMeanwhileIsSaidAndTrainingGoesOn) {
  std::uint64_t last = 0;
  for (const GatedFiles::Op op : {GatedFiles::Op::kAppend, GatedFiles::Op::kSync}) {
    if (channels_.empty()) train();
    const std::uint64_t attempt = prepare_when_free(last + 1);
    last = attempt;
    files_.fail_with(op, Error{ErrorCode::kFailed, "input/output error"});
    mark_all(attempt);
    EXPECT_TRUE(all_let_go(attempt));
    const auto failed = hears<CheckpointFailed>();
    EXPECT_EQ(failed->attempt, attempt);
    EXPECT_THAT(failed->reason, HasSubstr("input/output error"));
    files_.fail_with(op, std::nullopt);
    chief_.send(AbandonCheckpoint{JobId(5), Generation(3), attempt});
    settle();
    while (chief_.take<CheckpointFailed>()) continue;
  }
  push(channel(0, 0), 1, 4, 4);
  EXPECT_TRUE(until([&] { return !channel(0, 0).heard.empty(); }));
}

TEST_F(PsCheckpoint, WhatIsAbandonedWhileItIsWrittenIsNeitherToldNorKeptOpen) {
  train();
  prepare_and_hear(1);
  files_.hold(GatedFiles::Op::kAppend, "shard-");
  mark_all(1);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  chief_.send(AbandonCheckpoint{JobId(5), Generation(3), 1});
  settle();
  files_.let_go();
  EXPECT_TRUE(until([&] { return files_.being_written() == 0; })) << "an open file keeps its room on the disk";
  settle();
  EXPECT_FALSE(chief_.take<ShardWritten>());
  EXPECT_FALSE(chief_.take<CheckpointFailed>());
}

TEST_F(PsCheckpoint, FilesAreLetGoWhenTheJobEnds) {
  train();
  prepare_and_hear(1);
  ASSERT_EQ(files_.being_written(), 2);
  chief_.send(CloseJob{JobId(5), Generation(3), "killed"});
  hears<JobClosed>();
  EXPECT_TRUE(until([&] { return files_.being_written() == 0; }));
}

TEST_F(PsCheckpoint, EndOfAnOlderOneDoesNotEndTheOneUnderWay) {
  train();
  prepare_and_hear(7);
  files_.hold(GatedFiles::Op::kAppend, "shard-");
  mark_all(7);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  chief_.send(AbandonCheckpoint{JobId(5), Generation(3), 6});
  settle();
  files_.let_go();
  EXPECT_EQ(written()[1].attempt, 7U);
}

TEST_F(PsCheckpoint, OneThatIsAskedForWhileAnotherIsStillWrittenIsRefused) {
  train();
  prepare_and_hear(1);
  files_.hold(GatedFiles::Op::kAppend, "shard-");
  mark_all(1);
  ASSERT_TRUE(until([&] { return files_.is_waiting(); }));
  chief_.send(AbandonCheckpoint{JobId(5), Generation(3), 1});
  prepare(2);
  const auto failed = hears<CheckpointFailed>();
  EXPECT_EQ(failed->attempt, 2U);
  EXPECT_EQ(failed->code, ErrorCode::kTemporary);
  EXPECT_THAT(failed->reason, HasSubstr("still writing an earlier checkpoint"));
  files_.let_go();
  EXPECT_GE(prepare_when_free(3), 3U);
}

// The chief can't know which reports it has missed, so a ps repeats them to a chief that connects again.
TEST_F(PsCheckpoint, WhatWasSaidIsSaidAgainToAChiefThatIsBack) {
  train();
  prepare_and_hear(1);
  mark_all(1);
  written();
  chief_.hang_up();
  ASSERT_TRUE(until([&] { return chief_.hellos == 2; }));
  EXPECT_EQ(hears<CheckpointPrepared>()->attempt, 1U);
  EXPECT_EQ(written()[0].attempt, 1U);
  // The chief repeats its order, too. The ps carries it out only once.
  chief_.send(PrepareCheckpoint{JobId(5), Generation(3), 1, "/nowhere", false});
  settle();
  EXPECT_FALSE(chief_.take<CheckpointFailed>());
  EXPECT_FALSE(chief_.take<CheckpointPrepared>());
}

TEST_F(PsCheckpoint, OrderThatComesAfterItsEndChangesNothing) {
  train();
  begin_attempt(1);
  chief_.send(AbandonCheckpoint{JobId(5), Generation(3), 1});
  prepare(1);
  mark_all(1);
  EXPECT_TRUE(all_let_go(1));
  settle();
  EXPECT_FALSE(chief_.take<CheckpointPrepared>());
  EXPECT_EQ(files_.being_written(), 0);
}

TEST_F(PsCheckpoint, HeartbeatsSayThatFilesAreBeingWritten) {
  train();
  prepare_and_hear(1);
  ASSERT_TRUE(until([&] { return chief_.last_heartbeat->job == JobId(5); }));
  const std::uint64_t before = chief_.last_heartbeat->work;
  mark_all(1);
  written();
  EXPECT_TRUE(until([&] { return chief_.last_heartbeat->work > before; }));
}

}  // namespace
}  // namespace disttrain::psd::test
