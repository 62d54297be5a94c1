// The keys of job.toml's section [model], and the rules between them.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/builtin/builtin.h"
#include "common/config/columns.h"
#include "common/config/reader/keys.h"

namespace disttrain::config {

namespace {

constexpr std::int64_t kMostSize = 1 << 24;  // of a layer or a table
constexpr std::int64_t kMostWidth = 1 << 16;

// "normal(0.02)", "glorot", "he", "zeros".
Field initializer(Initializer& to) {
  const std::string expected = "\"normal(STANDARD DEVIATION)\", \"glorot\", \"he\" or \"zeros\"";
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* found = value.as<std::string>();
                 if (found == nullptr) return refuse_value(value, path, expected, reading);
                 if (*found == "glorot") return void(to = {InitializerKind::kGlorot, 0.0});
                 if (*found == "he") return void(to = {InitializerKind::kHe, 0.0});
                 if (*found == "zeros") return void(to = {InitializerKind::kZeros, 0.0});
                 const bool is_normal = found->rfind("normal(", 0) == 0 && found->back() == ')';
                 const auto number =
                     is_normal ? parse_number(found->substr(7, found->size() - 8)) : std::optional<double>();
                 if (!number || *number <= 0)
                   return refuse_value(value, path, expected + ", the deviation above 0", reading);
                 to = {InitializerKind::kNormal, *number};
               },
               [&to] {
                 switch (to.kind) {
                   case InitializerKind::kZeros:
                     return std::optional(toml(std::string("zeros")));
                   case InitializerKind::kNormal:
                     return std::optional(toml("normal(" + to_toml(to.scale) + ")"));
                   case InitializerKind::kHe:
                     return std::optional(toml(std::string("he")));
                   case InitializerKind::kOnes:  // no key can be set to this and the next one
                     return std::optional(toml(std::string("ones")));
                   case InitializerKind::kUniform:
                     return std::optional(toml("uniform(" + to_toml(to.scale) + ")"));
                   case InitializerKind::kGlorot:
                     break;
                 }
                 return std::optional(toml(std::string("glorot")));
               }};
}

// A job without a trainer has no such key.
Field start_timeout(ModelSection& model) {
  Field field = duration(model.start_timeout, std::chrono::seconds(1), std::chrono::hours(24));
  field.write = [write = std::move(field.write), &model]() -> std::optional<TomlValue> {
    return model.trainer.empty() ? std::nullopt : write();
  };
  return field;
}

Keys resnet_keys(ResnetSection& resnet) {
  return {
      {"depth", integer(resnet.depth, 1, 1000), "number of layers with weights: 18, 34 or 50"},
      {"stem", choice<Stem>(resnet.stem, {{"cifar", Stem::kCifar}, {"imagenet", Stem::kImagenet}}),
       "the first layers: cifar for small images; imagenet shrinks an image to a quarter of its height and width"},
      {"image", integers(resnet.image, 1, kMostSize), "channels, height and width of a record"},
      {"outputs", integer(resnet.outputs, 1, kMostSize), "number of outputs"},
  };
}

Keys transformer_keys(TransformerSection& transformer) {
  return {
      {"blocks", integer(transformer.blocks, 1, 1000), "number of blocks, each with attention and two dense layers"},
      {"heads", integer(transformer.heads, 1, kMostWidth), "attention heads of a block; divides width"},
      {"width", integer(transformer.width, 1, kMostWidth), "numbers per token"},
      {"context", integer(transformer.context, 1, kMostSize), "how many tokens the model sees at once"},
      {"vocabulary", integer_or("auto", transformer.vocabulary, 2, kMostSize),
       "number of different tokens; auto: those of the tokenizer, or 256 without one"},
      {"tied_embeddings", boolean(transformer.tied_embeddings),
       "the output layer uses the weights of the token embedding"},
  };
}

Keys matrix_factorization_keys(MatrixFactorizationSection& factorization) {
  return {
      {"users", integer(factorization.users, 0, kMostSize), "number of users; required"},
      {"items", integer(factorization.items, 0, kMostSize), "number of items; required"},
      {"factors", integer(factorization.factors, 1, kMostWidth), "numbers per user and per item"},
  };
}

