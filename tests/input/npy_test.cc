#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "input/fits.h"
#include "tests/input/input_files.h"

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

// 2^24 + 1 is the first whole number that float32 doesn't have.
TEST_F(Npy, IntegersKeepAllDigits) {
  const std::vector<std::int64_t> large = {(1 << 24) + 1, -5, std::int64_t{1} << 62, (std::int64_t{1} << 53) + 1};
  Source inputs = write_inputs(npy<std::int64_t>("<i8", "(2, 2)", large));
  for (const std::optional<DType> as : {std::optional<DType>(), std::optional(DType::kInt64)}) {
    inputs.inputs_as = as;
    const auto dataset = load(inputs);
    ASSERT_NE(dataset, nullptr);
    EXPECT_EQ(dataset->columns()[0].dtype, DType::kInt64);
    EXPECT_EQ(dataset->columns()[0].smallest, -5);
    EXPECT_EQ(dataset->columns()[0].largest, std::int64_t{1} << 62);
    EXPECT_EQ(gather<std::int64_t>(*dataset, {0, 1}, 0, DType::kInt64, 2), large);
  }
}

TEST_F(Npy, SmallIntegersAreInt32) {
  const auto of_type = [this](const std::string& content) {
    const auto dataset = load(write_inputs(content));
    EXPECT_EQ(gather<std::int32_t>(*dataset, {0, 1}, 0, DType::kInt32, 1), (std::vector<std::int32_t>{7, -8}));
    return dataset->columns()[0].dtype;
  };
  EXPECT_EQ(of_type(npy<std::int8_t>("|i1", "(2, 1)", {7, -8})), DType::kInt32);
  EXPECT_EQ(of_type(npy<std::int16_t>("<i2", "(2, 1)", {7, -8})), DType::kInt32);
  EXPECT_EQ(of_type(npy<std::int32_t>("<i4", "(2, 1)", {7, -8})), DType::kInt32);
  EXPECT_EQ(of_type(npy_header("{'descr': '>i4', 'fortran_order': False, 'shape': (2,)}") +
                    bytes_of<std::int32_t>({7, -8}, true)),
            DType::kInt32);
}

TEST_F(Npy, FilesOfSeveralTypesTakeOneThatHoldsAll) {
  const auto of_types = [this](const std::string& first, const std::string& second) {
    folder_.write("x1.npy", first);
    folder_.write("x2.npy", second);
    const auto dataset = load(source(kNpy, folder_, "x?.npy", "y.npy"));
    EXPECT_EQ(gather<float>(*dataset, {0, 1}, 0, DType::kFloat32, 1), (Floats{3, 4}));
    return dataset->columns()[0].dtype;
  };
  const std::string bytes = npy<std::uint8_t>("|u1", "(1, 1)", {3});
  EXPECT_EQ(of_types(bytes, npy<std::uint8_t>("|u1", "(1, 1)", {4})), DType::kUint8);
  EXPECT_EQ(of_types(bytes, npy<std::int16_t>("<i2", "(1, 1)", {4})), DType::kInt32);
  EXPECT_EQ(of_types(bytes, npy<std::int64_t>("<i8", "(1, 1)", {4})), DType::kInt64);
  EXPECT_EQ(of_types(bytes, npy<float>("<f4", "(1, 1)", {4})), DType::kFloat32);
}

