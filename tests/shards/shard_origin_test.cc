#include "shards/shard_origin.h"

#include <gmock/gmock.h>

#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"

namespace disttrain::shards {
namespace {

using checkpoint::MemoryFiles;
using testing::HasSubstr;

constexpr std::uint64_t kToken = 77;
const std::string kFolder = "/job";

class ShardOriginTest : public testing::Test {
 protected:
  ShardOriginTest() {
    EXPECT_TRUE(files_.make_directory(kFolder));
    EXPECT_TRUE(checkpoint::write_token(files_, kFolder, kToken));
    job_.checkpoint_mark = kToken;
    job_.layout = checkpoint::layout_of(checkpoint::small_model(), 2, 8);
    job_.config.train.optimizer.rule = Rule::kMomentum;
    job_.checkpoint_folder = kFolder;
    const auto saved = checkpoint::save(files_, kFolder, job_.layout, 1, 10);
    EXPECT_TRUE(saved);
    job_.restore_path = *saved;
    StoreOptions options;
    options.train = job_.config.train;
    options.places = 1;
    options.is_empty = true;
    store_ = std::make_unique<ShardStore>(job_.layout, ShardId(0), options, nullptr);
  }

  Status restore(const checkpoint::IsCancelled& is_cancelled = {}) {
    const Result<ShardOrigin> origin = ShardOrigin::open(files_, job_);
    if (!origin) return tl::unexpected(origin.error());
    return origin->fill(files_, job_, ShardId(0), *store_, is_cancelled);
  }
  std::string shard_file() const { return job_.restore_path + "/shard-0-of-2.safetensors"; }