Keys wide_deep_keys(WideDeepSection& wide_deep) {
  return {
      {"numeric", integer(wide_deep.numeric, 0, kMostSize), "number of numeric columns; 0 = as [data.columns] has"},
      {"categories", integers(wide_deep.categories, 1, std::numeric_limits<std::uint32_t>::max()),
       "for each category column, the number of its values; [] = as [data.columns] gives"},
      {"embedding", integer(wide_deep.embedding, 1, kMostWidth), "numbers per category in the deep part"},
      {"hidden", integers(wide_deep.hidden, 1, kMostSize), "units of each hidden layer of the deep part"},
      {"outputs", integer(wide_deep.outputs, 1, kMostSize), "number of outputs"},
  };
}

// The network that the job trains must be named in one way.
bool is_one_model(const ModelSection& model, Reading& reading) {
  const int given = (model.builtin.empty() ? 0 : 1) + (model.program.empty() ? 0 : 1) + (model.trainer.empty() ? 0 : 1);
  if (given < 2) return given == 1;
  reading.refuse("model", "model.builtin, model.program and model.trainer are three ways to name the model; keep one");
  return false;
}

// Refuses the keys of builtin models beside a program or a trainer, whose model says all this itself.
void check_keys_of_others(const ModelSection& model, Reading& reading) {
  ModelSection any;
  for (const Key& key : model_keys(any)) {
    const bool is_trainers = key.name == "trainer" || key.name == "folder" || key.name == "start_timeout";
    // A builtin is named here only if its value was refused.
    const bool is_used = key.name == "program" || key.name == "builtin" || (is_trainers && !model.trainer.empty());
    if (!is_used)
      only_with(reading, false, "model.", {key.name},
                is_trainers ? "model.trainer" : "model.builtin, because other models say this themselves");
  }
}

// Refuses keys that the job's builtin model doesn't use.
void check_unused_keys(const ModelSection& model, Reading& reading) {
  only_with(reading, false, "model.", {"folder", "start_timeout"}, "model.trainer");
  const auto is_one_of = [&model](const std::vector<std::string>& builtins) {
    return std::find(builtins.begin(), builtins.end(), model.builtin) != builtins.end();
  };
  only_with(reading, is_one_of({"linear", "mlp"}), "model.", {"layers"}, "builtin = \"linear\" or \"mlp\"");
  only_with(reading, is_one_of({"mlp", "cnn", "wide_deep"}), "model.", {"activation"},
            "builtin = \"mlp\", \"cnn\" or \"wide_deep\"");
  only_with(reading, is_one_of({"linear", "mlp", "cnn"}), "model.", {"initializer"},
            "builtin = \"linear\", \"mlp\" or \"cnn\"");
  // A file may set these three keys to values that change nothing.
  only_with(reading, model.dropout == 0.0 || is_one_of({"mlp", "cnn", "wide_deep", "transformer"}), "model.",
            {"dropout"}, "builtin = \"mlp\", \"cnn\", \"wide_deep\" or \"transformer\"");
  const bool has_labels = model.loss == Loss::kSoftmaxCrossEntropy;
  only_with(reading, has_labels || model.label_smoothing == 0.0, "model.", {"label_smoothing"},
            "loss = \"softmax_cross_entropy\"");
  only_with(reading, has_labels || model.class_weights.empty(), "model.", {"class_weights"},
            "loss = \"softmax_cross_entropy\"");
  ModelSection any;
  const std::vector<std::pair<std::string, Keys>> sections = {
      {"resnet", resnet_keys(any.resnet)},
      {"transformer", transformer_keys(any.transformer)},
      {"matrix_factorization", matrix_factorization_keys(any.matrix_factorization)},
      {"wide_deep", wide_deep_keys(any.wide_deep)}};
  for (const auto& [name, keys] : sections)
    for (const Key& key : keys)
      only_with(reading, model.builtin == name, "model." + name + ".", {key.name}, "builtin = \"" + name + "\"");
}

}  // namespace

