#include "common/program/package.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/common/program/packages.h"

namespace disttrain::program {
namespace {

class PackageTest : public testing::Test {
 protected:
  PackageTest() : members_(test::members_of(test::made("batch_norm.pt"))) {}

  std::string error_of() {
    const Result<Package> package = Package::open(files_, folder_.write("p.pt", test::zip_of(members_)));
    return package ? "" : package.error().message;
  }
  std::string& json() { return members_["p/disttrain.json"]; }
  std::string& values() { return members_["p/disttrain.safetensors"]; }

  checkpoint::DiskFiles files_;
  test::Folder folder_;
  test::Members members_;
};

TEST_F(PackageTest, ReadsInitialValuesInTheOrderOfALayout) {
  Result<Package> package = Package::open(files_, test::made("batch_norm.pt"));
  ASSERT_TRUE(package) << package.error().message;
  Layout layout;
  layout.model = package->sidecar().model;
  std::uint64_t begin = 0;
  layout.variable_begins.resize(layout.model.variables.size());
  std::uint64_t weight = 0;
  for (std::size_t v = layout.model.variables.size(); v-- > 0;) {
    layout.variable_begins[v] = begin;
    if (layout.model.variables[v].name == "norm.weight") weight = begin;
    begin += element_count(layout.model.variables[v]);
  }
  const Result<std::vector<float>> values = package->initial_values(layout);
  ASSERT_TRUE(values) << values.error().message;
  ASSERT_EQ(values->size(), begin);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ((*values)[weight + i], 1.0F) << "batch norm begins with weight 1";
}

TEST_F(PackageTest, ReadsFrozenVariables) {
  Result<Package> package = Package::open(files_, test::made("batch_norm.pt"));
  ASSERT_TRUE(package);
  const auto& variables = package->sidecar().variables;
  ASSERT_EQ(variables[0].name, "body.weight");
  ASSERT_EQ(variables[0].kind, SidecarVariable::Kind::kFrozen);
  EXPECT_EQ(package->read(0)->size(), 8 * 6 * sizeof(float));
}

TEST_F(PackageTest, NoSidecarIsAnError) {
  EXPECT_EQ(error_of(), "");
  members_.erase("p/disttrain.json");
  EXPECT_NE(error_of().find("has no member disttrain.json, so disttrain.export didn't write it"), std::string::npos);
}

TEST_F(PackageTest, ValuesThatDontFitTheSidecarAreAnError) {
  test::replace(json(), "\"head.bias\"", "\"foot.bias\"");
  EXPECT_NE(error_of().find("has no values of variable foot.bias"), std::string::npos) << error_of();
  test::replace(json(), "\"foot.bias\"", "\"head.bias\"");
  const std::string header = "\"head.bias\": {\"dtype\": ";
  test::replace(values(), header + "\"F32\", \"shape\": [3], \"data", header + "\"I32\", \"shape\": [3], \"data");
  EXPECT_NE(error_of().find("variable head.bias has values of dtype I32; expected F32"), std::string::npos)
      << error_of();
  test::replace(values(), header + "\"I32\", \"shape\": [3], \"data", header + "\"F32\", \"shape\":[1,3],\"data");
  EXPECT_NE(error_of().find("variable head.bias has values of shape [1, 3]; expected [3]"), std::string::npos)
      << error_of();
  values().resize(values().size() - 4);
  EXPECT_NE(error_of().find("disttrain.safetensors"), std::string::npos) << error_of();
}

}  // namespace
}  // namespace disttrain::program
