// `disttrain checkpoint list` shows the checkpoints of a job, or of all jobs of a folder.
#include <gmock/gmock.h>

#include "tests/tools/disttrain/checkpoint/verbs_fixture.h"

namespace disttrain::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(CheckpointVerbs, ListShowsAJobsCheckpointsNewestFirst) {
  for (const std::uint64_t step : {9, 1000, 20}) saved(step);
  const Ran ran = run("list " + job() + " --json");
  EXPECT_EQ(ran.code, 0);
  const Json all = ran.json()["checkpoints"];
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["step"], 1000);
  EXPECT_EQ(all[1]["step"], 20);
  EXPECT_EQ(all[2]["step"], 9);
  EXPECT_EQ(all[0]["job"], "small");
  EXPECT_EQ(all[0]["name"], "gen-3-step-00000000000000001000");
  EXPECT_EQ(all[0]["path"], job() + "/gen-3-step-00000000000000001000");
  EXPECT_EQ(all[0]["generation"], 3);
  EXPECT_EQ(all[0]["shards"], 2);
  EXPECT_EQ(all[0]["created"], "1970-01-01T00:00:00Z");
  EXPECT_TRUE(all[0]["readable"]);
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(all[0]["path"].get<std::string>())) bytes += entry.file_size();
  EXPECT_EQ(all[0]["bytes"], bytes);
}

TEST_F(CheckpointVerbs, ListOfTheDirectoryAboveShowsAllJobs) {
  saved(10);
  saved(20, 1, "other");
  const Ran ran = run("list all");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("small  "), HasSubstr("other  "), HasSubstr("MANIFEST"), HasSubstr("readable")));
}

TEST_F(CheckpointVerbs, ListSaysWhichManifestIsUnreadable) {
  saved(10);
  fs::resize_file(saved(20) + "/MANIFEST.json", 100);
  const Ran ran = run("list " + job() + " --json");
  EXPECT_EQ(ran.code, 0);
  EXPECT_FALSE(ran.json()["checkpoints"][0]["readable"]);
  EXPECT_THAT(ran.json()["checkpoints"][0]["reason"], HasSubstr("MANIFEST.json isn't JSON"));
  EXPECT_TRUE(ran.json()["checkpoints"][1]["readable"]);
}

TEST_F(CheckpointVerbs, ListOfAMissingFolderIsNoInputAndOfAnEmptyFolderIsEmpty) {
  EXPECT_EQ(run("list nowhere").code, 66);
  const Ran empty = run("list " + job() + " --json");
  EXPECT_EQ(empty.code, 0);
  EXPECT_EQ(empty.json(), Json::parse(R"({"checkpoints": [], "set_aside": []})"));
}

TEST_F(CheckpointVerbs, ListShowsWhatWasSetAsideWithItsSize) {
  saved(10);
  const std::string name = fs::path(saved(20)).filename();
  // If a job was started over, a new checkpoint may have the same name.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(set_aside(files_, saved(20)));
  for (const std::string folder : {"all", "all/small"}) {
    const Json json = run("list " + folder + " --json").json();
    EXPECT_EQ(json["checkpoints"].size(), 1u);
    ASSERT_EQ(json["set_aside"].size(), 2u);
    EXPECT_EQ(json["set_aside"][0]["path"], job() + "/.broken-" + name);
    EXPECT_EQ(json["set_aside"][1]["path"], job() + "/.broken-" + name + "-2");
    EXPECT_GT(json["set_aside"][0]["bytes"], 100);
  }
  const Ran ran = run("list all");
  EXPECT_THAT(ran.out, AllOf(HasSubstr("set aside because it didn't verify: " + job() + "/.broken-" + name + " ("),
                             HasSubstr("disttrain checkpoint verify")));
  EXPECT_EQ(run("verify " + job() + "/.broken-" + name).code, 0) << "this one is undamaged";
}

}  // namespace
}  // namespace disttrain::checkpoint