Keys model_keys(ModelSection& model) {
  const bool is_own = !model.program.empty() || !model.trainer.empty();
  // Beside another model, an empty list is the default.
  const std::size_t least_words = model.builtin.empty() && model.program.empty() ? 1 : 0;
  const auto needed = [is_own](Field field) { return is_own ? field : required(std::move(field)); };
  return {
      {"builtin",
       needed(choice<std::string>(model.builtin, {{"linear", "linear"},
                                                  {"mlp", "mlp"},
                                                  {"cnn", "cnn"},
                                                  {"resnet", "resnet"},
                                                  {"wide_deep", "wide_deep"},
                                                  {"transformer", "transformer"},
                                                  {"matrix_factorization", "matrix_factorization"}})),
       "the network"},
      {"program", not_if_empty(text(model.program), model.program),
       "instead of builtin: path of a package that disttrain.export or disttrain.export_jax wrote"},
      {"trainer", texts(model.trainer, 1000, least_words),
       "instead of builtin: command line of a program with a training loop of its own, such as "
       "[\"python3\", \"train.py\"]"},
      {"folder", not_if_empty(text(model.folder), model.folder),
       "trainer: the folder in which it runs; \"\" = the job file's folder"},
      {"start_timeout", start_timeout(model), "trainer: how long it may take until it has described its model"},
      {"layers", integers(model.layers, 1, kMostSize),
       "linear, mlp: number of inputs, of units in each hidden layer, and of outputs"},
      {"activation",
       choice<Activation>(model.activation, {{"sigmoid", Activation::kSigmoid},
                                             {"relu", Activation::kRelu},
                                             {"tanh", Activation::kTanh},
                                             {"gelu", Activation::kGelu}}),
       "mlp, cnn, wide_deep: the function between two layers"},
      {"initializer", initializer(model.initializer), "linear, mlp, cnn: initial weights; biases begin at 0"},
      {"dropout", real(model.dropout, {0.0, true, 1.0, false}),
       "mlp, cnn, wide_deep, transformer: share of the values between two layers that is dropped"},
      {"loss",
       choice<Loss>(model.loss, {{"softmax_cross_entropy", Loss::kSoftmaxCrossEntropy},
                                 {"mse", Loss::kMse},
                                 {"sigmoid_cross_entropy", Loss::kSigmoidCrossEntropy}}),
       "mean over the batch"},
      {"label_smoothing", real(model.label_smoothing, {0.0, true, 1.0, false}),
       "softmax_cross_entropy: share of the target that is spread over all classes"},
      {"class_weights", reals(model.class_weights, at_least(0.0)),
       "softmax_cross_entropy: a factor for the loss of each class; [] = all 1"},
      {"metrics", text_map(model.metrics, "a table of metrics such as { \"best_5\" = \"top_5\" }"),
       "{ \"NAME\" = \"KIND\" }; {} = those that are usual for the model"},
      {"resnet", section(resnet_keys(model.resnet)), ""},
      {"transformer", section(transformer_keys(model.transformer)), ""},
      {"matrix_factorization", section(matrix_factorization_keys(model.matrix_factorization)), ""},
      {"wide_deep", section(wide_deep_keys(model.wide_deep)), ""},
  };
}

void check_model(const ModelSection& model, const std::vector<ColumnSection>& columns, Reading& reading) {
  if (!is_one_model(model, reading)) return;  // if none is given, that is refused already
  if (model.builtin.empty()) return check_keys_of_others(model, reading);
  check_unused_keys(model, reading);
  const bool has_layers = model.builtin == "linear" || model.builtin == "mlp";
  if (has_layers && model.layers.empty() && !reading.has("model.layers"))
    return reading.refuse("model.layers",
                          "model.layers is missing; expected the number of inputs, of units in each hidden layer, and "
                          "of outputs, such as [784, 100, 10]");
  // The sizes that only the data files know are at least 1.
  ModelSection sized = model;
  take_column_sizes(columns, 1, sized);
  if (const auto spec = builtin_model(sized); !spec) {
    // the message begins with the key
    const std::string& message = spec.error().message;
    const std::string key = message.substr(0, message.find_first_of(" :"));
    if (!reading.is_refused(key)) reading.refuse(key, message);
  }
}

}  // namespace disttrain::config
