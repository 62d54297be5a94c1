#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/psd/shell_fixture.h"

namespace disttrain::psd::test {
namespace {

using testing::HasSubstr;

Push last_frame(std::uint64_t clock, std::uint32_t bucket) {
  Push push;
  push.bucket = BucketId(bucket);
  push.clock = Step(clock);
  push.last = true;
  push.want = Want::kAll;
  push.examples = 10;
  push.loss = 1.0F;
  return push;
}

const Refused& refused(const FakePeer& peer) {
  return std::get<Refused>(peer.answer.value());
}

std::uint64_t welcomed_after(const FakePeer& peer) {
  return std::get<Welcome>(peer.answer.value()).last_sequence.value;
}

TEST_F(PsShell, SaysWhoItIsAndKeepsSendingHeartbeats) {
  ASSERT_TRUE(until([&] { return chief_.last_heartbeat.has_value(); }));
  EXPECT_EQ(chief_.hello->member, ps_);
  EXPECT_EQ(chief_.hello->shards, 2U);
  EXPECT_EQ(chief_.hello->address, address_);
  EXPECT_GT(chief_.hello->memory_bytes, 0U);
  const auto first = chief_.last_heartbeat->turns;
  ASSERT_EQ(first.size(), 2U);
  EXPECT_TRUE(until([&] {
    const auto& now = chief_.last_heartbeat->turns;
    return now[0] > first[0] && now[1] > first[1];
  }));
}

TEST_F(PsShell, RefusesAnotherClusterAnotherVersionAndStrangers) {
  Hello other = hello_of(ClientHello{});
  other.cluster = "elsewhere";
  EXPECT_THAT(refused(*dial(other)).reason, HasSubstr("elsewhere"));
  Hello newer = hello_of(ClientHello{});
  newer.oldest_version = newer.newest_version = 9;
  EXPECT_EQ(refused(*dial(newer)).code, ErrorCode::kConfig);
  EXPECT_THAT(refused(*dial(hello_of(ClientHello{}))).reason, HasSubstr("the chief is at"));
}

TEST_F(PsShell, AChannelBeforeTheJobIsToldToComeAgainAndAWrongTokenIsNot) {
  EXPECT_EQ(refused(*open_channel(0, 0)).code, ErrorCode::kTemporary);
  create_job(2, 1);
  EXPECT_EQ(refused(*open_channel(0, 0, 98)).code, ErrorCode::kNoPermission);
  EXPECT_EQ(refused(*open_channel(7, 0)).code, ErrorCode::kTemporary);
  EXPECT_EQ(welcomed_after(*open_channel(0, 0)), 0U);
  EXPECT_EQ(welcomed_after(*open_channel(0, 1)), 0U);
}

TEST_F(PsShell, APushMovesTheParametersThatComeBack) {
  create_job(2, 1);
  auto channel = open_channel(0, 1);  // buckets 1, 3, 5
  channel->pull(42);
  ASSERT_TRUE(until([&] { return channel->heard.size() == 3; }));
  std::map<std::uint32_t, std::vector<float>> before;
  for (const Heard& heard : channel->heard) {
    const auto& message = std::get<Parameters>(heard.message);
    EXPECT_EQ(message.pull_id, 42U);
    before[message.bucket.value] = heard.values;
  }
  channel->heard.clear();
  std::uint64_t sequence = 0;
  for (std::uint32_t bucket : {1U, 3U, 5U}) {
    Push push = last_frame(1, bucket);
    push.last = bucket == 5;
    push.want = push.last ? Want::kAll : Want::kNothing;
    channel->push(++sequence, push, std::vector<float>(before[bucket].size(), 1.0F));
  }
  const auto parameters_heard = [&] {
    std::vector<const Heard*> found;
    for (const Heard& heard : channel->heard)
      if (std::holds_alternative<Parameters>(heard.message)) found.push_back(&heard);
    return found;
  };
  ASSERT_TRUE(until([&] { return parameters_heard().size() == 3; }));
  for (const Heard* heard : parameters_heard()) {
    const auto& message = std::get<Parameters>(heard->message);
    EXPECT_EQ(message.version, Step(1));
    EXPECT_EQ(message.outcome, PushOutcome::kApplied);
    EXPECT_EQ(message.acknowledged, Sequence(3));
    for (std::size_t i = 0; i < heard->values.size(); ++i)
      EXPECT_EQ(heard->values[i], before[message.bucket.value][i] - 0.5F);
  }
}

TEST_F(PsShell, HeartbeatsSayHowMuchEachShardHasHadToDo) {
  create_job(2, 1);
  ASSERT_TRUE(until([&] { return chief_.last_heartbeat && chief_.last_heartbeat->shards.size() == 2; }));
  const std::vector<ShardLoad> before = chief_.last_heartbeat->shards;
  EXPECT_EQ(before[0].shard, ShardId(0));
  EXPECT_EQ(before[1].shard, ShardId(1));
  auto channel = open_channel(0, 0);
  channel->push(1, last_frame(1, 4), std::vector<float>(4, 1.0F));
  ASSERT_TRUE(until([&] {
    const std::vector<ShardLoad>& now = chief_.last_heartbeat->shards;
    return now[0].applying > before[0].applying && now[1].lived > before[1].lived;
  }));
  const std::vector<ShardLoad>& after = chief_.last_heartbeat->shards;
  EXPECT_EQ(after[1].applying, Duration::zero());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(after[i].busy, before[i].busy);
    EXPECT_LT(after[i].busy, after[i].lived);
  }
}

TEST_F(PsShell, ADuplicateIsAnsweredAndAGapClosesTheChannel) {
  create_job(2, 1);
  auto channel = open_channel(0, 0);
  // Waits for an answer. An answer has all buckets of the shard.
  const auto answered = [&] {
    const auto* message = channel->heard.empty() ? nullptr : std::get_if<Parameters>(&channel->heard.back().message);
    return message != nullptr && message->last;
  };
  Push push = last_frame(1, 4);
  channel->push(1, push, std::vector<float>(4, 1.0F));
  ASSERT_TRUE(until(answered));
  channel->heard.clear();
  channel->push(1, push, std::vector<float>(4, 1.0F));
  ASSERT_TRUE(until(answered));
  EXPECT_EQ(std::get<Parameters>(channel->heard[0].message).outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(std::get<Parameters>(channel->heard[0].message).version, Step(1));
  channel->push(3, last_frame(2, 4), std::vector<float>(4, 1.0F));
  EXPECT_TRUE(until([&] { return channel->closed; }));
  // A worker that reconnects learns which of its frames the ps has taken, and continues there.
  EXPECT_EQ(welcomed_after(*open_channel(0, 0)), 1U);
}

// A ps on a host whose cluster.toml says "rdma", and peers on hosts with another kind.
class PsOfAnotherWire : public PsShell {
 protected:
  PsOfAnotherWire() : PsShell(2, std::chrono::milliseconds(500), 4, "warn", "rdma") {}
};

TEST_F(PsOfAnotherWire, APeerThatCameOverTheWrongWireTrainsAndIsNamedOnce) {
  testing::internal::CaptureStderr();
  create_job(2, 1);  // the shards reach each other, too
  for (std::uint32_t shard = 0; shard < 2; ++shard) welcomed_after(*open_channel(0, shard));
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr(", although this ps has transport.kind = \"rdma\"; give all hosts the same"));
  EXPECT_EQ(logged.find("although"), logged.rfind("although")) << logged;
}

// A ps that runs with the environment variable DISTTRAIN_VISITED_LOG, which names a folder.
class VisitedLogOfAPs : public PsShell {
 protected:
  VisitedLogOfAPs() { ::setenv("DISTTRAIN_VISITED_LOG", folder_.c_str(), 1); }
  ~VisitedLogOfAPs() override {
    ::unsetenv("DISTTRAIN_VISITED_LOG");
    std::filesystem::remove_all(folder_);
  }

