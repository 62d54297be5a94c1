// The columns of a model are bound to [data.columns] by their names.
#include "input/bind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input/batch_buffer.h"
#include "input/fits.h"
#include "input/numbered_dataset.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

ColumnSpec wants(const std::string& name, DType dtype, std::vector<std::uint64_t> shape = {}, std::uint64_t limit = 0) {
  return {.name = name, .dtype = dtype, .shape = std::move(shape), .limit = limit};
}

// Each test runs on records in memory, and on records that are read for each batch.
class Bind : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    folder_.write("a.jsonl",
                  R"({"age": 30, "country": "de", "place": [1, 2], "site": "x", "clicked": "no"}
{"age": 40, "country": "fr", "place": [3, 4], "site": "y", "clicked": "yes"}
)");
    source_ = input::source(DataFormat::kJsonl, folder_, "a.jsonl");
    for (const auto& [name, kind] : {std::pair("age", ColumnKind::kNumeric),
                                     {"country", ColumnKind::kCategory},
                                     {"place", ColumnKind::kNumeric},
                                     {"site", ColumnKind::kCategory},
                                     {"clicked", ColumnKind::kLabel}}) {
      source_.columns.emplace_back().name = name;
      source_.columns.back().kind = kind;
    }
    source_.columns[2].shape = {2};
    source_.memory = GetParam();
    Result<std::unique_ptr<Dataset>> dataset = load_dataset(source_);
    ASSERT_TRUE(dataset) << dataset.error().message;
    dataset_ = std::move(*dataset);
  }

  Status fit(const std::vector<ColumnSpec>& columns, const ModelSection& model = {}) const {
    ModelSpec spec;
    spec.columns = columns;
    return fits(*dataset_, spec, model, source_);
  }

  void expect_unfit(const std::vector<ColumnSpec>& columns, const testing::Matcher<std::string>& message) const {
    const Status status = fit(columns);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, message);
  }

  Folder folder_;
  Source source_;
  std::unique_ptr<Dataset> dataset_;
};

