// All verbs of `disttrain checkpoint`: names that control a terminal, and wrong use.
#include <gmock/gmock.h>

#include "tests/tools/disttrain/checkpoint/verbs_fixture.h"

namespace disttrain::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(CheckpointVerbs, NamesThatControlATerminalAreShown) {
  ModelSpec model = small_model();
  model.variables[0].name =
      "a\x1b[2J\n\xc2\x9b"
      "b";
  const auto path = save(files_, job(), layout_of(model, 2, 5), 3, 9, 1);
  ASSERT_TRUE(path) << path.error().message;
  for (const std::string& verb : {"inspect " + *path, "diff " + *path + " " + *path}) {
    const Ran ran = run(verb);
    EXPECT_EQ(ran.code, 0) << ran.error;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("a\\x1b[2J\\n\\x9bb"), Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b"))));
    const Ran json = run(verb + " --json");
    EXPECT_EQ(json.json()["variables"][0]["name"], model.variables[0].name) << json.out;
    EXPECT_THAT(json.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b"))));
  }
}

TEST_F(CheckpointVerbs, WrongUseIsAUsageError) {
  for (const char* arguments : {"", "list", "inspect", "verify", "diff a", "export a", "list a b", "lst a"})
    EXPECT_EQ(run(arguments).code, 64) << arguments;
}

}  // namespace
}  // namespace disttrain::checkpoint
