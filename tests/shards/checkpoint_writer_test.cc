// The thread that writes checkpoints at a ps. The tests run it without the rest of the ps.
#include "shards/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <filesystem>
#include <limits>

#include "tests/run_until.h"
#include "tests/shards/core/shard_cluster.h"
#include "tests/shards/gated_files.h"

namespace disttrain::shards::test {
namespace {

using testing::HasSubstr;

class CheckpointWriterTest : public testing::Test {
 protected:
  CheckpointWriterTest() {
    std::string pattern = testing::TempDir() + "writer-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    auto job = std::make_shared<ShardJob>();
    job->layout = small_layout(1);
    job_ = job;
    elements_ = shard_words(job->layout, ShardId(0));
  }
  ~CheckpointWriterTest() override {
    files_.let_go();
    std::filesystem::remove_all(folder_);
  }

  Status prepare(std::uint64_t attempt) {
    std::optional<Status> prepared;
    std::filesystem::create_directory(folder(attempt));
    writer_.prepare(job_, attempt, folder(attempt), {ShardId(0)}, [&](Status status) { prepared = std::move(status); });
    EXPECT_TRUE(writer_.is_busy());
    EXPECT_TRUE(run_until(loop_, [&] { return prepared.has_value(); }));
    return *prepared;
  }
  void write(std::uint64_t attempt) {
    written_.reset();
    writer_.write(attempt, ShardId(0), copy(), [this](Result<WrittenShard> done) { written_ = std::move(done); });
  }
  Result<WrittenShard> answer() {
    EXPECT_TRUE(run_until(loop_, [&] { return written_.has_value(); }));
    return *written_;
  }
  std::shared_ptr<const ShardCopy> copy() {
    copy_ = std::make_shared<ShardCopy>(elements_, 0);
    std::fill(copy_->all().begin(), copy_->all().end(), 0.5F);
    if (bad_) copy_->all()[*bad_] = std::numeric_limits<float>::quiet_NaN();
    return ShardCopy::lend(copy_);
  }
  std::string folder(std::uint64_t attempt) const { return folder_ + "/" + std::to_string(attempt); }

  asio::io_context loop_;
  GatedFiles files_;
  std::string folder_;
  ShardJobPtr job_;
  std::uint64_t elements_ = 0;
  std::shared_ptr<ShardCopy> copy_;
  std::optional<std::size_t> bad_;  // this word of the copy is a NaN
  std::optional<Result<WrittenShard>> written_;
  CheckpointWriter writer_{files_, [this](std::function<void()> task) { asio::post(loop_, std::move(task)); }};
};

TEST_F(CheckpointWriterTest, FileIsWholeSyncedAndTheCopyFreeWhenItIsTold) {
  ASSERT_TRUE(prepare(1));
  write(1);
  const Result<WrittenShard> done = answer();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(checkpoint::verify_file(files_, folder(1), done->file));
  EXPECT_FALSE(copy_->is_lent());
  EXPECT_FALSE(writer_.is_busy());
  EXPECT_GT(writer_.pieces(), 0U);
  EXPECT_EQ(files_.being_written(), 0);
}

TEST_F(CheckpointWriterTest, ACopyWithANanIsNotWritten) {
  ASSERT_TRUE(prepare(1));
  bad_ = elements_ - 1;
  write(1);
  const Result<WrittenShard> done = answer();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kData);
  EXPECT_THAT(done.error().message, HasSubstr("has a NaN or an infinity in its parameters"));
  EXPECT_EQ(files_.being_written(), 0) << "an open file keeps its disk space after the file is removed";
}

TEST_F(CheckpointWriterTest, ShardThatWasNotPreparedIsNotWritten) {
  write(1);
  EXPECT_THAT(answer().error().message, HasSubstr("is over"));
  ASSERT_TRUE(prepare(2));
  write(1);
  EXPECT_THAT(answer().error().message, HasSubstr("checkpoint attempt 1 is over"));
  EXPECT_FALSE(copy_->is_lent());
}

TEST_F(CheckpointWriterTest, CancelledWriteIsAnsweredWithAnErrorAndFreesItsCopy) {
  ASSERT_TRUE(prepare(1));
  files_.hold(GatedFiles::Op::kAppend, "shard-");
  write(1);
  ASSERT_TRUE(run_until(loop_, [&] { return files_.is_waiting(); }));
  EXPECT_TRUE(copy_->is_lent());
  writer_.cancel();
  EXPECT_TRUE(writer_.is_busy()) << "busy until the disk operation under way ends";
  files_.let_go();
  const Result<WrittenShard> done = answer();
  // The writer checks for a cancellation between two pieces. This file is so small that it has one piece, so the write
  // may complete.
  EXPECT_TRUE(done || done.error().code == ErrorCode::kTemporary);
  EXPECT_FALSE(copy_->is_lent());
  EXPECT_TRUE(run_until(loop_, [&] { return files_.being_written() == 0; }));
}

TEST_F(CheckpointWriterTest, CancelledBeforeItsTurnIsAnsweredToo) {
  ASSERT_TRUE(prepare(1));
  files_.hold(GatedFiles::Op::kAppend, "shard-");
  write(1);
  ASSERT_TRUE(run_until(loop_, [&] { return files_.is_waiting(); }));
  std::optional<Status> prepared;
  std::filesystem::create_directory(folder(2));
  writer_.prepare(job_, 2, folder(2), {ShardId(0)}, [&](Status status) { prepared = std::move(status); });
  writer_.cancel();
  files_.let_go();
  ASSERT_TRUE(run_until(loop_, [&] { return prepared.has_value(); }));
  ASSERT_FALSE(*prepared);
  EXPECT_EQ(prepared->error().code, ErrorCode::kTemporary);
  EXPECT_TRUE(run_until(loop_, [&] { return files_.being_written() == 0; }));
  ASSERT_TRUE(prepare(3)) << "the writer can be used again";
  write(3);
  EXPECT_TRUE(answer());
}

TEST_F(CheckpointWriterTest, ErrorsOfTheDiskAreTold) {
  files_.fail_with(GatedFiles::Op::kReserve, Error{ErrorCode::kFailed, "no space left on device"});
  EXPECT_THAT(prepare(1).error().message, HasSubstr("no space left"));
  files_.fail_with(GatedFiles::Op::kReserve, std::nullopt);
  ASSERT_TRUE(prepare(2));
  files_.fail_with(GatedFiles::Op::kSync, Error{ErrorCode::kFailed, "input/output error"});
  write(2);
  EXPECT_THAT(answer().error().message, HasSubstr("input/output error"));
  EXPECT_FALSE(copy_->is_lent());
}

}  // namespace
}  // namespace disttrain::shards::test
