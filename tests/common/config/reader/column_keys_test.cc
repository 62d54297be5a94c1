// The table [data.columns].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/columns.h"
#include "common/config/reader/reader.h"

namespace disttrain::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string job_of_columns(const std::string& columns, const std::string& data = "") {
  return "[job]\nname = \"test\"\n[train]\nbatch_size = 10\nsteps = 1\n[model]\nbuiltin = \"wide_deep\"\n"
         "loss = \"sigmoid_cross_entropy\"\n[data]\nformat = \"csv\"\npath = \"/data\"\nfiles = \"x*\"\n" +
         data + "[data.columns]\n" + columns;
}

std::string error_of(const std::string& columns, const std::string& data = "") {
  const Result<JobConfig> job = read_job(job_of_columns(columns, data));
  return job ? "" : job.error().message;
}

// Of a program, which takes any columns.
std::string job_of_files(const std::string& format, const std::string& columns) {
  return "[job]\nname = \"test\"\n[train]\nbatch_size = 10\nsteps = 1\n[model]\nprogram = \"/step.pt2\"\n[data]\n"
         "format = \"" +
         format + "\"\npath = \"/data\"\nfiles = \"x*\"\n[data.columns]\n" + columns;
}

constexpr const char* kAll =
    "age = { kind = \"numeric\", missing = -1, normalise = \"standard\", mean = 38.5, deviation = 13 }\n"
    "group = { kind = \"numeric\", from = \"age\", boundaries = [20, 30.5] }\n"
    "job = { kind = \"category\", vocabulary = [\"a\", \"b\"] }\n"
    "town = { kind = \"category\", hash = 50 }\n"
    "both = { kind = \"category\", cross = [\"group\", \"job\"], hash = 9 }\n"
    "income = { kind = \"label\", strip = \".\" }\n"
    "id = { kind = \"ignore\" }\n";

