// What `disttrain predict` refuses before it starts workerd.
#include <gtest/gtest.h>

#include <string>

#include "common/result.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {
namespace {

TEST(Predict, AnOptionThatIsNotUtf8IsAMistakeInTheCommandLine) {
  for (std::string PredictOptions::*option : {&PredictOptions::data, &PredictOptions::files, &PredictOptions::labels}) {
    PredictOptions options;
    options.checkpoint = "/checkpoints/job";
    options.out = testing::TempDir() + "outputs.npy";
    options.*option = "caf\xe9";
    testing::internal::CaptureStderr();
    EXPECT_EQ(predict(options), static_cast<int>(ErrorCode::kUsage));
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_NE(told.find("caf\\xe9\", which isn't UTF-8"), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace disttrain::cli