  MemoryFiles files_;
  ShardJob job_;
  std::unique_ptr<ShardStore> store_;
};

TEST_F(ShardOriginTest, ValuesAndSlotsAreThoseOfTheCheckpoint) {
  ASSERT_TRUE(restore());
  const checkpoint::Held held = checkpoint::held_by(job_.layout, 0, 10, 1);
  EXPECT_THAT(store_->parameters(), testing::ElementsAreArray(held.parameters));
  EXPECT_THAT(store_->slot(0), testing::ElementsAreArray(held.slots[0]));
}

// Velocities taken for sums of squares, or the other way round, would do harm unnoticed.
TEST_F(ShardOriginTest, SlotsOfARuleThatMeansOtherThingsByThemAreRefused) {
  job_.config.train.optimizer.rule = Rule::kNesterov;
  EXPECT_TRUE(restore()) << "it keeps velocities, too";
  job_.config.train.optimizer.rule = Rule::kAdagrad;
  const Status refused = restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(refused.error().message,
              testing::HasSubstr("was made with the update rule momentum, which keeps other values in its slots than "
                                 "the job's rule adagrad. Use the old rule again"));
}

TEST_F(ShardOriginTest, ValuesFromAFileKeepTheBounds) {
  job_.layout.model.variables[2].bounds = {-0.5, 12.0};  // all of the shard's first bucket, whose values are 10 to 17
  for (const bool is_init : {false, true}) {
    if (is_init) job_.init_path = std::exchange(job_.restore_path, "");
    store_ = std::make_unique<ShardStore>(job_.layout, ShardId(0), StoreOptions{job_.config.train, 1, 1, false, true},
                                          nullptr);
    ASSERT_TRUE(restore());
    EXPECT_THAT(store_->parameters().first(8), testing::ElementsAre(10, 11, 12, 12, 12, 12, 12, 12)) << is_init;
    EXPECT_GT(store_->parameters().back(), 12.0F) << "of a variable without bounds";
  }
}

TEST_F(ShardOriginTest, AveragesAreThoseOfTheCheckpointIfItHasThem) {
  StoreOptions options;
  options.train = job_.config.train;
  options.places = 1;
  options.is_empty = true;
  options.average = 0.5;
  job_.config.evaluate.average = 0.5;
  for (const bool has_average : {false, true}) {
    store_ = std::make_unique<ShardStore>(job_.layout, ShardId(0), options, nullptr);
    const std::uint64_t step = has_average ? 30 : 20;
    const auto saved = checkpoint::save(files_, kFolder, job_.layout, 1, step, has_average ? 2 : 1, step, has_average);
    ASSERT_TRUE(saved);
    job_.restore_path = *saved;
    ASSERT_TRUE(restore());
    const checkpoint::Held held = checkpoint::held_by(job_.layout, 0, static_cast<float>(step), 2);
    EXPECT_THAT(store_->parameters(), testing::ElementsAreArray(held.parameters));
    EXPECT_THAT(store_->slot(0), testing::ElementsAreArray(held.slots[0]));
    EXPECT_THAT(store_->slot(1), testing::ElementsAreArray(has_average ? held.slots[1] : held.parameters));
  }
  // A job without averages leaves those of the checkpoint.
  job_.config.evaluate.average = 0.0;
  options.average = 0.0;
  store_ = std::make_unique<ShardStore>(job_.layout, ShardId(0), options, nullptr);
  ASSERT_TRUE(restore());
  EXPECT_THAT(store_->slot(0), testing::ElementsAreArray(checkpoint::held_by(job_.layout, 0, 30, 2).slots[0]));
}

TEST_F(ShardOriginTest, AveragesBeginAsTheParametersOfAWarmStart) {
  StoreOptions options;
  options.train = job_.config.train;
  options.places = 1;
  options.is_empty = true;
  options.average = job_.config.evaluate.average = 0.5;
  store_ = std::make_unique<ShardStore>(job_.layout, ShardId(0), options, nullptr);
  job_.init_path = std::exchange(job_.restore_path, "");
  ASSERT_TRUE(restore());
  EXPECT_THAT(store_->slot(1), testing::ElementsAreArray(checkpoint::held_by(job_.layout, 0, 10, 1).parameters));
}

// An abandoned restore stops at the next piece, and doesn't count as a damaged checkpoint.
TEST_F(ShardOriginTest, RestoreIsLeftBetweenTwoPieces) {
  for (const bool is_init : {false, true}) {
    if (is_init) job_.init_path = std::exchange(job_.restore_path, "");
    int asked = 0;
    const Status restored = restore([&asked] { return ++asked == 1; });
    ASSERT_FALSE(restored) << is_init;
    EXPECT_EQ(restored.error().code, ErrorCode::kTemporary) << restored.error().message;
    EXPECT_EQ(asked, 1);
  }
}

// Each pass over a large shard takes long enough for the chief to take the shard for silent.
TEST_F(ShardOriginTest, EachPassOverTheValuesCountsAsProgressAndCanBeLeft) {
  const std::size_t buckets = buckets_of(job_.layout, ShardId(0)).size();
  ASSERT_EQ(buckets, 3U);
  std::size_t asked = 0;
  ASSERT_TRUE(restore([&asked] { return ++asked == 0; }));
  EXPECT_GT(asked, 2 * buckets) << "it reads the values, looks for a NaN, and keeps the bounds";
  // The last pass leaves the rest undone without an error.
  for (std::size_t last = 1; last <= asked - buckets; ++last) {
    std::size_t now = 0;
    const Status restored = restore([&now, last] { return ++now == last; });
    ASSERT_FALSE(restored) << last;
    EXPECT_EQ(restored.error().code, ErrorCode::kTemporary) << restored.error().message;
    EXPECT_EQ(now, last);
  }
}

TEST(ShardStore, InitialValuesAreLeftBetweenTwoBuckets) {
  const Layout layout = checkpoint::layout_of(checkpoint::small_model(), 1, 8);
  StoreOptions options;
  options.places = 1;
  options.has_copy = true;
  int asked = 0;
  const ShardStore store(layout, ShardId(0), options, [&asked] { return ++asked >= 2; });
  EXPECT_EQ(asked, 3) << "the second bucket's, and that of the copy";
}

TEST_F(ShardOriginTest, CheckpointWithANanIsDamaged) {
  for (const bool is_slot : {false, true}) {
    const auto spoil = [&](const std::string& attempt, checkpoint::Manifest& manifest) -> Status {
      checkpoint::Held held = checkpoint::held_by(job_.layout, 0, 20, 1);
      (is_slot ? held.slots[0] : held.parameters)[3] = std::numeric_limits<float>::quiet_NaN();
      if (Status gone = files_.remove_file(attempt + "/" + manifest.files[0].name); !gone) return gone;
      Result<checkpoint::FileEntry> entry =
          checkpoint::write_shard(files_, attempt, job_.layout, ShardId(0), held.content(), {{"step", "x"}});
      if (!entry) return tl::unexpected(entry.error());
      manifest.files[0] = *entry;
      return {};
    };
    const auto saved =
        checkpoint::save(files_, kFolder, job_.layout, 1, is_slot ? 30 : 20, 1, is_slot ? 3 : 2, false, spoil);
    ASSERT_TRUE(saved) << saved.error().message;
    job_.restore_path = *saved;
    const Status status = restore();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kData) << "the chief then goes on from the checkpoint before";
    EXPECT_THAT(status.error().message,
                HasSubstr(std::string("has a NaN or an infinity in its ") + (is_slot ? "slot 0" : "parameters")));
    EXPECT_THAT(status.error().message, HasSubstr(*saved));
  }
}

TEST_F(ShardOriginTest, FileThatTheManifestNamesAndIsNotThereIsDamage) {
  ASSERT_TRUE(files_.remove_file(shard_file()));
  const Status restored = restore();
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kData) << restored.error().message;
}

