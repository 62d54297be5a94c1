#include "engine/factory.h"

#include <gtest/gtest.h>

namespace disttrain::workerd {
namespace {

ModelSection small_mlp() {
  ModelSection model;
  model.builtin = "mlp";
  model.layers = {2, 3};
  return model;
}

TEST(EngineFactory, MakesAnEngineForTheCpu) {
  const auto engine = make_engine(small_mlp(), "cpu", 1, {});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(element_count((*engine)->describe().columns.at(0)), 2U);
}

TEST(EngineFactory, RefusesADeviceThatThisVersionHasNoEngineFor) {
  const auto engine = make_engine(small_mlp(), "cuda:0", 1, {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kConfig);
  EXPECT_NE(engine.error().message.find("\"cuda:0\""), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace disttrain::workerd
