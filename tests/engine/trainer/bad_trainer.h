// The fixture of the tests with trainers that go wrong.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/engine/trainer/trainer_fixture.h"

namespace disttrain::workerd::test {

class BadTrainerTest : public testing::Test, public TrainerFixture {
 protected:
  void SetUp() override {
    if (std::string(DISTTRAIN_PYTHON).empty()) GTEST_SKIP() << "no Python with NumPy: run tools/setup";
  }

  // The error with which the trainer doesn't come to its first step.
  Error start_error() {
    const Status made = make();
    EXPECT_FALSE(made.has_value());
    return made ? Error() : made.error();
  }
  // The error of a step of a trainer that has described its model.
  Error step_error() {
    if (Status ok = make(); !ok) {
      ADD_FAILURE() << ok.error().message;
      return {};
    }
    EXPECT_TRUE(open().has_value());
    const auto result = run(Program::kStep, {1, 2}, 1000);
    EXPECT_FALSE(result.has_value());
    return result ? Error() : result.error();
  }
};

}  // namespace disttrain::workerd::test
