// The section [model]: each builtin model has keys of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/builtin/builtin.h"
#include "common/config/reader/reader.h"

namespace disttrain::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::string job_of_model(const std::string& model) {
  return "[job]\nname = \"test\"\n[data]\npath = \"/data\"\nfiles = \"x*\"\n[train]\nbatch_size = 10\nsteps = 1\n" +
         ("[model]\n" + model);
}

ModelSection model_of(const std::string& text) {
  const Result<JobConfig> job = read_job(job_of_model(text));
  EXPECT_TRUE(job) << job.error().message;
  return job.value_or(JobConfig()).model;
}

TEST(ModelKeys, OfAResnetAreRead) {
  const ModelSection model = model_of(
      "builtin = \"resnet\"\nlabel_smoothing = 0.1\n[model.resnet]\ndepth = 50\nstem = \"imagenet\"\n"
      "image = [3, 224, 160]\noutputs = 1000\n");
  EXPECT_EQ(model.resnet.depth, 50U);
  EXPECT_EQ(model.resnet.stem, Stem::kImagenet);
  EXPECT_THAT(model.resnet.image, ElementsAre(3, 224, 160));
  EXPECT_EQ(model.resnet.outputs, 1000U);
  EXPECT_DOUBLE_EQ(model.label_smoothing, 0.1);
}

TEST(ModelKeys, OfATransformerAreRead) {
  const ModelSection model = model_of(
      "builtin = \"transformer\"\ndropout = 0.2\n[model.transformer]\nblocks = 6\nheads = 3\nwidth = 96\n"
      "context = 32\nvocabulary = 5000\ntied_embeddings = false\n");
  EXPECT_EQ(model.transformer.blocks, 6U);
  EXPECT_EQ(model.transformer.heads, 3U);
  EXPECT_EQ(model.transformer.width, 96U);
  EXPECT_EQ(model.transformer.context, 32U);
  EXPECT_EQ(model.transformer.vocabulary, 5000U);
  EXPECT_FALSE(model.transformer.tied_embeddings);
  EXPECT_DOUBLE_EQ(model.dropout, 0.2);
}

TEST(ModelKeys, OfAMatrixFactorizationAreRead) {
  const ModelSection model =
      model_of("builtin = \"matrix_factorization\"\nmatrix_factorization = { users = 7, items = 9, factors = 2 }\n");
  EXPECT_EQ(model.matrix_factorization.users, 7U);
  EXPECT_EQ(model.matrix_factorization.items, 9U);
  EXPECT_EQ(model.matrix_factorization.factors, 2U);
  EXPECT_EQ(model.loss, Loss::kMse) << "its default differs from that of the other models";
}

TEST(ModelKeys, OfAWideDeepAreRead) {
  const ModelSection model = model_of(
      "builtin = \"wide_deep\"\nloss = \"sigmoid_cross_entropy\"\n[model.wide_deep]\nnumeric = 5\n"
      "categories = [10, 20]\nembedding = 8\nhidden = [32]\noutputs = 3\n");
  EXPECT_EQ(model.wide_deep.numeric, 5U);
  EXPECT_THAT(model.wide_deep.categories, ElementsAre(10, 20));
  EXPECT_EQ(model.wide_deep.embedding, 8U);
  EXPECT_THAT(model.wide_deep.hidden, ElementsAre(32));
  EXPECT_EQ(model.wide_deep.outputs, 3U);
}