TEST(ColumnKeys, AreReadInTheOrderOfTheFile) {
  const Result<JobConfig> job = read_job(job_of_columns(kAll, "missing = [\"?\"]\n"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_THAT(job->data.missing, ElementsAre("?"));
  const std::vector<ColumnSection>& columns = job->data.columns;
  ASSERT_EQ(columns.size(), 7U);
  EXPECT_EQ(columns[0].name, "age");
  EXPECT_EQ(columns[0].missing, -1.0);
  EXPECT_EQ(columns[0].mean, 38.5);
  EXPECT_EQ(columns[0].deviation, 13.0);
  EXPECT_EQ(columns[1].from, "age");
  EXPECT_THAT(columns[1].boundaries, ElementsAre(20.0, 30.5));
  EXPECT_THAT(columns[2].vocabulary, ElementsAre("a", "b"));
  EXPECT_EQ(columns[3].hash, 50U);
  EXPECT_THAT(columns[4].cross, ElementsAre("group", "job"));
  EXPECT_EQ(columns[5].kind, ColumnKind::kLabel);
  EXPECT_EQ(columns[5].strip, ".");
  EXPECT_EQ(columns[6].kind, ColumnKind::kIgnore);
}

TEST(ColumnKeys, EmptyListsAreTheDefaults) {
  const std::string columns =
      "x = { kind = \"numeric\", shape = [], boundaries = [] }\n"
      "job = { kind = \"category\", vocabulary = [], cross = [] }\n"
      "y = { kind = \"label\", vocabulary = [] }\n";
  EXPECT_EQ(error_of(columns, "missing = []\n"), "");
  std::string jsonl = job_of_columns(columns, "missing = []\n");
  jsonl.replace(jsonl.find("\"csv\""), 5, "\"jsonl\"");
  EXPECT_TRUE(read_job(jsonl)) << read_job(jsonl).error().message;
}

TEST(ColumnKeys, AreWrittenAsTheyWereRead) {
  const JobConfig job = read_job(job_of_columns(kAll)).value();
  EXPECT_THAT(
      job_toml(job),
      HasSubstr("columns = { age = { kind = \"numeric\", missing = -1.0, normalise = \"standard\", mean = 38.5, "
                "deviation = 13.0 }, group = { kind = \"numeric\", from = \"age\", boundaries = [20.0, 30.5] }, "
                "job = { kind = \"category\", vocabulary = [\"a\", \"b\"] }, town = { kind = \"category\", "
                "hash = 50 }, both = { kind = \"category\", hash = 9, cross = [\"group\", \"job\"] }, income = { "
                "kind = \"label\", strip = \".\" }, id = { kind = \"ignore\" } }"));
  EXPECT_TRUE(check_ranges(job));
}

TEST(ColumnKeys, MistakesAreRefusedWithTheirPlace) {
  const std::string x = "x = { kind = \"numeric\" }\n";
  const std::string y = "y = { kind = \"label\" }\n";
  EXPECT_EQ(error_of(x + y), "");
  EXPECT_THAT(error_of(x), HasSubstr("data.columns has no label"));
  EXPECT_THAT(error_of(y), HasSubstr("data.columns has no column of the kind"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"label\" }\n"),
              testing::AllOf(HasSubstr("job.toml:16:14:"), HasSubstr("data.columns.y is the label already")));
  EXPECT_THAT(error_of(x + y + "z = { hash = 3 }\n"), HasSubstr("data.columns.z.kind"));
  const std::string w = "w = { kind = \"weight\" }\n";
  EXPECT_EQ(error_of(x + y + w), "");
  EXPECT_THAT(error_of(x + y + w + "z = { kind = \"weight\" }\n"), HasSubstr("data.columns.w is the weight already"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"weight\", missing = -1 }\n"), HasSubstr("a weight is at least 0"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"numeric\", one_hot = true }\n"), HasSubstr("or boundaries"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"category\", hash = 100000, one_hot = true }\n"),
              HasSubstr("makes 100000 numbers of each record"));
  EXPECT_THAT(error_of(x + y + "a = { kind = \"category\", one_hot = true }\nb = { kind = \"category\" }\n" +
                       "z = { kind = \"category\", cross = [\"a\", \"b\"], hash = 2 }\n"),
              HasSubstr("names \"a\", expected columns of the kind \"category\""));
  EXPECT_THAT(
      error_of(x + y + "\"\" = { kind = \"ignore\" }\n"),
      HasSubstr("data.columns has a column with the empty name \"\"; give it a name, or leave it out if the model "
                "doesn't take it"));
  EXPECT_THAT(error_of(x + y + "z = 3\n"), HasSubstr("a table such as { kind = \"numeric\" }"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"numeric\", hash = 3 }\n"), HasSubstr("kind = \"category\""));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"category\", missing = 3 }\n"), HasSubstr("kind = \"numeric\""));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"numeric\", mean = 3 }\n"), HasSubstr("normalise = \"standard\""));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"numeric\", normalise = \"standard\", mean = 3 }\n"),
              HasSubstr("is given without deviation"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"numeric\", boundaries = [2, 1] }\n"), HasSubstr("aren't ascending"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"category\", vocabulary = [\"a\", \"a\"] }\n"), HasSubstr("\"a\" twice"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"category\", vocabulary = [\"a\"], hash = 2 }\n"),
              HasSubstr("two ways to number"));
  EXPECT_THAT(error_of(x + y + "z = { kind = \"category\", cross = [\"x\", \"y\"], hash = 2 }\n"),
              HasSubstr("names \"x\", expected columns of the kind \"category\""));
  EXPECT_THAT(error_of(x + y, "labels = \"l*\"\n"), HasSubstr("data.columns names the label"));
  EXPECT_THAT(error_of(x + y, "scale = 2\n"), HasSubstr("normalise the columns"));
}

TEST(ColumnKeys, RareWordsNeedTheWordsOfTheTrainingSet) {
  const std::string y = "y = { kind = \"label\" }\n";
  const Result<JobConfig> job = read_job(job_of_columns("x = { kind = \"category\", min_count = 5 }\n" + y));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->data.columns[0].min_count, 5U);
  EXPECT_THAT(job_toml(*job), HasSubstr("x = { kind = \"category\", min_count = 5 }"));
  for (const char* keys : {"\"category\", vocabulary = [\"a\"]", "\"category\", hash = 5", "\"numeric\""})
    EXPECT_THAT(error_of(std::string("x = { min_count = 5, kind = ") + keys + " }\n" + y),
                HasSubstr("words of the training set"));
}

