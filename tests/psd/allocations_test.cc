// In the steady state, a shard allocates no memory for a frame. This test counts the calls of operator new in the shard
// threads of a real ps, from the arrival of a frame at the socket until the answer has left. It covers transport/tcp,
// asio, the codec, WorkerChannel and PeerLink, ShardService, core and store. It doesn't count the ps's main thread and
// the first frames. While it counts, no heartbeat is sent. It also doesn't count work that is done once for each epoch,
// roster, checkpoint or connection.
#include "tests/counted_new.h"
#include "tests/psd/shell_fixture.h"

bool disttrain::test::counts_thread(std::string_view name) {
  return name.starts_with("shard-");
}

namespace disttrain::psd::test {
namespace {

using disttrain::test::allocations;
using disttrain::test::counting;

constexpr std::uint64_t kWarmUp = 40;
constexpr std::uint64_t kSteps = 100;
constexpr std::uint64_t kBatch = 10;

// A case: its name, mode, shards, workers and further keys of [train].
struct Case {
  const char* name;
  const char* mode;
  std::uint32_t shards;
  std::uint32_t workers;
  const char* more;
};

class ShardAllocations : public PsShell, public testing::WithParamInterface<Case> {
 protected:
  ShardAllocations() : PsShell(2, std::chrono::minutes(10), 8) {}
  ~ShardAllocations() override { counting = false; }

  // Each worker pushes one step to each shard and receives all answers.
  void step(std::uint64_t clock) {
    std::size_t peer = 0;
    for (std::uint32_t worker = 0; worker < GetParam().workers; ++worker)
      for (std::uint32_t shard = 0; shard < GetParam().shards; ++shard)
        push(*peers_[peer++], worker, ShardId(shard), clock);
    ASSERT_TRUE(until([&] {
      return std::all_of(peers_.begin(), peers_.end(), [](const auto& open) { return is_answered(*open); });
    })) << "no answer at step "
        << clock;
    for (const auto& open : peers_) open->heard.clear();
  }

  static bool is_answered(const FakePeer& peer) {
    return std::any_of(peer.heard.begin(), peer.heard.end(), [](const Heard& heard) {
      const auto* parameters = std::get_if<Parameters>(&heard.message);
      return parameters != nullptr && parameters->last;
    });
  }

  void push(FakePeer& peer, std::uint32_t worker, ShardId shard, std::uint64_t clock) {
    const std::vector<BucketId> buckets = buckets_of(layout_, shard);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      Push push;
      push.bucket = buckets[i];
      push.clock = Step(clock);
      push.pull_version = Step(clock - 1);
      push.last = i + 1 == buckets.size();
      push.want = push.last ? Want::kAll : Want::kNothing;
      if (push.last) {
        push.examples = kBatch;
        push.loss = 1.0F;
        push.lease = LeaseId(1 + worker);
        // Each worker has records of its own, so that the ledger doesn't depend on whose push comes first.
        const std::uint64_t begin = worker * 100'000 + (clock - 1) * kBatch;
        push.visited = {Interval{begin, begin + kBatch}};
      }
      peer.push((clock - 1) * buckets.size() + i + 1, push,
                std::vector<float>(layout_.buckets[buckets[i].value].words, 1.0F));
    }
  }

  Layout layout_;
  // The peers of worker 0 come first, one for each shard, then those of worker 1, and so on.
  std::vector<std::unique_ptr<FakePeer>> peers_;
};

TEST_P(ShardAllocations, AFrameCostsNoneInTheSteadyState) {
  const auto [name, mode, shards, workers, more] = GetParam();
  SCOPED_TRACE(name);
  CreateShards job = order(shards, workers, mode, more);
  job.train_records = 1'000'000;
  layout_ = job.layout;
  create_job(job);
  for (std::uint32_t worker = 0; worker < workers; ++worker)
    for (std::uint32_t shard = 0; shard < shards; ++shard) peers_.push_back(open_channel(worker, shard));
  std::uint64_t clock = 0;
  while (clock < kWarmUp) {
    step(++clock);
    ASSERT_FALSE(HasFatalFailure());
  }
  counting = true;
  while (clock < kWarmUp + kSteps) {
    step(++clock);
    ASSERT_FALSE(HasFatalFailure());
  }
  counting = false;
  const std::uint64_t frames = kSteps * workers * layout_.buckets.size();
  EXPECT_EQ(allocations.exchange(0), 0U) << "in " << frames << " push frames and their answers";
}

INSTANTIATE_TEST_SUITE_P(Modes, ShardAllocations,
                         testing::Values(Case{"async", "async", 1, 1, ""}, Case{"async_two_shards", "async", 2, 2, ""},
                                         Case{"ssp", "ssp", 2, 2, "staleness = 4\n"}, Case{"sync", "sync", 1, 2, ""},
                                         Case{"sync_two_shards", "sync", 2, 2, ""},
                                         Case{"sync_with_clipping", "sync", 2, 3,
                                              "clip = { kind = \"global_norm\", value = 0.5 }\n"},
                                         Case{"async_with_trace", "async", 2, 2,
                                              "profile_steps = [1, 1000]\n[checkpoint]\ndirectory = \"/c\"\n"},
                                         Case{"sync_with_trace", "sync", 2, 2,
                                              "profile_steps = [1, 1000]\n[checkpoint]\ndirectory = \"/c\"\n"}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace disttrain::psd::test
