#include "common/counted.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

TEST(Counted, OneThingHasNoPlural) {
  EXPECT_EQ(counted(0, "record"), "0 records");
  EXPECT_EQ(counted(1, "record"), "1 record");
  EXPECT_EQ(counted(2, "record"), "2 records");
  EXPECT_EQ(noun_for(1, "step"), "step");
  EXPECT_EQ(noun_for(11, "step"), "steps");
}

}  // namespace
}  // namespace disttrain