TEST(ColumnKeys, OnlyRegressionsTakeANormalisedLabel) {
  const std::string columns = "x = { kind = \"numeric\" }\ny = { kind = \"label\", normalise = \"standard\" }\n";
  const auto error_with = [&](const std::string& model) {
    std::string job = job_of_columns(columns);
    const std::string usual = "builtin = \"wide_deep\"\nloss = \"sigmoid_cross_entropy\"";
    job.replace(job.find(usual), usual.size(), model);
    const Result<JobConfig> read = read_job(job);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error_with("builtin = \"wide_deep\"\nloss = \"mse\""), "");
  EXPECT_EQ(error_with("builtin = \"mlp\"\nlayers = [1, 4, 1]\nloss = \"mse\""), "");
  for (const char* model : {"builtin = \"wide_deep\"\nloss = \"sigmoid_cross_entropy\"",
                            "builtin = \"mlp\"\nlayers = [1, 4, 2]\nloss = \"mse\"", "program = \"/step.pt2\"",
                            "trainer = [\"python3\", \"train.py\"]"})
    EXPECT_THAT(error_with(model), HasSubstr("data.columns.y.normalise is \"standard\", but only builtin models"))
        << model;
}

TEST(ColumnKeys, RegressionsTakeNoClasses) {
  std::string job =
      job_of_columns("x = { kind = \"numeric\" }\ny = { kind = \"label\", vocabulary = [\"a\", \"b\"] }\n");
  EXPECT_TRUE(read_job(job));
  job.replace(job.find("sigmoid_cross_entropy"), 21, "mse");
  EXPECT_THAT(read_job(job).error().message, HasSubstr("data.columns.y.vocabulary makes classes of the label"));
}

TEST(ColumnKeys, ModelsWithoutCategoriesRefuseThem) {
  std::string job = job_of_columns("x = { kind = \"category\" }\ny = { kind = \"label\" }\n");
  job.replace(job.find("\"wide_deep\""), 11, "\"mlp\"\nlayers = [1, 2]");
  const Result<JobConfig> read = read_job(job);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message,
              HasSubstr("data.columns.x is a category, which model.builtin = \"mlp\" doesn't take; "
                        "set its one_hot, use \"wide_deep\", or leave the column out"));
}

// Its inputs are two numbers of each record, so more of them for each category don't fit.
TEST(ColumnKeys, OfMatrixFactorizationAreNumbers) {
  const auto error_of_user = [](const std::string& keys) {
    std::string job =
        job_of_columns("user = { kind = " + keys + " }\nitem = { kind = \"numeric\" }\nstars = { kind = \"label\" }\n");
    job.replace(job.find("\"wide_deep\"\nloss = \"sigmoid_cross_entropy\""), 42,
                "\"matrix_factorization\"\nmatrix_factorization = { users = 7, items = 9 }");
    const Result<JobConfig> read = read_job(job);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error_of_user("\"numeric\""), "");
  for (const char* keys : {"\"category\"", "\"category\", one_hot = true"})
    EXPECT_THAT(
        error_of_user(keys),
        HasSubstr("data.columns.user is a category, which model.builtin = \"matrix_factorization\" doesn't take; "
                  "set its kind to \"numeric\" if it has the numbers of users or items, or leave the column "
                  "out"));
}

TEST(ColumnKeys, ModelsWithoutCategoriesTakeOneHotColumns) {
  std::string job = job_of_columns(
      "x = { kind = \"category\", one_hot = true }\ny = { kind = \"label\" }\nw = { kind = \"weight\" }\n");
  job.replace(job.find("\"wide_deep\""), 11, "\"mlp\"\nlayers = [4, 2]");
  const Result<JobConfig> read = read_job(job);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->data.columns[0].one_hot);
  EXPECT_TRUE(read->model.has_weights);
  EXPECT_THAT(job_toml(*read), HasSubstr("x = { kind = \"category\", one_hot = true }"));
}