TEST(ModelKeys, OfTextsMustFitTheFormat) {
  const std::string least =
      "[job]\nname = \"a\"\n[model]\nbuiltin = \"transformer\"\n[train]\nbatch_size = 1\nsteps = 1\n"
      "[data]\npath = \"/d\"\nfiles = \"x\"\n";
  const Result<JobConfig> job = read_job(least + "format = \"text\"\nwindow = 33\nstride = 1\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->data.format, DataFormat::kText);
  EXPECT_EQ(job->data.window, 33U);
  EXPECT_EQ(job->data.stride, 1U);
  EXPECT_EQ(read_job(least + "format = \"text\"\nstride = \"auto\"\n")->data.stride, 0U);

  const Result<JobConfig> tokens = read_job(least + "format = \"text\"\ntokenizer = \"/t.model\"\nmemory = \"1GiB\"\n");
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->data.tokenizer, "/t.model");

  for (const char* lines : {"format = \"csv\"\ntokenizer = \"/t.json\"\n", "format = \"text\"\nmemory = \"1GiB\"\n",
                            "format = \"csv\"\nwindow = 33\n", "stride = 1\n", "format = \"text\"\nlabels = \"x\"\n",
                            "format = \"text\"\nscale = 0.5\n"}) {
    const Result<JobConfig> wrong = read_job(least + lines);
    ASSERT_FALSE(wrong) << lines;
    EXPECT_THAT(wrong.error().message, HasSubstr("has a meaning only with")) << lines;
  }
}

TEST(ModelKeys, DropoutIsOffExceptInACnn) {
  EXPECT_DOUBLE_EQ(model_of("builtin = \"cnn\"\n").dropout, 0.5);
  EXPECT_DOUBLE_EQ(model_of("builtin = \"cnn\"\ndropout = 0.25\n").dropout, 0.25);
  EXPECT_DOUBLE_EQ(model_of("builtin = \"mlp\"\nlayers = [2, 2]\n").dropout, 0.0);
}

TEST(ModelKeys, MetricsAndClassWeightsAreRead) {
  const ModelSection model = model_of(
      "builtin = \"linear\"\nlayers = [4, 3]\nclass_weights = [1, 0.5, 2]\n"
      "[model.metrics]\nbest = \"top_2\"\naccuracy = \"accuracy\"\n");
  EXPECT_THAT(model.class_weights, ElementsAre(1.0, 0.5, 2.0));
  EXPECT_THAT(model.metrics, ElementsAre(Pair("accuracy", "accuracy"), Pair("best", "top_2")));
  const ModelSpec spec = builtin_model(model).value();
  EXPECT_THAT(spec.metrics,
              ElementsAre(MetricSpec{"accuracy", MetricKind::kAccuracy, 1}, MetricSpec{"best", MetricKind::kTopK, 2}));
}

struct WrongModel {
  const char* name;
  const char* model;
  const char* message;
};

class ModelMistake : public testing::TestWithParam<WrongModel> {};

TEST_P(ModelMistake, IsNamedOnce) {
  const Result<JobConfig> job = read_job(job_of_model(GetParam().model));
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kConfig);
  EXPECT_THAT(job.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(job.error().message, Not(HasSubstr("2 problems")));
}

