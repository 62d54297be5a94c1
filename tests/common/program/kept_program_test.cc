#include "common/program/kept_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/weights.h"
#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"
#include "tests/common/program/packages.h"

namespace disttrain::program {
namespace {

using checkpoint::kProgramName;
using testing::HasSubstr;

// A checkpoint of a job whose model has a frozen layer "body", batch norm, and two layers "middle" and "again" that
// share a weight. Element i of the flat order has the value step + i.
class KeptProgramTest : public testing::Test {
 protected:
  KeptProgramTest() {
    EXPECT_TRUE(files_.make_directory("/job"));
    package_ = std::make_unique<Package>(std::move(*Package::open(disk_, test::made("batch_norm.pt"))));
  }

  // Saves a checkpoint that keeps the package. Returns its path.
  std::string saved() {
    const auto keep = [this](const std::string& attempt, checkpoint::Manifest& manifest) -> Status {
      Result<checkpoint::FileEntry> entry = keep_program(files_, attempt, *package_);
      if (!entry) return tl::unexpected(entry.error());
      manifest.files.push_back(std::move(*entry));
      return {};
    };
    layout_ = checkpoint::layout_of(package_->sidecar().model, 2, 20);
    const auto path = checkpoint::save(files_, "/job", layout_, 1, 100, 1, 1, false, keep);
    EXPECT_TRUE(path) << path.error().message;
    return path.value_or("");
  }
  checkpoint::OpenCheckpoint open(const std::string& path) { return *checkpoint::open_checkpoint(files_, path); }

  checkpoint::DiskFiles disk_;
  checkpoint::MemoryFiles files_;
  std::unique_ptr<Package> package_;
  Layout layout_;
};

TEST_F(KeptProgramTest, ACheckpointGivesTheSidecarWithoutThePackage) {
  const std::string path = saved();
  const checkpoint::OpenCheckpoint checkpoint = open(path);
  EXPECT_TRUE(checkpoint::verify_files(files_, path, checkpoint.manifest));
  package_.reset();
  const auto sidecar = kept_program(files_, checkpoint);
  ASSERT_TRUE(sidecar.has_value()) << sidecar.error().message;
  ASSERT_TRUE(*sidecar);
  EXPECT_EQ((**sidecar).model, layout_.model);
}

TEST_F(KeptProgramTest, TheStateDictHasFrozenVariablesCountersAndAliases) {
  const auto entries = state_dict_of(package_->sidecar());
  ASSERT_TRUE(entries);
  std::map<std::string, StateEntry> by_name;
  for (const StateEntry& entry : *entries) EXPECT_TRUE(by_name.emplace(entry.name, entry).second) << entry.name;
  EXPECT_EQ(by_name.size(), 13u);
  EXPECT_EQ(by_name["body.weight"].dtype, checkpoint::DType::kF32);
  EXPECT_EQ(by_name["norm.num_batches_tracked"].dtype, checkpoint::DType::kI64);
  EXPECT_EQ(by_name["again.weight"].variable, "middle.weight");
  EXPECT_EQ(by_name["middle.weight"].variable, "middle.weight");
}

TEST_F(KeptProgramTest, FrozenValuesAreReadFromTheCheckpoint) {
  const std::vector<std::byte> expected = *package_->read(0);
  Result<checkpoint::Weights> weights = checkpoint::Weights::of_checkpoint(files_, open(saved()));
  ASSERT_TRUE(weights) << weights.error().message;
  const auto body = weights->find("body.weight");
  ASSERT_TRUE(body);
  std::vector<std::byte> stored(expected.size());
  ASSERT_TRUE(weights->read_stored(*body, 0, stored));
  EXPECT_EQ(stored, expected);
}

TEST_F(KeptProgramTest, AJobWithoutAProgramKeepsNone) {
  const auto path = checkpoint::save(files_, "/job", checkpoint::layout_of(checkpoint::small_model(), 1, 5), 1, 5);
  ASSERT_TRUE(path);
  const auto sidecar = kept_program(files_, open(*path));
  ASSERT_TRUE(sidecar.has_value());
  EXPECT_FALSE(*sidecar);
}

TEST_F(KeptProgramTest, DamageIsFoundInTheHeaderAndInTheValues) {
  const std::string path = saved();
  const std::string file = path + "/" + kProgramName;
  const std::vector<std::byte> good = files_.content(file);
  files_.content(file)[100] ^= std::byte{1};
  const auto sidecar = kept_program(files_, open(path));
  ASSERT_FALSE(sidecar.has_value());
  EXPECT_EQ(sidecar.error().code, ErrorCode::kData);
  files_.content(file) = good;
  files_.content(file).back() ^= std::byte{1};
  EXPECT_FALSE(checkpoint::verify_files(files_, path, open(path).manifest));
}

TEST_F(KeptProgramTest, AnotherModelsProgramIsRefused) {
  const std::string path = saved();
  checkpoint::OpenCheckpoint checkpoint = open(path);
  checkpoint.manifest.variables.back().name = "other";
  const auto sidecar = kept_program(files_, checkpoint);
  ASSERT_FALSE(sidecar.has_value());
  EXPECT_THAT(sidecar.error().message, HasSubstr("doesn't describe variable other of its checkpoint"));
}

}  // namespace
}  // namespace disttrain::program