TEST(ColumnKeys, OnlyNumbersImagesAndLabelsCanBeMixed) {
  const std::string mix = "mix = 0.2\n";
  const std::string x = "x = { kind = \"numeric\" }\ny = { kind = \"label\" }\n";
  EXPECT_EQ(error_of(x, mix), "");
  EXPECT_EQ(error_of(x + "z = { kind = \"category\", one_hot = true }\n", mix), "");
  EXPECT_THAT(error_of(x + "z = { kind = \"category\" }\n", mix),
              HasSubstr("data.mix can't mix data.columns.z, only numbers, images and labels; set data.mix to 0, or "
                        "data.columns.z.one_hot to true"));
  EXPECT_THAT(error_of(x + "z = { kind = \"weight\" }\n", mix),
              HasSubstr("data.mix can't mix data.columns.z, only numbers, images and labels; set data.mix to 0, or "
                        "leave the column out"));
  EXPECT_THAT(error_of(x + "a = { kind = \"category\", hash = 9, one_hot = true }\n"
                           "z = { kind = \"category\", cross = [\"a\", \"a\"], hash = 9 }\n",
                       mix),
              HasSubstr("data.mix can't mix data.columns.z, only numbers, images and labels; set data.mix to 0, or "
                        "leave the column out"));
}

TEST(ColumnKeys, OfImageFilesAreNoNumbers) {
  const auto error_of_images = [](const std::string& column) {
    std::string text = job_of_columns("photo = { kind = \"image\", from = \"image\", shape = [3, 8, 8] }\n" + column +
                                      "label = { kind = \"label\", from = \"class\" }\n");
    text.replace(text.find("\"csv\""), 5, "\"images\"");
    text.replace(text.find("builtin = \"wide_deep\""), 21, "program = \"/step.pt2\"");
    text.replace(text.find("loss = \"sigmoid_cross_entropy\"\n"), 31, "");
    const Result<JobConfig> job = read_job(text);
    return job ? "" : job.error().message;
  };
  EXPECT_EQ(error_of_images(""), "");
  EXPECT_THAT(error_of_images("w = { kind = \"weight\", from = \"class\" }\n"),
              HasSubstr("data.columns.w.kind is \"weight\", but image files have no numbers; expected \"image\" for "
                        "\"image\", and \"label\" or \"category\" for \"class\""));
  EXPECT_THAT(error_of_images("x = { kind = \"numeric\", from = \"image\" }\n"),
              HasSubstr("data.columns.x.kind is \"numeric\", but image files have no numbers"));
}

TEST(ColumnKeys, OfImageFilesAreImagesAndTheNamesOfFolders) {
  const auto error_of_images = [](const std::string& columns) {
    const Result<JobConfig> job =
        read_job(job_of_files("images", columns + "label = { kind = \"label\", from = \"class\" }\n"));
    return job ? "" : job.error().message;
  };
  EXPECT_EQ(error_of_images("word = { kind = \"category\", from = \"class\" }\n"), "");
  EXPECT_THAT(
      error_of_images("word = { kind = \"category\", from = \"image\" }\n"),
      HasSubstr("data.columns.word takes \"image\" of the files, which is a whole image file, as words; set its "
                "from to \"class\", or its kind to \"image\""));
  EXPECT_THAT(error_of_images("image = { kind = \"image\", from = \"class\", shape = [3, 8, 8] }\n"),
              HasSubstr("data.columns.image takes \"class\" of the files, which is the name of a folder, as an image; "
                        "set its from to \"image\""));
}

