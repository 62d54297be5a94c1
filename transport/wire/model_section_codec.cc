// The codec of a job's [model] section.
#include "transport/wire/pieces.h"

namespace disttrain::wire {
namespace {

constexpr std::size_t kMaxSizes = 1 << 16;  // of layers, categories and so on
constexpr std::size_t kMaxClassWeights = 1 << 16;
constexpr std::size_t kMaxTrainerWords = 1000;

template <typename ListReader>
std::vector<std::uint32_t> read_sizes(ListReader list, const char* what) {
  std::vector<std::uint32_t> sizes;
  for (const std::uint32_t size : bounded(list, kMaxSizes, what)) sizes.push_back(size);
  return sizes;
}

template <typename ListBuilder, typename T>
void set_all(ListBuilder list, const std::vector<T>& values) {
  for (unsigned i = 0; i < values.size(); ++i) list.set(i, values[i]);
}

}  // namespace

static void write(const ResnetSection& v, schema::ResnetSection::Builder b) {
  b.setDepth(v.depth);
  b.setStem(write_enum<schema::Stem>(v.stem));
  set_all(b.initImage(list_size(v.image, kMaxSizes, "image")), v.image);
  b.setOutputs(v.outputs);
}

static ResnetSection read(schema::ResnetSection::Reader r) {
  ResnetSection v;
  v.depth = r.getDepth();
  v.stem = read_enum(r.getStem(), Stem::kImagenet, "stem");
  v.image = read_sizes(r.getImage(), "image");
  v.outputs = r.getOutputs();
  return v;
}

static void write(const TransformerSection& v, schema::TransformerSection::Builder b) {
  b.setBlocks(v.blocks);
  b.setHeads(v.heads);
  b.setWidth(v.width);
  b.setContext(v.context);
  b.setVocabulary(v.vocabulary);
  b.setTiedEmbeddings(v.tied_embeddings);
}

static TransformerSection read(schema::TransformerSection::Reader r) {
  TransformerSection v;
  v.blocks = r.getBlocks();
  v.heads = r.getHeads();
  v.width = r.getWidth();
  v.context = r.getContext();
  v.vocabulary = r.getVocabulary();
  v.tied_embeddings = r.getTiedEmbeddings();
  return v;
}

static void write(const MatrixFactorizationSection& v, schema::MatrixFactorizationSection::Builder b) {
  b.setUsers(v.users);
  b.setItems(v.items);
  b.setFactors(v.factors);
}

static MatrixFactorizationSection read(schema::MatrixFactorizationSection::Reader r) {
  return {.users = r.getUsers(), .items = r.getItems(), .factors = r.getFactors()};
}

static void write(const WideDeepSection& v, schema::WideDeepSection::Builder b) {
  b.setNumeric(v.numeric);
  set_all(b.initCategories(list_size(v.categories, kMaxSizes, "categories")), v.categories);
  b.setEmbedding(v.embedding);
  set_all(b.initHidden(list_size(v.hidden, kMaxSizes, "hidden")), v.hidden);
  b.setOutputs(v.outputs);
}

static WideDeepSection read(schema::WideDeepSection::Reader r) {
  WideDeepSection v;
  v.numeric = r.getNumeric();
  v.categories = read_sizes(r.getCategories(), "categories");
  v.embedding = r.getEmbedding();
  v.hidden = read_sizes(r.getHidden(), "hidden");
  v.outputs = r.getOutputs();
  return v;
}

void write(const ModelSection& v, schema::ModelSection::Builder b) {
  b.setBuiltin(write_name(v.builtin, "builtin"));
  set_all(b.initLayers(list_size(v.layers, kMaxSizes, "layers")), v.layers);
  b.setActivation(write_enum<schema::Activation>(v.activation));
  b.initInitializer().setKind(write_enum<schema::InitializerKind>(v.initializer.kind));
  b.getInitializer().setScale(v.initializer.scale);
  b.setDropout(v.dropout);
  b.setLoss(write_enum<schema::Loss>(v.loss));
  b.setLabelSmoothing(v.label_smoothing);
  b.setHasWeights(v.has_weights);
  b.setHasSoftLabels(v.has_soft_labels);
  b.setTargetMean(v.target_mean);
  b.setTargetDeviation(v.target_deviation);
  set_all(b.initClassWeights(list_size(v.class_weights, kMaxClassWeights, "class weights")), v.class_weights);
  write_name_map(b.initMetrics(map_size(v.metrics, "metrics")), v.metrics);
  write(v.resnet, b.initResnet());
  write(v.transformer, b.initTransformer());
  write(v.matrix_factorization, b.initMatrixFactorization());
  write(v.wide_deep, b.initWideDeep());
  b.setProgram(write_path(v.program, "program"));
  auto trainer = b.initTrainer(list_size(v.trainer, kMaxTrainerWords, "trainer"));
  for (unsigned i = 0; i < trainer.size(); ++i) trainer.set(i, write_path(v.trainer[i], "trainer"));
  b.setFolder(write_path(v.folder, "folder"));
  b.setStartTimeout(v.start_timeout.count());
}

ModelSection read(schema::ModelSection::Reader r) {
  ModelSection v;
  v.builtin = read_name(r.getBuiltin(), "builtin");
  v.layers = read_sizes(r.getLayers(), "layers");
  v.activation = read_enum(r.getActivation(), Activation::kGelu, "activation");
  v.initializer.kind = read_enum(r.getInitializer().getKind(), InitializerKind::kUniform, "initializer");
  v.initializer.scale = read_finite(r.getInitializer().getScale(), "scale");
  v.dropout = read_finite(r.getDropout(), "dropout");
  v.loss = read_enum(r.getLoss(), Loss::kSigmoidCrossEntropy, "loss");
  v.has_weights = r.getHasWeights();
  v.has_soft_labels = r.getHasSoftLabels();
  v.target_mean = read_finite(r.getTargetMean(), "mean of the targets");
  v.target_deviation = read_finite(r.getTargetDeviation(), "deviation of the targets");
  v.label_smoothing = read_finite(r.getLabelSmoothing(), "label smoothing");
  for (const double weight : bounded(r.getClassWeights(), kMaxClassWeights, "class weights"))
    v.class_weights.push_back(read_finite(weight, "class weight"));
  v.metrics = read_name_map(r.getMetrics(), "metrics");
  v.resnet = read(r.getResnet());
  v.transformer = read(r.getTransformer());
  v.matrix_factorization = read(r.getMatrixFactorization());
  v.wide_deep = read(r.getWideDeep());
  v.program = read_path(r.getProgram(), "program");
  for (const auto word : bounded(r.getTrainer(), kMaxTrainerWords, "trainer"))
    v.trainer.push_back(read_path(word, "trainer"));
  v.folder = read_path(r.getFolder(), "folder");
  v.start_timeout = read_duration(r.getStartTimeout(), "start timeout");
  return v;
}

}  // namespace disttrain::wire