TEST_P(Bind, NamesGiveEachColumnItsOwnValuesInTheModelsOrder) {
  const std::vector<ColumnSpec> columns = {wants("clicked", DType::kInt64, {}, 2), wants("site", DType::kInt64, {}, 3),
                                           wants("place", DType::kFloat64, {2}), wants("age", DType::kFloat32),
                                           wants("country", DType::kInt32)};
  const Status status = fit(columns);
  ASSERT_TRUE(status) << status.error().message;
  BatchBuffer buffer(*dataset_, 2, columns);
  ASSERT_TRUE(buffer.fill(std::vector<std::uint64_t>{1, 0}));
  const Batch batch = buffer.batch();
  EXPECT_THAT(batch.columns[0].as<std::int64_t>(), ElementsAre(1, 0));
  EXPECT_THAT(batch.columns[1].as<std::int64_t>(), ElementsAre(2, 1));
  EXPECT_THAT(batch.columns[2].as<double>(), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(batch.columns[3].as<float>(), ElementsAre(40, 30));
  EXPECT_THAT(batch.columns[4].as<std::int32_t>(), ElementsAre(2, 1));
}

TEST_P(Bind, ArraysAreBoundByTheirNamesToo) {
  const std::vector<ColumnSpec> columns = {wants("labels", DType::kInt64), wants("categories", DType::kInt32, {2}),
                                           wants("age", DType::kFloat32), wants("inputs", DType::kFloat32, {3})};
  const Status status = fit(columns);
  ASSERT_TRUE(status) << status.error().message;
  BatchBuffer buffer(*dataset_, 2, columns);
  ASSERT_TRUE(buffer.fill(std::vector<std::uint64_t>{0, 1}));
  EXPECT_THAT(buffer.batch().columns[1].as<std::int32_t>(), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(buffer.batch().columns[2].as<float>(), ElementsAre(30, 40));
  EXPECT_THAT(buffer.batch().columns[3].as<float>(), ElementsAre(30, 1, 2, 40, 3, 4));
}

TEST_P(Bind, OtherNamesAreBoundByTheirPlaces) {
  const std::vector<ColumnSpec> columns = {wants("x", DType::kFloat32, {3}), wants("c", DType::kInt32, {2}),
                                           wants("y", DType::kInt64)};
  ASSERT_TRUE(fit(columns));
  BatchBuffer buffer(*dataset_, 2, columns);
  ASSERT_TRUE(buffer.fill(std::vector<std::uint64_t>{0}));
  EXPECT_THAT(buffer.batch().columns[0].as<float>(), ElementsAre(30, 1, 2));
  EXPECT_THAT(buffer.batch().columns[2].as<std::int64_t>(), ElementsAre(0));
}

TEST_P(Bind, ErrorsNameBothSides) {
  expect_unfit({wants("age", DType::kFloat32), wants("town", DType::kInt32)},
               AllOf(HasSubstr("takes a column \"town\", but data.columns has the columns \"age\", \"place\","),
                     HasSubstr("\"clicked\" and the arrays \"inputs\", \"categories\", \"labels\"")));
  expect_unfit({wants("age", DType::kInt64)},
               HasSubstr("the column \"age\" of data.columns has values of type float32, but the model's column "
                         "\"age\" takes int64: change the model or data.columns.age"));
  expect_unfit({wants("place", DType::kFloat32, {3})},
               HasSubstr("the column \"place\" of data.columns has values of the shape [2], but the model's column "
                         "\"place\" takes values of the shape [3]"));
  expect_unfit({wants("age", DType::kFloat32, {2})},
               HasSubstr("\"age\" of data.columns has one value for each record, but the model's column \"age\" takes "
                         "values of the shape [2]"));
  expect_unfit({wants("country", DType::kInt32, {}, 2)},
               HasSubstr("\"country\" of data.columns has numbers from 0 to 2, but the model's column \"country\" "
                         "takes numbers from 0 to 1"));
  EXPECT_TRUE(fit({wants("place", DType::kFloat32, {2, 1})}));
}

TEST_P(Bind, NumbersOfACategoryFitIntoTheTypeOfItsColumn) {
  for (const std::uint32_t categories : {256u, 257u}) {
    source_.columns[1].hash = categories;
    Result<std::unique_ptr<Dataset>> dataset = load_dataset(source_);
    ASSERT_TRUE(dataset) << dataset.error().message;
    dataset_ = std::move(*dataset);
    EXPECT_TRUE(fit({wants("country", DType::kInt32)}));
    if (categories == 256) {
      EXPECT_TRUE(fit({wants("country", DType::kUint8)}));
    }
  }
  for (const std::uint64_t limit : {0, 300})
    expect_unfit({wants("country", DType::kUint8, {}, limit)},
                 HasSubstr("the column \"country\" of data.columns has numbers from 0 to 256, but the model's column "
                           "\"country\" takes numbers from 0 to 255: change the model or data.columns.country"));
}

TEST_P(Bind, BuiltinModelThatLeavesCategoriesUnusedIsRefused) {
  ModelSection model;
  model.builtin = "mlp";
  const Status status = fit({wants("inputs", DType::kFloat32, {3}), wants("labels", DType::kInt64, {}, 2)}, model);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("data.columns.country gives \"categories\", which model.builtin = "
                                                "\"mlp\" doesn't take"));
}

TEST_P(Bind, TrainersGetThePlacesOfTheColumns) {
  const std::vector<ColumnSpec> columns = columns_of(*dataset_, 1.0);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_THAT(columns[0].parts, ElementsAre(ColumnPart{"age", 0, {}, 0}, ColumnPart{"place", 1, {2}, 0}));
  EXPECT_THAT(columns[1].parts, ElementsAre(ColumnPart{"country", 0, {}, 3}, ColumnPart{"site", 1, {}, 3}));
  EXPECT_THAT(columns[2].parts, ElementsAre(ColumnPart{"clicked", 0, {}, 0}));
}

INSTANTIATE_TEST_SUITE_P(InMemoryAndStreamed, Bind, testing::Values(0, 1));

}  // namespace
}  // namespace disttrain::input
