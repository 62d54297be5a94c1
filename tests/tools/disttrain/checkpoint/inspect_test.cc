// `disttrain checkpoint inspect` shows what a checkpoint holds.
#include <gmock/gmock.h>

#include "tests/tools/disttrain/checkpoint/verbs_fixture.h"

namespace disttrain::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(CheckpointVerbs, InspectShowsWhatACheckpointHolds) {
  const std::string path = saved(12000);
  const Ran ran = run("inspect " + path + " --json");
  ASSERT_EQ(ran.code, 0) << ran.error;
  const Json json = ran.json();
  EXPECT_EQ(json["path"], path);
  EXPECT_EQ(json["step"], 12000);
  EXPECT_EQ(json["generation"], 3);
  EXPECT_EQ(json["job"], "small");
  EXPECT_EQ(json["seed"], "fedcba9876543210");
  EXPECT_EQ(json["elements"], 39);
  EXPECT_EQ(json["optimizer"], Json::parse(R"({"rule": "momentum", "slots": 1, "average": false})"));
  EXPECT_EQ(json["variables"][1], Json::parse(R"({"name": "mean", "shape": [3], "kind": "state", "dtype": "float32",
    "elements": 3, "slices": 1, "shards": [1]})"));
  EXPECT_EQ(json["variables"][0]["shards"], Json::parse("[0, 1]"));
  EXPECT_EQ(json["shards"][1]["file"], "shard-1-of-2.safetensors");
  EXPECT_EQ(json["shards"][1]["version"], 12000);
  EXPECT_EQ(json["shards"][1]["applied"][0], Json::parse(R"({"task": "worker/1", "incarnation": "f000000000000001",
    "last_sequence": 7, "clock": 3})"));
  EXPECT_EQ(json["ledger"], Json::parse(R"([{"epoch": 2, "visited_records": 20, "intervals": 2}])"));
}

TEST_F(CheckpointVerbs, InspectOfAJobsFolderShowsItsNewestCheckpoint) {
  saved(10);
  saved(20);
  const Ran ran = run("inspect " + job());
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("step 20 of generation 3"), HasSubstr("momentum"), HasSubstr("w0"),
                             HasSubstr("[7,3]"), HasSubstr("worker/1"), HasSubstr("20 records of epoch 2")));
}

TEST_F(CheckpointVerbs, InspectOfNoCheckpointIsNoInputAndOfADamagedOneIsData) {
  const Ran none = run("inspect " + job());
  EXPECT_EQ(none.code, 66);
  EXPECT_THAT(none.error, HasSubstr("no checkpoint in " + job()));
  const std::string one = saved(5);
  for (const std::string& verb : {std::string("inspect "), std::string("export "), "diff " + job() + " "}) {
    const Ran of_all = run(verb + out("all") + (verb == "export " ? " " + out("out.safetensors") : ""));
    EXPECT_EQ(of_all.code, 66) << verb;
    EXPECT_THAT(of_all.error, HasSubstr("in " + out("all") +
                                        ": it holds the folder of a job; name a job's folder or one checkpoint, such "
                                        "as the newest, " +
                                        one));
  }
  fs::resize_file(saved(10) + "/MANIFEST.json", 100);
  EXPECT_EQ(run("inspect " + job()).code, 65);
}

}  // namespace
}  // namespace disttrain::checkpoint