INSTANTIATE_TEST_SUITE_P(
    Each, ModelMistake,
    testing::Values(
        WrongModel{"SectionOfAnotherModel", "builtin = \"cnn\"\n[model.resnet]\ndepth = 18\n",
                   "job.toml:12:9: model.resnet.depth has a meaning only with builtin = \"resnet\""},
        WrongModel{"Depth", "builtin = \"resnet\"\nresnet = { depth = 20 }\n",
                   "model.resnet.depth is 20; expected 18, 34 or 50"},
        WrongModel{
            "SmallImage", "builtin = \"resnet\"\nresnet = { image = [3, 32, 8] }\n",
            "model.resnet.image is [3, 32, 8]; expected [channels, height, width] with a height and a width of at "
            "least 16"},
        WrongModel{"ImageWithoutChannels", "builtin = \"resnet\"\nresnet = { image = [32, 32] }\n",
                   "model.resnet.image is [32, 32]; expected [channels"},
        WrongModel{"ImmenseImage", "builtin = \"resnet\"\nresnet = { image = [3, 65536, 65536] }\n",
                   "and at most 268435456 values"},
        WrongModel{"Heads", "builtin = \"transformer\"\ntransformer = { heads = 3 }\n",
                   "model.transformer.heads is 3; expected a divisor of model.transformer.width, which is 128"},
        WrongModel{"NoBlocks", "builtin = \"transformer\"\ntransformer = { blocks = 0 }\n",
                   "model.transformer.blocks is 0; expected an integer from 1 to 1000"},
        WrongModel{"LossOfATransformer", "builtin = \"transformer\"\nloss = \"mse\"\n", "model.loss is"},
        WrongModel{"ImmenseTransformer",
                   "builtin = \"transformer\"\ntransformer = { blocks = 1000, width = 65536, heads = 1 }\n",
                   "model.transformer makes more than 68719476736 parameters"},
        WrongModel{"NoUsers", "builtin = \"matrix_factorization\"\nmatrix_factorization = { items = 3 }\n",
                   "model.matrix_factorization.users is 0; expected the number of users"},
        WrongModel{
            "NoColumns", "builtin = \"wide_deep\"\nwide_deep = { outputs = 2 }\n",
            "model.wide_deep.numeric is 0 and model.wide_deep.categories is []; expected at least one column: set "
            "them, or describe the columns of csv files in [data.columns]"},
        WrongModel{"LayersOfALinear", "builtin = \"linear\"\nlayers = [4, 3, 2]\n",
                   "model.layers has 3 sizes; expected 2 with builtin = \"linear\""},
        WrongModel{"DropoutOfALinear", "builtin = \"linear\"\nlayers = [4, 3]\ndropout = 0.5\n",
                   "model.dropout has a meaning only with builtin = \"mlp\", \"cnn\""},
        WrongModel{"OneClass", "builtin = \"mlp\"\nlayers = [4, 1]\n",
                   "model.loss is \"softmax_cross_entropy\", which needs at least 2 outputs"},
        WrongModel{"SmoothingWithoutClasses",
                   "builtin = \"linear\"\nlayers = [4, 3]\nloss = \"mse\"\nlabel_smoothing = 0.1\n",
                   "model.label_smoothing has a meaning only with loss = \"softmax_cross_entropy\""},
        WrongModel{"ThreeWeightsForTwoClasses", "builtin = \"linear\"\nlayers = [4, 2]\nclass_weights = [1, 2, 3]\n",
                   "model.class_weights has 3 weights; expected 2, one for each output"},
        WrongModel{"NegativeWeight", "builtin = \"linear\"\nlayers = [4, 2]\nclass_weights = [1, -2]\n",
                   "model.class_weights[1] is -2; expected a number of at least 0"},
        WrongModel{"AllWeightsZero", "builtin = \"linear\"\nlayers = [4, 2]\nclass_weights = [0, 0]\n",
                   "model.class_weights are all 0"},
        WrongModel{
            "KindOfMetric", "builtin = \"linear\"\nlayers = [4, 2]\nmetrics = { best = \"beauty\" }\n",
            "model.metrics.best is \"beauty\"; a builtin model computes accuracy, top_5 (or another number), auc, "
            "precision, recall, perplexity, mse and mae"},
        WrongModel{"NameOfMetric", "builtin = \"linear\"\nlayers = [4, 2]\nmetrics = { \"a b\" = \"accuracy\" }\n",
                   "model.metrics.a b: a metric can't be named \"a b\"; expected 1 to 100 of the characters"},
        WrongModel{"NameOfAFigure", "builtin = \"linear\"\nlayers = [4, 2]\nmetrics = { loss = \"accuracy\" }\n",
                   "model.metrics.loss: a metric can't be named \"loss\", because the status shows a figure of the job "
                   "under this name; choose another name"},
        WrongModel{"MetricOfPrograms", "builtin = \"linear\"\nlayers = [4, 2]\nmetrics = { m = \"mean\" }\n",
                   "model.metrics.m is \"mean\"; a builtin model computes accuracy, top_5"},
        WrongModel{"TooManyOfTheBest", "builtin = \"linear\"\nlayers = [4, 2]\nmetrics = { best = \"top_3\" }\n",
                   "model.metrics.best is \"top_3\", but the model has 2 outputs"},
        WrongModel{"PerplexityWithoutClasses",
                   "builtin = \"linear\"\nlayers = [4, 2]\nloss = \"mse\"\nmetrics = { p = \"perplexity\" }\n",
                   "model.metrics.p is \"perplexity\", which needs loss = \"softmax_cross_entropy\""}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace disttrain::config
