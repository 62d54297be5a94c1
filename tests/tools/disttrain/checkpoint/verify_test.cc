// `disttrain checkpoint verify` names each damaged file.
#include <gmock/gmock.h>

#include "tests/tools/disttrain/checkpoint/verbs_fixture.h"

namespace disttrain::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(CheckpointVerbs, VerifyOfAnUndamagedCheckpointIsZero) {
  const std::string path = saved(10);
  const Ran ran = run("verify " + path);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr(path + " is valid: 2 files"));
}

TEST_F(CheckpointVerbs, VerifyNamesEveryDamagedFile) {
  const std::string path = saved(10, 3);
  damage(path + "/shard-0-of-3.safetensors", 3);
  damage(path + "/shard-2-of-3.safetensors", 300);
  const Ran ran = run("verify " + path);
  EXPECT_EQ(ran.code, 65);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.error, AllOf(HasSubstr(path + "/shard-0-of-3"), HasSubstr(path + "/shard-2-of-3"),
                               Not(HasSubstr("shard-1-of-3"))));
}

TEST_F(CheckpointVerbs, VerifyOfAJobsFolderChecksAllItsCheckpoints) {
  const std::string old = saved(10);
  const std::string middle = saved(20);
  const std::string newest = saved(30);
  damage(middle + "/shard-1-of-2.safetensors", 300);
  const Ran ran = run("verify " + job() + " --json");
  EXPECT_EQ(ran.code, 65);
  const Json json = ran.json();
  EXPECT_FALSE(json["well"]);
  ASSERT_EQ(json["checkpoints"].size(), 3u);
  EXPECT_EQ(json["checkpoints"][0]["path"], newest);
  EXPECT_TRUE(json["checkpoints"][0]["well"]);
  EXPECT_FALSE(json["checkpoints"][1]["well"]);
  EXPECT_THAT(json["checkpoints"][1]["problems"][0], HasSubstr(middle + "/shard-1-of-2.safetensors"));
  EXPECT_TRUE(json["checkpoints"][2]["well"]);
  EXPECT_EQ(json["checkpoints"][2]["path"], old);
}

TEST_F(CheckpointVerbs, VerifyFindsEveryKindOfDamage) {
  struct Case {
    const char* file;
    const char* said;
  };
  for (const Case& c : {Case{"shard-0-of-2.safetensors", "shard-0-of-2"}, Case{"MANIFEST.json", "MANIFEST.json"}}) {
    const std::string path = saved(10);
    const std::string file = path + "/" + c.file;
    fs::resize_file(file, fs::file_size(file) / 2);
    Ran ran = run("verify " + path);
    EXPECT_EQ(ran.code, 65) << "cut off: " << c.file;
    EXPECT_THAT(ran.error, HasSubstr(c.said));
    fs::remove(file);
    ran = run("verify " + path);
    EXPECT_EQ(ran.code, 65) << "lacking: " << c.file;
    EXPECT_THAT(ran.error, HasSubstr(c.said));
    fs::remove_all(path);
  }
}

TEST_F(CheckpointVerbs, VerifyOfNothingIsNoInput) {
  EXPECT_EQ(run("verify nowhere").code, 66);
  EXPECT_EQ(run("verify " + job()).code, 66);
}

}  // namespace
}  // namespace disttrain::checkpoint