TEST(ColumnKeys, OfLibsvmFilesAreNumbersAndALabel) {
  const auto error_of_libsvm = [](const std::string& columns) {
    const Result<JobConfig> job = read_job(job_of_files("libsvm", columns));
    return job ? "" : job.error().message;
  };
  const std::string features = "features = { kind = \"numeric\", shape = [3] }\n";
  const std::string label = "label = { kind = \"label\" }\n";
  EXPECT_EQ(error_of_libsvm(features + label), "");
  EXPECT_EQ(error_of_libsvm(features + label + "word = { kind = \"category\", from = \"label\" }\n"), "");
  EXPECT_EQ(error_of_libsvm(features + label + "weight = { kind = \"weight\" }\n"), "");
  EXPECT_THAT(error_of_libsvm(features + label + "weight = { kind = \"numeric\" }\n"),
              HasSubstr("data.columns.weight.kind must be \"weight\""));
  for (const char* kind : {"category", "label"})
    EXPECT_THAT(
        error_of_libsvm(features + "word = { kind = \"" + std::string(kind) + "\", from = \"features\" }\n"),
        HasSubstr("data.columns.word takes \"features\" of the files, which are numbers, as words; set its kind "
                  "to \"numeric\", or its from to \"label\""));
  EXPECT_THAT(error_of_libsvm("photo = { kind = \"image\", from = \"label\", shape = [3, 8, 8] }\n" + label),
              HasSubstr("data.columns.photo.kind is \"image\", but images aren't read from files of this data.format; "
                        "use \"images\", \"webdataset\" or \"tfrecord\""));
  EXPECT_THAT(error_of_libsvm(features + label + "more = { kind = \"numeric\", from = \"features\", shape = [4] }\n"),
              HasSubstr("data.columns.more.shape has the size 4, but data.columns.features takes \"features\" with the "
                        "size 3; set both to the largest index of the files"));
  EXPECT_EQ(error_of_libsvm("features = { kind = \"numeric\", shape = [2, 8388608] }\n" + label), "");
  EXPECT_THAT(error_of_libsvm("features = { kind = \"numeric\", shape = [2, 14945048] }\n" + label),
              HasSubstr("data.columns.features.shape has more than 16777216 values; expected at most that"));
}

TEST(ColumnKeys, MissingWordsNeedColumns) {
  std::string job = job_of_columns("", "missing = [\"?\"]\n");
  job.replace(job.find("[data.columns]"), 14, "");
  job.replace(job.find("\"wide_deep\"\nloss"), 16, "\"mlp\"\nlayers = [1, 1]\nloss");
  const Result<JobConfig> read = read_job(job);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("data.missing has a meaning only with data.columns"));
}

std::string job_of_sequences(const std::string& kind, const std::string& column, const std::string& format,
                             const std::string& data = "", const std::string& model = "builtin = \"transformer\"") {
  return "[job]\nname = \"test\"\n[train]\nbatch_size = 10\nsteps = 1\n[model]\n" + model + "\n[data]\nformat = \"" +
         format + "\"\npath = \"/data\"\nfiles = \"x*\"\n" + data + "[data.columns]\ntext = { kind = \"" + kind + "\"" +
         (column.empty() ? "" : ", ") + column + " }\n";
}

std::string job_of_tokens(const std::string& column, const std::string& format = "jsonl",
                          const std::string& data = "") {
  return job_of_sequences("tokens", column, format, data);
}

std::string error_of_tokens(const std::string& column, const std::string& format = "jsonl") {
  const Result<JobConfig> job = read_job(job_of_tokens(column, format));
  return job ? "" : job.error().message;
}

TEST(ColumnKeys, OfTokensAreRead) {
  const Result<JobConfig> job = read_job(job_of_tokens(
      "tokenizer = \"/t/tokenizer.json\", length = 65, pad = 1, truncate = \"left\", special_tokens = false, "
      "with_length = true, pad_to = \"longest\""));
  ASSERT_TRUE(job) << job.error().message;
  const ColumnSection& column = job->data.columns.at(0);
  EXPECT_EQ(column.kind, ColumnKind::kTokens);
  EXPECT_EQ(column.tokenizer, "/t/tokenizer.json");
  EXPECT_EQ(column.length, 65U);
  EXPECT_EQ(column.pad, 1U);
  EXPECT_EQ(column.truncate, Truncate::kLeft);
  EXPECT_FALSE(column.special_tokens);
  EXPECT_TRUE(column.with_length);
  EXPECT_EQ(column.pad_to, PadTo::kLongest);
  EXPECT_EQ(job->model.transformer.vocabulary, 0U) << "that of the tokenizer";
  EXPECT_THAT(job_toml(*job), HasSubstr("length = 65, pad = 1, truncate = \"left\", special_tokens = false"));
  EXPECT_EQ(error_of_tokens("limit = 100, length = 65"), "");
}

