#include "tools/disttrain/table.h"

#include <gtest/gtest.h>

namespace disttrain::cli {
namespace {

TEST(Table, AlignsColumns) {
  Table table({"TASK", "N"});
  table.add({"worker/10", "5"});
  table.add({"ps/0", "12345"});
  EXPECT_EQ(table.text(), "TASK           N\nworker/10      5\nps/0       12345\n");
}

}  // namespace
}  // namespace disttrain::cli