TEST_F(ShardOriginTest, ParametersAreThoseOfTheCheckpointThatTheChiefNames) {
  job_.init_path = std::exchange(job_.restore_path, "");
  ASSERT_TRUE(restore());
  EXPECT_THAT(store_->parameters(), testing::ElementsAreArray(checkpoint::held_by(job_.layout, 0, 10, 1).parameters));
}

TEST_F(ShardOriginTest, CheckpointThatTheChiefNamesIsKeptForTheNextGeneration) {
  job_.init_path = std::exchange(job_.restore_path, "");
  Result<ShardOrigin> origin = ShardOrigin::open(files_, job_);
  ASSERT_TRUE(origin);
  std::unique_ptr<checkpoint::InputFile> lock = origin->take_init_lock();
  const auto newest = checkpoint::save(files_, kFolder, job_.layout, 1, 20, 1, 20);
  ASSERT_TRUE(newest);
  ASSERT_TRUE(checkpoint::retain(files_, kFolder, {1, 0, *newest}));
  EXPECT_TRUE(files_.list(job_.init_path));
  lock.reset();
  ASSERT_TRUE(checkpoint::retain(files_, kFolder, {1, 0, *newest}));
  EXPECT_FALSE(files_.list(job_.init_path));
}

// Two shards might find different newest checkpoints, so each order must name the checkpoint.
TEST_F(ShardOriginTest, JobsFolderOfWhichTheChiefNamedNoCheckpointIsRefused) {
  job_.restore_path = "";
  job_.init_path = kFolder;
  const Status restored = restore();
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kConfig);
  EXPECT_THAT(restored.error().message, HasSubstr("name one of the checkpoints in it"));
}

TEST_F(ShardOriginTest, ErrorOfFirstParametersNamesTheKey) {
  job_.restore_path = "";
  job_.init_path = "/nowhere";
  const Status restored = restore();
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kNoInput);
  EXPECT_THAT(restored.error().message, testing::StartsWith("checkpoint.init_from: /nowhere isn't there"));
}

// If a ps calls a checkpoint damaged, the chief sets it aside. Here the checkpoint is intact, and only its file system
// was unmounted for a moment.
TEST_F(ShardOriginTest, FolderThatGoesAwayWhileItIsReadIsNotDamage) {
  bool is_away = false;
  files_.fault = [&is_away](MemoryFiles::Op op, const std::string& path) -> std::optional<Error> {
    if (!is_away || op != MemoryFiles::Op::kOpen) return std::nullopt;
    return Error{ErrorCode::kNoInput, path + ": no such file"};
  };
  const Result<ShardOrigin> origin = ShardOrigin::open(files_, job_);
  ASSERT_TRUE(origin);
  is_away = true;
  const Status filled = origin->fill(files_, job_, ShardId(0), *store_, {});
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().code, ErrorCode::kConfig);
  EXPECT_THAT(filled.error().message, HasSubstr("isn't the folder that the chief sees"));
}

TEST_F(ShardOriginTest, ManifestThatGoesAwayWithItsFolderIsNotDamage) {
  int opened = 0;
  files_.fault = [&opened](MemoryFiles::Op op, const std::string& path) -> std::optional<Error> {
    if (op != MemoryFiles::Op::kOpen || ++opened == 1) return std::nullopt;  // the token comes first
    return Error{ErrorCode::kNoInput, path + ": no such file"};
  };
  const Status restored = restore();
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kConfig) << restored.error().message;
}

// The lock proves nothing: the chief that holds it may belong to another cluster, on another host.
TEST_F(ShardOriginTest, FolderWithAnotherMarkIsAnotherThoughItIsLocked) {
  ASSERT_TRUE(checkpoint::write_token(files_, kFolder, kToken - 1));
  const auto lock = checkpoint::lock_job_folder(files_, "", "job");
  ASSERT_TRUE(lock) << lock.error().message;
  const Status refused = restore();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_THAT(refused.error().message, HasSubstr("isn't the folder that the chief sees"));
}

}  // namespace
}  // namespace disttrain::shards