TEST(ColumnKeys, OfBucketsNeedAColumnOfTokens) {
  const auto with = [](const std::string& data) {
    return read_job(job_of_tokens("limit = 9, length = 5", "jsonl", data));
  };
  const Result<JobConfig> job = with("bucket_by = \"text\"\nbucket_window = 8\nshuffle = \"blocks\"\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->data.bucket_by, "text");
  EXPECT_EQ(job->data.bucket_window, 8U);
  EXPECT_EQ(with("")->data.bucket_window, 64U);
  EXPECT_THAT(job_toml(*job), HasSubstr("bucket_by = \"text\""));
  const auto error_with = [&with](const std::string& data) {
    const Result<JobConfig> wrong = with(data);
    return wrong ? "" : wrong.error().message;
  };
  EXPECT_THAT(error_with("bucket_by = \"words\"\n"),
              HasSubstr("data.bucket_by is \"words\", but data.columns has no column of the kind \"tokens\""));
  EXPECT_THAT(error_with("bucket_by = \"text\"\nshuffle = \"none\"\n"), HasSubstr("leave one of them out"));
  EXPECT_THAT(error_with("bucket_window = 8\n"), HasSubstr("data.bucket_window has a meaning only with bucket_by"));
}

TEST(ColumnKeys, OfLengthsNeedAFreeName) {
  const auto error_beside = [](const std::string& kind) {
    const Result<JobConfig> job = read_job(job_of_tokens("limit = 9, length = 5, with_length = true") +
                                           "text_length = { kind = \"" + kind + "\" }\n");
    return job ? "" : job.error().message;
  };
  EXPECT_EQ(error_beside("ignore"), "");
  EXPECT_THAT(error_beside("label"), HasSubstr("adds a column text_length, but data.columns.text_length has this name; "
                                               "rename the other column"));
}

TEST(ColumnKeys, OfTokensMustFitEachOther) {
  const std::string file = "tokenizer = \"/t.json\", ";
  EXPECT_THAT(error_of_tokens("tokenizer = \"/t.json\""), HasSubstr("text.length is missing"));
  EXPECT_THAT(error_of_tokens("length = 5"), HasSubstr("text.tokenizer is missing"));
  EXPECT_THAT(error_of_tokens(file + "length = 5, limit = 9"), HasSubstr("leave limit out"));
  EXPECT_THAT(error_of_tokens("length = 5, limit = 9, pad = 9"), HasSubstr("isn't below limit, which is 9"));
  EXPECT_THAT(error_of_tokens("length = 5, limit = 9, special_tokens = false"), HasSubstr("a tokenizer"));
  EXPECT_THAT(error_of_tokens("length = 5, limit = 9, hash = 3"), HasSubstr("kind = \"category\""));
  EXPECT_THAT(error_of_tokens("length = 5, limit = 9", "csv"), HasSubstr("have no lists of tokens"));
  EXPECT_THAT(error_of_tokens(file + "length = 5", "libsvm"), HasSubstr("use another data.format"));
  EXPECT_EQ(error_of_tokens(file + "length = 5", "csv"), "");
  EXPECT_THAT(error_of("a = { kind = \"numeric\", length = 3 }\nb = { kind = \"label\" }\n"),
              HasSubstr("data.columns.a.length has a meaning only with kind = \"tokens\""));
  EXPECT_THAT(error_of("a = { kind = \"numeric\", pad_to = \"longest\" }\nb = { kind = \"label\" }\n"),
              HasSubstr("data.columns.a.pad_to has a meaning only with kind = \"tokens\""));
  EXPECT_THAT(error_of_tokens("limit = 9, length = 5, pad_to = \"batch\""), HasSubstr("\"longest\""));
  for (const std::string array : {"inputs", "labels", "targets", "weights"})
    EXPECT_THAT(error_of(array + " = { kind = \"tokens\", limit = 9, length = 3 }\n"), HasSubstr("another array"));
}

const std::string kTrainer = "trainer = [\"python3\", \"/train.py\"]";

std::string error_of_bytes(const std::string& column, const std::string& format = "jsonl",
                           const std::string& model = kTrainer) {
  const Result<JobConfig> job = read_job(job_of_sequences("bytes", column, format, "", model));
  return job ? "" : job.error().message;
}

TEST(ColumnKeys, OfBytesAreRead) {
  const Result<JobConfig> job = read_job(
      job_of_sequences("bytes", "length = 65, pad = 255, truncate = \"none\", with_length = true, pad_to = \"longest\"",
                       "csv", "bucket_by = \"text\"\n"));
  ASSERT_TRUE(job) << job.error().message;
  const ColumnSection& column = job->data.columns.at(0);
  EXPECT_EQ(column.kind, ColumnKind::kBytes);
  EXPECT_EQ(column.length, 65U);
  EXPECT_EQ(column.pad, 255U);
  EXPECT_EQ(column.truncate, Truncate::kNone);
  EXPECT_TRUE(column.with_length);
  EXPECT_EQ(column.pad_to, PadTo::kLongest);
  EXPECT_THAT(job_toml(*job), HasSubstr("text = { kind = \"bytes\", length = 65, pad = 255"));
  for (const char* format : {"csv", "jsonl", "tfrecord", "parquet", "webdataset"})
    EXPECT_EQ(error_of_bytes("limit = 100", format), "") << format;
}

TEST(ColumnKeys, OfBytesMustFitEachOther) {
  EXPECT_THAT(error_of_bytes(""), HasSubstr("text.limit is missing; expected the most bytes of a value, or length"));
  EXPECT_THAT(error_of_bytes("limit = 9, length = 9"), HasSubstr("keep one of them"));
  EXPECT_THAT(error_of_bytes("limit = 16777217"), HasSubstr("16777216"));
  EXPECT_THAT(error_of_bytes("length = 9, pad = 256"), HasSubstr("text.pad is 256; expected a byte, 0 to 255"));
  for (const char* key : {"pad = 1", "truncate = \"left\"", "with_length = true", "pad_to = \"longest\""})
    EXPECT_THAT(error_of_bytes(std::string("limit = 9, ") + key), HasSubstr("has a meaning only with length")) << key;
  for (const char* key : {"tokenizer = \"/t.json\"", "special_tokens = false"})
    EXPECT_THAT(error_of_bytes(std::string("length = 9, ") + key), HasSubstr("only with kind = \"tokens\"")) << key;
  for (const char* format : {"libsvm", "images"})
    EXPECT_THAT(error_of_bytes("limit = 9", format),
                HasSubstr("text.kind is \"bytes\", but the files have no texts; use another data.format"))
        << format;
  EXPECT_THAT(error_of("labels = { kind = \"bytes\", limit = 9 }\n"), HasSubstr("another array"));
}

TEST(ColumnKeys, OfBytesMustFitTheModel) {
  const std::string transformer = "builtin = \"transformer\"\ntransformer = { context = 64 }";
  EXPECT_EQ(error_of_bytes("length = 65", "jsonl", transformer), "");
  EXPECT_THAT(
      error_of_bytes("limit = 65", "jsonl", transformer),
      HasSubstr("data.columns.text.limit keeps values as they are, which model.builtin = \"transformer\" doesn't "
                "take; set length to 65 instead"));
  EXPECT_THAT(error_of_bytes("length = 65", "jsonl", "builtin = \"mlp\"\nlayers = [65, 2]"),
              HasSubstr("data.columns.text has bytes, which model.builtin = \"mlp\" doesn't take"));
  const Result<JobConfig> mixed =
      read_job(job_of_sequences("bytes", "length = 9", "jsonl", "mix = 0.5\n", "program = \"/step.pt2\""));
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message, HasSubstr("can't mix data.columns.text"));
}

TEST(ColumnKeys, OfATransformerAreSequences) {
  const auto error_beside_text = [](const std::string& column) {
    const Result<JobConfig> job =
        read_job(job_of_sequences("bytes", "length = 65", "jsonl", "", "builtin = \"transformer\"") + column);
    return job ? "" : job.error().message;
  };
  EXPECT_EQ(error_beside_text(""), "");
  EXPECT_THAT(error_beside_text("x = { kind = \"numeric\" }\n"),
              HasSubstr("data.columns.x gives numbers, which model.builtin = \"transformer\" doesn't take; leave the "
                        "column out"));
  EXPECT_THAT(error_beside_text("x = { kind = \"category\", one_hot = true }\n"),
              HasSubstr("data.columns.x gives numbers, which"));
}

TEST(ColumnKeys, OfBytesNeedNoTokenizerForTheVocabulary) {
  const Result<JobConfig> job =
      read_job(job_of_sequences("bytes", "length = 65", "jsonl", "", "builtin = \"transformer\""));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_FALSE(takes_vocabulary(*job)) << "there are 256 bytes";
}

}  // namespace
}  // namespace disttrain::config