// Values of 8 bytes take 4 bytes in memory if the model takes float32.
TEST_F(Npy, WideValuesBecomeWhatTheModelTakes) {
  const auto type_for = [this](const std::string& content, std::optional<DType> as) {
    Source inputs = write_inputs(content);
    inputs.inputs_as = as;
    return load(inputs)->columns()[0].dtype;
  };
  const std::string whole = npy<std::int64_t>("<i8", "(2, 1)", {1, 2});
  const std::string real = npy<double>("<f8", "(2, 1)", {0.1, 2});
  EXPECT_EQ(type_for(whole, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(type_for(whole, DType::kInt32), DType::kInt64);
  EXPECT_EQ(type_for(real, std::nullopt), DType::kFloat32);
  EXPECT_EQ(type_for(real, DType::kFloat64), DType::kFloat64);
  Source inputs = write_inputs(real);
  inputs.inputs_as = DType::kFloat64;
  EXPECT_EQ(gather<double>(*load(inputs), {0}, 0, DType::kFloat64, 1), std::vector<double>{0.1});
}

TEST_F(Npy, SeveralIntegersPerLabelAreTargetsThatKeepTheirType) {
  folder_.write("y.npy", npy<std::int64_t>("<i8", "(2, 2)", {1, 2, 3, (1 << 24) + 1}));
  Source labels = write_inputs(npy<float>("<f4", "(2, 1)", {1, 2}));
  const auto dataset = load(labels);
  ASSERT_NE(dataset, nullptr);
  EXPECT_FALSE(dataset->columns()[1].are_classes);
  EXPECT_EQ(gather<std::int64_t>(*dataset, {1}, 1, DType::kInt64, 2), (Labels{3, (1 << 24) + 1}));
  labels.labels_as = DType::kFloat32;
  EXPECT_EQ(load(labels)->columns()[1].dtype, DType::kFloat32);
}

TEST_F(Npy, AllVersionsAreRead) {
  for (int version : {1, 2, 3}) expect_inputs(npy<float>("<f4", "(2, 1)", {1, 2}, version), {1, 2});
}

TEST_F(Npy, ShapesAreFlattened) {
  expect_inputs(npy<float>("<f4", "(2, 1, 2)", {1, 2, 3, 4}), {1, 2, 3, 4});
  expect_inputs(npy<float>("<f4", "(2,)", {1, 2}), {1, 2});
}

// Images whose channels come last would otherwise pass for images whose channels come first.
TEST_F(Npy, ModelOfAnotherShapeIsRefused) {
  const auto error = [this](const std::string& shape, std::vector<std::uint64_t> wanted) {
    const auto dataset =
        load(write_inputs(npy<std::uint8_t>("|u1", "(2, " + shape + ")", std::vector<std::uint8_t>(24))));
    ModelSpec model;
    model.columns = {{.name = "image", .dtype = DType::kFloat32, .shape = std::move(wanted)}};
    const Status fit = fits(*dataset, model, ModelSection(), Source());
    return fit ? "" : fit.error().message;
  };
  EXPECT_EQ(error("2, 2, 3", {3, 2, 2}),
            "the records of data.files have values of the shape [2, 2, 3], but the model's column \"image\" takes "
            "values of the shape [3, 2, 2]: change the model or data.files, for example by numpy.transpose");
  EXPECT_EQ(error("2, 2, 3", {2, 2, 3}), "");
  EXPECT_EQ(error("4, 3", {1, 4, 3}), "");
  EXPECT_EQ(error("4, 3, 1", {1, 4, 3}), "");
  EXPECT_NE(error("4, 3", {1, 3, 4}), "");
  EXPECT_EQ(error("12", {2, 2, 3}), "");
  EXPECT_EQ(error("1, 12", {2, 2, 3}), "");
  EXPECT_EQ(error("2, 2, 3", {12}), "");
  EXPECT_EQ(error("2, 6", {2, 2, 3}), "") << "the same order";
  EXPECT_EQ(error("2, 2, 3", {4, 3}), "") << "the same order";
  EXPECT_NE(error("3, 4", {2, 2, 3}), "");
}

TEST_F(Npy, TargetsOfAnotherShapeAreRefused) {
  folder_.write("y.npy", npy<float>("<f4", "(2, 2, 3)", std::vector<float>(12)));
  const auto dataset = load(write_inputs(npy<float>("<f4", "(2,)", {1, 2})));
  for (const bool is_same : {true, false}) {
    ModelSpec model;
    model.columns = {{.name = "x", .dtype = DType::kFloat32, .shape = {1}},
                     {.name = "y", .dtype = DType::kFloat32, .shape = {2, 3}}};
    if (!is_same) model.columns[1].shape = {3, 2};
    EXPECT_EQ(fits(*dataset, model, ModelSection(), Source()).has_value(), is_same);
  }
}

TEST_F(Npy, FilesOfOtherShapesAreRefused) {
  const Source both = source(kNpy, folder_, "x*.npy", "y.npy");
  folder_.write("x1.npy", npy<float>("<f4", "(1, 6)", {1, 2, 3, 4, 5, 6}));
  folder_.write("x2.npy", npy<float>("<f4", "(1, 2, 3)", {1, 2, 3, 4, 5, 6}));
  const auto dataset = load(both);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->columns()[0].shape, (std::vector<std::uint64_t>{2, 3}));
  folder_.write("x1.npy", npy<float>("<f4", "(1, 3, 2)", {1, 2, 3, 4, 5, 6}));
  expect_error(
      both, ErrorCode::kData,
      {folder_ / "x2.npy", "its records have the shape [2, 3], expected [3, 2] as in " + (folder_ / "x1.npy")});
  folder_.write("x2.npy", npy<float>("<f4", "(1, 2, 2, 2)", Floats(8)));
  expect_error(both, ErrorCode::kData,
               {folder_ / "x2.npy", "its records have 8 values (shape [1, 2, 2, 2]), expected 6 as in"});
}

TEST_F(Npy, FileThatDividesRecordsTheMostGivesTheShape) {
  const Source all = source(kNpy, folder_, "x*.npy", "y.npy");
  folder_.write("y.npy", npy<std::int64_t>("<i8", "(3,)", {3, 1, 2}));
  folder_.write("x1.npy", npy<float>("<f4", "(1, 2, 6)", Floats(12)));
  folder_.write("x2.npy", npy<float>("<f4", "(1, 2, 2, 3)", Floats(12)));
  folder_.write("x3.npy", npy<float>("<f4", "(1, 4, 3)", Floats(12)));
  const auto dataset = load(all);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->columns()[0].shape, (std::vector<std::uint64_t>{2, 2, 3}));
  folder_.write("x3.npy", npy<float>("<f4", "(1, 3, 4)", Floats(12)));
  expect_error(
      all, ErrorCode::kData,
      {folder_ / "x3.npy", "its records have the shape [3, 4], expected [2, 2, 3] as in " + (folder_ / "x2.npy")});
}

