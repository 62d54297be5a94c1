// tests/data/npz/make.py writes the files.
#include "workerd/input/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workerd/input/blocks.h"
#include "tests/workerd/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFolder = DISTTRAIN_TEST_DATA "/npz/";

TEST(Npz, StoredAndDeflatedArraysAreRead) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const auto arrays = read_npz(kFolder + name, {});
    ASSERT_TRUE(arrays) << arrays.error().message;
    ASSERT_EQ(arrays->size(), 2U);
    EXPECT_EQ((*arrays)[0].name, "x");
    EXPECT_THAT((*arrays)[0].array.header.shape, ElementsAre(4, 3));
    std::vector<float> values(12);
    ASSERT_TRUE(write_as(DType::kFloat32, (*arrays)[0].array, std::as_writable_bytes(std::span(values))));
    EXPECT_EQ(values[11], 11.0F);
    EXPECT_THAT(whole_numbers((*arrays)[1].array).value(), ElementsAre(3, 1, 2, 0));
  }
}

TEST(Npz, OnlyNamedArraysAreRead) {
  const auto arrays = read_npz(kFolder + "deflated.npz", {"y"});
  ASSERT_TRUE(arrays) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 1U);
  EXPECT_EQ((*arrays)[0].name, "y");
  EXPECT_THAT(error_of(read_npz(kFolder + "stored.npz", {"y", "z"})), HasSubstr("stored.npz: has no array \"z\""));
}

TEST(Npz, DamagedFilesAreRefused) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = read_whole(kFolder + name);
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 3) {
      const auto content = std::as_bytes(std::span(whole)).first(bytes);
      EXPECT_NE(error_of(read_npz_from(content, "a.npz", {"x", "y"})), "") << name << " " << bytes;
    }
    std::string damaged = whole;
    const std::size_t value = name[0] == 's' ? 128 + 60 : 128;
    damaged[value] = static_cast<char>(damaged[value] ^ 1);
    EXPECT_THAT(error_of(read_npz_from(std::as_bytes(std::span(damaged)), "a.npz", {})),
                HasSubstr("a.npz, array \"x\""));
  }
  EXPECT_NE(error_of(read_npz_from(std::as_bytes(std::span("no zip file")), "a.npz", {})), "");
  EXPECT_EQ(read_npz(kFolder + "absent.npz", {}).error().code, ErrorCode::kNoInput);
  EXPECT_EQ(read_npz(kFolder + "stored.npz", {}, [] { return true; }).error().code, ErrorCode::kTemporary);
}

}  // namespace
}  // namespace disttrain::input
