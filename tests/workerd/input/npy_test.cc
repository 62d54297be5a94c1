#include <gtest/gtest.h>

#include "tests/workerd/input/input_files.h"

namespace disttrain::input {
namespace {

constexpr auto kNpy = DataFormat::kNpy;
using Floats = std::vector<float>;
using Labels = std::vector<std::int64_t>;

class Npy : public testing::Test {
 protected:
  Npy() { folder_.write("y.npy", npy<std::int64_t>("<i8", "(2,)", {3, 1})); }

  Source write_inputs(const std::string& content) {
    folder_.write("x.npy", content);
    return source(kNpy, folder_, "x.npy", "y.npy");
  }

  void expect_inputs(const std::string& content, const Floats& expected) {
    const auto dataset = load(write_inputs(content));
    ASSERT_NE(dataset, nullptr);
    EXPECT_EQ(all_rows(*dataset).inputs, expected);
    EXPECT_EQ(all_rows(*dataset).labels, (Labels{3, 1}));
  }

  Folder folder_;
};

TEST_F(Npy, AllElementTypesAreRead) {
  expect_inputs(npy<float>("<f4", "(2, 2)", {1, 2, 3, 4.5F}), {1, 2, 3, 4.5F});
  expect_inputs(npy<double>("<f8", "(2, 2)", {1, 2, 3, 0.1}), {1, 2, 3, 0.1F});
  expect_inputs(npy<std::uint8_t>("|u1", "(2, 2)", {1, 2, 3, 200}), {1, 2, 3, 200});
  expect_inputs(npy<std::int32_t>("<i4", "(2, 2)", {1, 2, 3, -4}), {1, 2, 3, -4});
  expect_inputs(npy<std::int64_t>("<i8", "(2, 2)", {1, 2, 3, -4}), {1, 2, 3, -4});
}

TEST_F(Npy, AllVersionsAreRead) {
  for (int version : {1, 2, 3}) expect_inputs(npy<float>("<f4", "(2, 1)", {1, 2}, version), {1, 2});
}

TEST_F(Npy, ShapesAreFlattened) {
  expect_inputs(npy<float>("<f4", "(2, 1, 2)", {1, 2, 3, 4}), {1, 2, 3, 4});
  expect_inputs(npy<float>("<f4", "(2,)", {1, 2}), {1, 2});
}

TEST_F(Npy, BigEndianIsRead) {
  expect_inputs(npy_header("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}") + bytes_of<float>({1, 2}, true),
                {1, 2});
}

TEST_F(Npy, FractionalLabelsAreTargets) {
  folder_.write("y.npy", npy<float>("<f4", "(2, 1)", {0.5F, 1}));
  const auto dataset = load(write_inputs(npy<float>("<f4", "(2, 1)", {1, 2})));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(target_elements(*dataset), 1u);
  EXPECT_EQ(all_rows(*dataset).targets, (Floats{0.5F, 1}));
}

TEST_F(Npy, LabelsMustBeNamed) {
  write_inputs(npy<float>("<f4", "(2, 1)", {1, 2}));
  expect_error(source(kNpy, folder_, "x.npy"), ErrorCode::kConfig, {"data.labels"});
}

TEST_F(Npy, BadHeadersAreNamed) {
  const auto bad = [this](const std::string& content, const std::string& what) {
    expect_error(write_inputs(content), ErrorCode::kData, {folder_ / "x.npy", what});
  };
  bad("", "empty");
  bad("PK\x03\x04 an npz file", "NUMPY");
  bad(npy<float>("<f4", "(2, 1)", {1, 2}, 4), "version 4");
  bad(std::string("\x93NUMPY\x01", 7), "truncated");
  bad(npy_header("{'descr': '<f4'").substr(0, 15), "truncated");
  bad(npy_header("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}"), "'<c8'");
  bad(npy_header("{'descr': '', 'fortran_order': False, 'shape': (2,)}"), "type ''");
  bad(npy_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"), "can't be read");
  bad(npy_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}"), "Fortran");
  bad(npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': ()}"), "single value");
  bad(npy_header("{'descr': '<f4', 'fortran_order': False}"), "can't be read");
  bad(npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1)}"), "can't be read");
  bad(npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}"), "can't be read");
  bad(npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"), "can't hold");
  bad(npy<float>("<f4", "(2, 1)", {1}), "4 bytes of values, expected 8");
  bad(npy<float>("<f4", "(2, 1)", {1, 2, 3}), "after the last value");
  bad("\x93NUMPY\x02" + std::string(1, '\0') + "\xff\xff\xff\x7f", "npy header of");
}

}  // namespace
}  // namespace disttrain::input