  void expect_line_of_a_step(const std::string& mode) {
    ASSERT_TRUE(std::filesystem::create_directory(folder_));
    create_job(1, 1, mode);
    auto channel = open_channel(0, 0);
    for (std::uint32_t bucket = 0; bucket < 6; ++bucket) {
      Push push = last_frame(1, bucket);
      push.last = bucket == 5;
      push.want = push.last ? Want::kAll : Want::kNothing;
      push.lease = LeaseId(1);
      push.epoch = 2;
      push.visited = {{0, 7}, {20, 23}};
      channel->push(bucket + 1, push, std::vector<float>(bucket == 5 ? 2 : 4, 1.0F));
    }
    ASSERT_TRUE(until(
        [&] { return !channel->heard.empty() && std::holds_alternative<Parameters>(channel->heard.back().message); }));
    std::ifstream log(folder_ + "/job-5.jsonl");
    const std::string lines((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
    EXPECT_EQ(lines,
              "{\"generation\": 3, \"begins_after\": 0}\n{\"generation\": 3, \"step\": 1, \"visits\": "
              "[{\"worker\": \"worker/0\", \"epoch\": 2, \"positions\": [[0, 7], [20, 23]]}]}\n");
  }

  const std::string folder_ = testing::TempDir() + "visited-" + std::to_string(::getpid());
};

TEST_F(VisitedLogOfAPs, HasTheRecordsOfAStepBeforeItIsAnswered) {
  expect_line_of_a_step("async");
}

TEST_F(VisitedLogOfAPs, HasTheRecordsOfACommittedStepBeforeItIsAnswered) {
  expect_line_of_a_step("sync");
}

TEST_F(VisitedLogOfAPs, AFolderThatIsNotThereIsAReasonWhyTheJobFails) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  chief_.send(order(1, 1, "async"));
  std::optional<TaskFailed> failed;
  ASSERT_TRUE(until([&] { return (failed = chief_.take<TaskFailed>()).has_value(); }));
  EXPECT_EQ(failed->code, ErrorCode::kConfig);
  EXPECT_THAT(failed->reason, HasSubstr("DISTTRAIN_VISITED_LOG must name a folder"));
}

TEST_F(PsShell, SyncOverTwoShardsWaitsForBothWorkers) {
  create_job(2, 2, "sync");
  std::vector<std::unique_ptr<FakePeer>> channels;
  for (std::uint32_t w = 0; w < 2; ++w)
    for (std::uint32_t s = 0; s < 2; ++s) channels.push_back(open_channel(w, s));
  const auto push_step = [&](std::uint32_t w) {
    for (std::uint32_t s = 0; s < 2; ++s)
      for (std::uint32_t b = s; b < 6; b += 2) {
        Push push = last_frame(1, b);
        push.last = b >= 4;
        push.want = push.last ? Want::kAll : Want::kNothing;
        const std::size_t elements = b == 5 ? 2 : 4;
        channels[w * 2 + s]->push(b / 2 + 1, push, std::vector<float>(elements, static_cast<float>(w)));
      }
  };
  push_step(0);
  ASSERT_TRUE(until([&] { return !channels[0]->heard.empty(); }));  // credits
  push_step(1);
  for (const auto& channel : channels)
    EXPECT_TRUE(until([&] {
      return !channel->heard.empty() && std::holds_alternative<Parameters>(channel->heard.back().message) &&
             std::get<Parameters>(channel->heard.back().message).last;
    }));
  EXPECT_EQ(std::get<Parameters>(channels[3]->heard.back().message).version, Step(1));
  EXPECT_TRUE(until([&] { return chief_.last_heartbeat->pacer && chief_.last_heartbeat->pacer->examples == 20; }));
}

TEST_F(PsShell, RostersAndFencesAreAnswered) {
  create_job(2, 2);
  auto channel = open_channel(1, 0);
  Roster smaller = roster_of(1, 2);
  chief_.send(FenceWorker{JobId(5), Generation(3), worker(1)});
  chief_.send(SetRoster{JobId(5), Generation(3), smaller});
  std::optional<RosterApplied> applied;
  ASSERT_TRUE(until([&] { return (applied = chief_.take<RosterApplied>()).has_value(); }));
  EXPECT_EQ(applied->version, RosterVersion(2));
  int fenced = 0;
  EXPECT_TRUE(until([&] {
    if (chief_.take<WorkerFenced>()) ++fenced;
    return fenced == 2;
  }));
  EXPECT_TRUE(until([&] { return channel->closed; }));
  EXPECT_EQ(refused(*open_channel(1, 0)).code, ErrorCode::kUnavailable);
}

TEST_F(PsShell, CloseJobFreesEverythingAndANewJobCanCome) {
  create_job(2, 1);
  auto channel = open_channel(0, 0);
  chief_.send(CloseJob{JobId(5), Generation(3), "test"});
  ASSERT_TRUE(until([&] { return chief_.take<JobClosed>().has_value(); }));
  EXPECT_TRUE(until([&] { return channel->closed; }));
  EXPECT_EQ(refused(*open_channel(0, 0)).code, ErrorCode::kTemporary);
  create_job(1, 1);
  EXPECT_EQ(welcomed_after(*open_channel(0, 0)), 0U);
  chief_.send(CloseJob{JobId(6), Generation(1), "unknown here"});
  EXPECT_TRUE(until([&] { return chief_.take<JobClosed>().has_value(); }));
}

TEST_F(PsShell, TrainingGoesOnWithoutTheChiefAndItIsDialledAgain) {
  create_job(1, 1);
  auto channel = open_channel(0, 0);
  chief_.hang_up();
  channel->push(1, last_frame(1, 5), std::vector<float>(2, 1.0F));
  ASSERT_TRUE(until([&] { return !channel->heard.empty(); }));
  ASSERT_TRUE(until([&] { return chief_.hellos == 2; }));
  EXPECT_EQ(chief_.hello->job, JobId(5));
  EXPECT_EQ(chief_.hello->journal, JournalId(77));
  EXPECT_FALSE(channel->closed);
}

TEST_F(PsShell, WhatAChiefAsksTwiceIsAnsweredTwiceAndDoneOnce) {
  const CreateShards asked = order(1, 2, "async");
  create_job(asked);
  auto channel = open_channel(0, 0);
  channel->push(1, last_frame(1, 5), std::vector<float>(2, 1.0F));
  ASSERT_TRUE(until([&] { return !channel->heard.empty(); }));
  chief_.hang_up();
  ASSERT_TRUE(until([&] { return chief_.hellos == 2; }));
  chief_.send(asked);
  ASSERT_TRUE(until([&] { return chief_.take<ShardsCreated>().has_value(); }));
  for (int i = 0; i < 2; ++i) {
    chief_.send(FenceWorker{JobId(5), Generation(3), worker(1)});
    chief_.send(SetRoster{JobId(5), Generation(3), roster_of(1, 2)});
    ASSERT_TRUE(until([&] { return chief_.take<WorkerFenced>().has_value(); }));
    std::optional<RosterApplied> applied;
    ASSERT_TRUE(until([&] { return (applied = chief_.take<RosterApplied>()).has_value(); }));
    EXPECT_EQ(applied->version, RosterVersion(2));
    EXPECT_EQ(applied->step, Step(1)) << "the parameters are those from before";
  }
  EXPECT_FALSE(channel->closed);
}

TEST_F(PsShell, AChiefWithAnotherJournalMakesItDropItsJob) {
  create_job(1, 1);
  auto channel = open_channel(0, 0);
  const Member before = chief_.hello->member;
  chief_.journal = JournalId(78);
  chief_.hang_up();
  EXPECT_TRUE(until([&] { return channel->closed; }));
  EXPECT_TRUE(until([&] { return chief_.hellos == 3 && chief_.last_heartbeat->job == JobId(0); }));
  EXPECT_NE(chief_.hello->member, before) << "its hello named the job";
}

TEST_F(PsShell, GarbageOnAChannelOrThePortHarmsNobody) {
  create_job(1, 2);
  auto good = open_channel(0, 0);
  auto bad = open_channel(1, 0);
  const std::vector<std::byte> noise(100, std::byte{0x5a});
  bad->send(wire::FrameType::kPush, noise, noise, 1);
  EXPECT_TRUE(until([&] { return bad->closed; }));
  good->push(1, last_frame(1, 5), std::vector<float>(2, 1.0F));
  EXPECT_TRUE(until([&] { return !good->heard.empty(); }));
  // One bucket has the wrong size, and one doesn't exist.
  auto again = open_channel(1, 0);
  again->push(1, last_frame(1, 5), std::vector<float>(3, 1.0F));
  EXPECT_TRUE(until([&] { return again->closed; }));
  again = open_channel(1, 0);
  again->push(1, last_frame(1, 4000), std::vector<float>(2, 1.0F));
  EXPECT_TRUE(until([&] { return again->closed; }));
}

// 32 buckets of 1 MiB, all zero.
Layout big_layout() {
  Layout layout;
  VariableSpec variable;
  variable.name = "big";
  variable.shape = {32 * kMaxBucketWords};
  variable.initializer.kind = InitializerKind::kZeros;
  layout.model.variables.push_back(variable);
  layout.shards = 1;
  layout.variable_begins = {0};
  for (std::uint64_t b = 0; b < 32; ++b)
    layout.buckets.push_back(Bucket{ShardId(0), b * kMaxBucketWords, b * kMaxBucketWords, kMaxBucketWords});
  return layout;
}

// A faulty worker: the ps would keep the answers until it has no memory left.
TEST_F(PsShell, AWorkerThatAsksWithoutReadingLosesItsChannel) {
  create_job(1, 2);
  auto greedy = open_channel(0, 0);
  auto other = open_channel(1, 0);
  greedy->stop_reading();
  std::uint64_t id = 0;
  EXPECT_TRUE(until([&] {
    for (int i = 0; i < 1000 && !greedy->closed; ++i) greedy->pull(++id);
    return greedy->closed;
  })) << id
      << " pulls";
  other->pull(1);
  EXPECT_TRUE(until([&] { return !other->heard.empty(); })) << "nobody else notices";
}

// If a worker doesn't read, its answer waits at the ps. In the end the worker gets a complete answer of one version.
// Meanwhile nobody else waits: with backup workers the others go on making steps.
TEST_F(PsShell, AnAnswerThatWaitsForItsReaderStaysOfOneVersionInSync) {
  CreateShards big = order(1, 2, "sync", "aggregate = 1\n");
  big.layout = big_layout();
  create_job(big);
  auto slow = open_channel(1, 0);
  auto fast = open_channel(0, 0);
  const auto step = [&](std::uint64_t clock) {
    fast->heard.clear();
    for (std::uint32_t b = 0; b < 32; ++b) {
      Push push = last_frame(clock, b);
      push.last = b == 31;
      push.want = push.last ? Want::kAll : Want::kNothing;
      fast->push((clock - 1) * 32 + b + 1, push, std::vector<float>(kMaxBucketWords, 1.0F));
      // Four credits.
      EXPECT_TRUE(until([&] { return b % 2 == 0 || !fast->heard.empty(); }));
      if (!push.last) fast->heard.clear();
    }
    return until([&] {
      return std::any_of(fast->heard.begin(), fast->heard.end(), [](const Heard& heard) {
        const auto* parameters = std::get_if<Parameters>(&heard.message);
        return parameters != nullptr && parameters->last;
      });
    });
  };
  ASSERT_TRUE(step(1));
  slow->stop_reading();
  slow->pull(1);
  ASSERT_TRUE(step(2));
  ASSERT_TRUE(step(3));
  slow->read_again();
  std::vector<Heard> answer;
  ASSERT_TRUE(until([&] {
    for (; !slow->heard.empty(); slow->heard.pop_front())
      if (std::holds_alternative<Parameters>(slow->heard[0].message)) answer.push_back(slow->heard[0]);
    return answer.size() == 32;
  }));
  const Step version = std::get<Parameters>(answer[0].message).version;
  EXPECT_LT(version, Step(3));
  for (const Heard& heard : answer) {
    EXPECT_EQ(std::get<Parameters>(heard.message).version, version);
    EXPECT_EQ(heard.values.front(), -0.5F * static_cast<float>(version.value));
    EXPECT_EQ(heard.values.back(), heard.values.front());
  }
  EXPECT_TRUE(std::get<Parameters>(answer.back().message).last);
}

// The same in async. Here each bucket has one version, but two buckets may have different versions. All buckets arrive.
TEST_F(PsShell, AnAnswerThatWaitsForItsReaderIsWholeInAsync) {
  CreateShards big = order(1, 1, "async");
  big.layout = big_layout();
  create_job(big);
  auto slow = open_channel(0, 0);
  slow->stop_reading();
  slow->pull(1);
  slow->read_again();
  std::size_t buckets = 0;
  ASSERT_TRUE(until([&] {
    for (; !slow->heard.empty(); slow->heard.pop_front())
      if (std::holds_alternative<Parameters>(slow->heard[0].message)) ++buckets;
    return buckets == 32;
  }));
}

TEST_F(PsShell, ABrokenJobIsRefusedWithAReason) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  CreateShards broken = order(1, 1, "async");
  auto config = std::make_shared<JobConfig>(*broken.config);
  config->train.batch_size = 0;
  broken.config = config;
  chief_.send(broken);
  std::optional<TaskFailed> failed;
  ASSERT_TRUE(until([&] { return (failed = chief_.take<TaskFailed>()).has_value(); }));
  EXPECT_THAT(failed->reason, HasSubstr("train.batch_size"));
}

TEST_F(PsShell, ARefusalByTheChiefEndsItWithTheCode) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  chief_.refusal = Refused{ErrorCode::kConfig, "wrong cluster"};
  chief_.hang_up();
  EXPECT_TRUE(until([&] { return exit_code_ == 78; }));
}

}  // namespace
}  // namespace disttrain::psd::test