// A model that takes flat records fits both.
TEST_F(Npy, TestSetOfAnotherShapeThanTheTrainingSetIsRefused) {
  Source test = write_inputs(npy<float>("<f4", "(2, 2, 2, 3)", Floats(24)));
  for (const std::vector<std::uint64_t>& shape :
       std::vector<std::vector<std::uint64_t>>{{}, {2, 2, 3}, {4, 3}, {2, 1, 6}, {12}}) {
    test.record_shape = shape;
    EXPECT_NE(load(test), nullptr);
  }
  test.record_shape = {3, 2, 2};
  expect_error(test, ErrorCode::kData,
               {folder_ / "x.npy",
                "its records have the shape [2, 2, 3], expected [3, 2, 2] as in the training set: transpose the "
                "array"});
  test.record_shape = {3, 4, 4};
  EXPECT_NE(load(test), nullptr) << "fits() refuses records of another size";
  folder_.write("y.npy", npy<float>("<f4", "(2, 2, 3)", Floats(12)));
  test.record_shape = {};
  test.label_shape = {3, 2};
  expect_error(test, ErrorCode::kData, {folder_ / "y.npy", "expected [3, 2] as in the training set"});
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

// The numbers 0.0 and 1.0 are the classes 0 and 1, as they are in csv and Parquet files.
TEST_F(Npy, WholeLabelsOfAFloatingTypeAreClassesIfTheModelTakesClasses) {
  const auto columns_of = [this](const std::string& labels, std::optional<DType> labels_as) {
    folder_.write("y.npy", labels);
    Source from = write_inputs(npy<float>("<f4", "(2, 1)", {1, 2}));
    from.labels_as = labels_as;
    return load(from)->columns()[1];
  };
  for (const std::string& labels : {npy<float>("<f4", "(2,)", {1, 0}), npy<double>("<f8", "(2, 1)", {1, 0})}) {
    EXPECT_TRUE(columns_of(labels, DType::kInt64).are_classes);
    EXPECT_FALSE(columns_of(labels, DType::kFloat32).are_classes) << "a loss of numbers";
    EXPECT_EQ(columns_of(labels, std::nullopt).dtype, DType::kFloat32) << "a trainer";
  }
  const DatasetColumn with_ignored = columns_of(npy<float>("<f4", "(2,)", {-100, 1}), DType::kInt64);
  EXPECT_EQ(with_ignored.dtype, DType::kInt64);
  EXPECT_FALSE(with_ignored.are_classes);
  EXPECT_EQ(with_ignored.smallest, -100);
  for (const std::vector<double>& values : {std::vector<double>{0.5, 1}, {-1, 1}, {1e17, 1}, {1, std::nan("")}}) {
    folder_.write("y.npy", npy<double>("<f8", "(2,)", values));
    Source from = write_inputs(npy<float>("<f4", "(2, 1)", {1, 2}));
    from.labels_as = DType::kInt64;
    const auto dataset = load_dataset(from);
    EXPECT_TRUE(!dataset || !(*dataset)->columns()[1].are_classes);
  }
  folder_.write("y.npy", npy<double>("<f8", "(2,)", {1, 0}));
  Source from = write_inputs(npy<float>("<f4", "(2, 1)", {1, 2}));
  from.labels_as = DType::kInt64;
  EXPECT_EQ(all_rows(*load(from)).labels, (Labels{1, 0}));
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
  bad("PK\x03\x04 an npz file", "set data.format = \"npz\"");
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
