// The settings of job.toml with their defaults. The reader (common/config/reader/reader.h) fills them from the file and
// enforces the ranges that the comments here give.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"

namespace disttrain {

// The most records that a worker may use in a step.
inline constexpr std::uint64_t kMaxStepRecords = 1 << 24;
// The most steps of train.profile_steps.
inline constexpr std::uint64_t kMaxProfiledSteps = 1000;
// Of a job's name, in bytes.
inline constexpr std::size_t kMaxJobNameBytes = 100;
// Of evaluate.keep_best.
inline constexpr std::uint32_t kMaxKeptBest = 100;

enum class Placement : std::uint8_t { kBalanced, kRoundRobin, kGreedy, kPartitioned };
enum class Mode : std::uint8_t { kAsync, kSync, kSsp };
enum class Activation : std::uint8_t { kSigmoid, kRelu, kTanh, kGelu };
enum class Loss : std::uint8_t { kSoftmaxCrossEntropy, kMse, kSigmoidCrossEntropy };
enum class Rule : std::uint8_t { kSgd, kMomentum, kNesterov, kAdagrad, kRmsprop, kAdam, kAdamw, kLamb, kFtrl };
// Which variables weight decay shrinks. kMatrices: those of two or more dimensions; so biases and the weights of
// normalizations keep their size.
enum class DecayOf : std::uint8_t { kAll, kMatrices };
enum class ScheduleKind : std::uint8_t { kConstant, kStep, kExponential, kPolynomial, kCosine };
enum class ClipKind : std::uint8_t { kNone, kGlobalNorm, kValue };
// What the ps does with the values that workers push for a state variable. kMean: it takes the mean over the workers.
// kLowestRank: it takes the value of the lowest rank alone.
enum class StateRule : std::uint8_t { kMean, kLowestRank };
enum class NonfiniteAction : std::uint8_t { kSkip, kFail };
enum class Sharding : std::uint8_t { kLease, kNone };
enum class DataFormat : std::uint8_t {
  kIdx,
  kCsv,
  kNpy,
  kText,
  kTfrecord,
  kLibsvm,
  kJsonl,
  kWebdataset,
  kImages,
  kNpz,
  kParquet
};
// What becomes of a column of the data.
enum class ColumnKind : std::uint8_t { kNumeric, kCategory, kLabel, kIgnore, kImage, kTokens, kWeight, kBytes };
// How a worker treats a sequence that is too long: it cuts off the end, or the begin, or it refuses the record.
enum class Truncate : std::uint8_t { kRight, kLeft, kNone };
enum class PadTo : std::uint8_t { kLength, kLongest };  // the column's length, or the longest record of the batch
enum class Normalise : std::uint8_t { kNone, kStandard };
enum class Stem : std::uint8_t { kCifar, kImagenet };
enum class OnWorkerLoss : std::uint8_t { kShrink, kWait };
// What becomes of a job that has failed. kResubmit: the chief submits it again.
enum class OnFailure : std::uint8_t { kEnd, kResubmit };
enum class Restore : std::uint8_t { kNewest, kNone };
// Which values of a metric are better. kAuto: its kind says so (is_higher_better() in common/model_metric.h).
enum class Better : std::uint8_t { kAuto, kHigher, kLower };
enum class ShuffleKind : std::uint8_t { kEpoch, kBuffer, kNone, kBlocks };

// The distribution of a variable's initial values. `scale` is the standard deviation for kNormal, and the limit for
// kUniform, whose values are in +-scale; the other kinds don't use it. kGlorot: uniform in +-sqrt(6 / (fan_in +
// fan_out)) (Glorot & Bengio 2010, eq. 16). kHe: normal with standard deviation sqrt(2 / fan_in) (He et al. 2015,
// eq. 10). No key can be set to kOnes and kUniform: only variables of the builtin models have them.
enum class InitializerKind : std::uint8_t { kZeros, kNormal, kGlorot, kHe, kOnes, kUniform };
struct Initializer {
  InitializerKind kind = InitializerKind::kGlorot;
  double scale = 0.0;
  bool operator==(const Initializer&) const = default;
};

struct JobSection {
  // [a-z0-9-]+, at most kMaxJobNameBytes; required. Doesn't begin with "-", because a command line takes such a word
  // for an option, and isn't a number, because command lines name jobs by their numbers too
  std::string name;
  std::uint64_t seed = 1;    // 0 .. 2^63 - 1
  std::uint32_t shards = 0;  // 0 = "auto"
  Placement placement = Placement::kBalanced;
  // the fewest workers with which the job runs; with fewer it waits, or pauses if it has begun
  std::uint32_t min_workers = 1;
  // kWait (sync only): after a worker's loss the steps wait until another worker takes its rank. So the result is
  // bitwise the same as without the loss.
  OnWorkerLoss on_worker_loss = OnWorkerLoss::kShrink;
  std::uint32_t max_restarts = 10;  // the most losses that stop the job within restart_window; one more fails the job
  Duration restart_window = std::chrono::minutes(10);
  Duration stall_timeout = std::chrono::seconds(60);
  // How long the job waits for ps tasks that are away, and for workers that it lacks. Then it fails. 0: it waits until
  // they are back
  Duration ps_timeout{};
  Duration workers_timeout{};
  OnFailure on_failure = OnFailure::kEnd;
  std::uint32_t max_resubmits = 3;  // kResubmit: how often the chief submits the job again, at least 1
};

// Each of the next sections is used only by the builtin model of its name. common/builtin/builtin.h describes the
// models.

struct ResnetSection {
  std::uint32_t depth = 18;                        // number of layers with weights: 18, 34 or 50
  Stem stem = Stem::kCifar;                        // the first layers
  std::vector<std::uint32_t> image = {3, 32, 32};  // channels, height, width
  std::uint32_t outputs = 10;
};

struct TransformerSection {
  std::uint32_t blocks = 4;
  std::uint32_t heads = 4;       // divides width
  std::uint32_t width = 128;     // numbers per token
  std::uint32_t context = 64;    // tokens that the model sees at once
  std::uint32_t vocabulary = 0;  // tokens are 0 .. vocabulary - 1; 0 = "auto": those of the tokenizer, or 256 bytes
  bool tied_embeddings = true;   // the output layer uses the weights of the token embedding
};

struct MatrixFactorizationSection {
  std::uint32_t users = 0;  // required
  std::uint32_t items = 0;  // required
  std::uint32_t factors = 100;
};

struct WideDeepSection {
  std::uint32_t numeric = 0;                       // number of numeric columns
  std::vector<std::uint32_t> categories;           // for each category column, the number of its values
  std::uint32_t embedding = 32;                    // numbers per category in the deep part
  std::vector<std::uint32_t> hidden = {256, 128};  // units of each hidden layer of the deep part
  std::uint32_t outputs = 1;
};

struct ModelSection {
  // Exactly one of these three is set. builtin: "linear", "mlp", "cnn", "resnet", "wide_deep", "transformer" or
  // "matrix_factorization". program: the absolute path of a package that disttrain.export or disttrain.export_jax
  // wrote. trainer: the command line of a program that computes with the Python package disttrain.
  std::string builtin;
  std::string program;
  std::vector<std::string> trainer;
  std::string folder;  // trainer: the folder in which it runs; the reader sets it to the job file's folder
  // trainer: how long it may take from its start until it has described its model
  Duration start_timeout = std::chrono::minutes(10);
  // mlp: number of inputs, number of units of each hidden layer, number of outputs. Without hidden layers these are 2
  // numbers, the fewest possible. linear: numbers of inputs and outputs. Not allowed for the other models
  std::vector<std::uint32_t> layers;
  Activation activation = Activation::kRelu;  // mlp, cnn, wide_deep
  Initializer initializer;                    // linear, mlp, cnn: initial weights; biases begin at 0
  double dropout = 0.0;                       // share of the values that is dropped; 0 <= dropout < 1; cnn: 0.5
  Loss loss = Loss::kSoftmaxCrossEntropy;     // matrix_factorization: kMse
  // softmax_cross_entropy: the target of the label's class is 1 - label_smoothing, plus label_smoothing / classes for
  // each class (Szegedy et al. 2016, section 7); 0 <= label_smoothing < 1
  double label_smoothing = 0.0;
  // softmax_cross_entropy: for each class a factor of the loss of its examples, at least 0; empty = all 1. The loss of
  // a batch is divided by the number of examples. (PyTorch divides it by the sum of their factors. Then workers with
  // batches of other classes would count differently.)
  std::vector<double> class_weights;
  // Not a key: with softmax_cross_entropy, whether labels are a number for each class (DataSection::mix)
  bool has_soft_labels = false;
  // Not a key: whether [data.columns] has a weight. Each record's loss is then multiplied by it
  bool has_weights = false;
  // Not keys: each worker takes them from the label's data.columns and from the training set. A model with outputs z
  // says that the target is z * target_deviation + target_mean (Normalise::kStandard of a label)
  double target_mean = 0.0;
  double target_deviation = 1.0;               // above 0
  std::map<std::string, std::string> metrics;  // name -> kind (common/model_metric.h); empty = the model's usual ones
  ResnetSection resnet;
  TransformerSection transformer;
  MatrixFactorizationSection matrix_factorization;
  WideDeepSection wide_deep;
};

// One column of [data.columns]. A column belongs to one of the arrays of a record: "inputs" (numbers), "categories"
// (whole numbers), "labels" or "weights". Within an array the columns are in the order of the file job.toml. A column
// of tokens or bytes is an array of its own.
struct ColumnSection {
  std::string name;
  ColumnKind kind = ColumnKind::kNumeric;  // required
  std::string from;                        // the name of the column in the data files; "" = `name`
  // numeric, weight: a missing value becomes this number; nothing: a missing value is an error
  std::optional<double> missing;
  // numeric: kStandard gives the column the mean 0 and the standard deviation 1: (value - mean) / deviation. Both are
  // those of the training set unless they are given. They are given together. deviation > 0. label: the same, but only
  // the loss of a step sees it; evaluations and predictions have the values of the files
  Normalise normalise = Normalise::kNone;
  std::optional<double> mean;
  std::optional<double> deviation;
  // numeric: makes a category of the number: the number of boundaries that aren't above it. Ascending
  std::vector<double> boundaries;
  // category: word i has the number i + 1, and all other words have the number 0. label: word i is class i, and there
  // are no other words. Empty: the words of the training set in sorted order
  std::vector<std::string> vocabulary;
  // category with the words of the training set: words with fewer records have the number 0, which so is trained
  std::uint32_t min_count = 1;
  std::uint32_t hash = 0;          // category: the number is a hash of the word, below this; 0: there is a vocabulary
  std::vector<std::string> cross;  // category: combines these categories (names of columns) to one; needs `hash`
  // category, also of a numeric column with boundaries, but not a cross: the category becomes as many numbers of
  // "inputs" as it has values: a 1 at its number, and 0 elsewhere
  bool one_hot = false;
  std::string strip;  // label: these characters are removed from the end of a word
  // numeric: the shape of a record's values; {} = one value. image: channels (1 or 3), height and width
  std::vector<std::uint32_t> shape;
  // image, in training only: cut a random part of the image and scale it to the size of `shape`; mirror half of the
  // images
  bool crop = false;
  bool flip = false;
  // numeric, libsvm: whether the first index of a record's values is 0; false: 1
  bool zero_based = false;
  // tokens: the file of the tokenizer that makes tokens of texts; "" = the column has tokens. The reader makes it
  // absolute
  std::string tokenizer;
  // tokens without a tokenizer: they are 0 .. limit - 1; required. bytes without `length`, required: the most bytes of
  // a value; a longer one is an error
  std::uint32_t limit = 0;
  // tokens: the number of tokens of each record for the model; required. bytes: their number; 0 = each value stays as
  // it is, and only a trainer takes it
  std::uint32_t length = 0;
  // The next keys are for tokens, and for bytes with a length.
  std::uint32_t pad = 0;                 // the token or byte that is added behind shorter records
  Truncate truncate = Truncate::kRight;  // where longer records are cut
  bool special_tokens = true;            // tokens alone: with the tokens that the tokenizer sets around a text
  bool with_length = false;  // adds a column NAME_length with the number of the record's tokens without the padding
  PadTo pad_to = PadTo::kLength;  // how long the records of a batch become
};

struct DataSection {
  DataFormat format = DataFormat::kIdx;
  std::string path;    // folder; the reader makes it absolute
  std::string files;   // pattern of file names in `path`; required
  std::string labels;  // pattern of file names in `path`; "" = the usual names of the format's label files
  std::array<std::uint64_t, 2> records = {0, 0};  // [begin, end), {0, 0} = all
  Sharding sharding = Sharding::kLease;
  ShuffleKind shuffle = ShuffleKind::kEpoch;
  std::uint64_t shuffle_buffer = 0;   // records, for kBuffer
  std::uint64_t shuffle_window = 16;  // blocks whose records are shuffled together, for kBlocks; at least 1
  double scale = 1.0;                 // each value of a record is multiplied by this
  // Training mixes each record with another one: l * record + (1 - l) * other, where l is from Beta(mix, mix). 0: it
  // doesn't; otherwise above 0 and at most 1
  double mix = 0.0;
  // The columns that the job uses. With csv the list may be empty: then the last column of the files is the label, and
  // all others are inputs. With idx, npy, npz and text it is empty
  std::vector<ColumnSection> columns;
  std::vector<std::string> missing;  // with columns: words that mean that a value is missing, beside the empty one
  // text: the file of the tokenizer that makes tokens of the text; "" = its bytes are the tokens. The reader makes it
  // absolute
  std::string tokenizer;
  // A column of tokens or bytes by whose length records are put into batches; "" = none. With one, the batches of so
  // many batches' records, 1 .. 2^20, are made at a time.
  std::string bucket_by;
  std::uint32_t bucket_window = 64;
  std::uint32_t window = 65;   // text: tokens of a record, 1 .. 2^24
  std::uint32_t stride = 0;    // text: tokens from one record to the next; 0 = window - 1, at least 1
  std::uint32_t prefetch = 2;  // batches, 1..1024; see batches_ahead()
  // The most memory for the records of a data set, in bytes; 0 = "auto". Larger data sets are read from their files
  // again for each batch.
  std::uint64_t memory = 0;
  std::string index;  // folder for the indexes of data files; "" = beside the data. The reader makes it absolute
  // The content of a compressed file may have so many times the bytes of the file, 1 .. 2^20; content of up to 64 MiB
  // always may.
  std::uint32_t max_expansion = 100;
  std::uint32_t threads = 0;  // threads that make batches; 0 = "auto": 1 for a data set in memory
};

struct OptimizerConfig {
  Rule rule = Rule::kSgd;
  double learning_rate = 0.01;  // > 0
  // weight of the L2 term that is added to the gradient; adamw shrinks the parameter itself instead; lamb adds the term
  // to the direction of its update; >= 0
  double weight_decay = 0.0;
  DecayOf weight_decay_of = DecayOf::kAll;
  double momentum = 0.9;  // momentum, nesterov; rmsprop: 0
  double beta1 = 0.9;     // adam, adamw, lamb
  double beta2 = 0.999;   // adam, adamw, lamb
  double rho = 0.9;       // rmsprop
  double epsilon = 1e-8;  // adagrad 1e-10, lamb 1e-6, others 1e-8
  double l1 = 0.0;        // ftrl: weight of the L1 term, >= 0
  double l2 = 0.0;        // ftrl: weight of the L2 term, >= 0
};

// The schedule multiplies the learning rate by a factor that depends on the step t. Each shard counts its own steps,
// from 0. common/update/schedule.h has the formulas. A comment such as "step, exponential" names the kinds of schedule
// that use the value.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  std::uint64_t warmup_steps = 0;  // the factor grows linearly to 1 during so many steps
  std::uint64_t every_steps = 0;   // step, exponential: period, > 0
  double factor = 0.1;             // step, exponential: each period multiplies the rate by this
  std::uint64_t decay_steps = 0;   // polynomial, cosine: length, > 0
  double power = 1.0;              // polynomial
  double end_factor = 0.0;         // polynomial, cosine: the share of the rate that is left at the end
};

struct ClipConfig {
  ClipKind kind = ClipKind::kNone;
  double value = 0.0;  // > 0, except with kNone
};

struct NonfiniteConfig {
  NonfiniteAction action = NonfiniteAction::kSkip;
  std::uint32_t limit = 10;  // the job fails after so many skipped steps in a row; 0 = it never fails for them
};

struct TrainSection {
  Mode mode = Mode::kAsync;
  // sync: how many workers' gradients a step waits for; later gradients are dropped; 0 = all workers
  std::uint32_t aggregate = 0;
  std::uint32_t staleness = 8;   // ssp: how many steps the fastest worker may be ahead of the slowest
  std::uint32_t pipeline = 0;    // 1: a worker computes the next step while it exchanges this one with the ps
  std::uint32_t batch_size = 0;  // records of one computation; required
  // how many computations a worker does in a step, at least 1; it pushes the mean of their gradients
  std::uint32_t accumulate = 1;
  std::uint64_t epochs = 0;  // passes over the data; 0 = no limit. Steps and epochs can't both be 0
  std::uint64_t steps = 0;   // global steps, 0 = no limit
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  bool scale_learning_rate_linear = false;  // multiplies the rate by the number of workers
  ClipConfig clip;
  NonfiniteConfig nonfinite;
  StateRule state = StateRule::kMean;  // of state variables, such as batch norm's statistics
  // The first and the last global step of which a trace is taken, from 1, at most kMaxProfiledSteps steps; {0, 0} =
  // none
  std::array<std::uint64_t, 2> profile_steps = {0, 0};

  // The number of records that a worker uses in a step; fewer may be left at the end of an epoch. At most
  // kMaxStepRecords.
  std::uint64_t step_records() const { return std::uint64_t{batch_size} * accumulate; }
  bool has_profile() const { return profile_steps[1] != 0; }
};

struct CheckpointSection {
  // folder for checkpoints, which the chief and every ps must see; "" = no checkpoints. The reader makes it absolute
  std::string directory;
  std::uint64_t every_steps = 0;  // 0 = steps don't trigger any
  Duration every{};               // 0 = time doesn't trigger any
  std::uint32_t keep = 3;         // how many of the newest checkpoints are kept; at least 1
  // the first checkpoint at or after each multiple of this number of steps is kept for ever; 0 = none
  std::uint64_t keep_every_steps = 0;
  bool at_end = true;
  Restore restore = Restore::kNewest;  // kNone: the job's folder of checkpoints must be empty
  // a checkpoint or safetensors file with the initial parameters; "" = drawn at random. The reader makes it absolute
  std::string init_from;
  std::map<std::string, std::string> init_map;  // names of variables in init_from -> their names in the model
};

struct EvaluateSection {
  std::string path;   // folder of the evaluation data; "" = data.path. The reader makes it absolute
  std::string files;  // "" = no evaluation
  std::string labels;
  std::array<std::uint64_t, 2> records = {0, 0};  // [begin, end), {0, 0} = all
  std::uint64_t every_steps = 0;                  // 0 = at the end only
  // The most records that a worker evaluates at a time; at most kMaxStepRecords. 0 = see evaluation_batch_records()
  std::uint32_t batch_size = 0;
  // Evaluations use a moving average of the parameters. After each update, a shard computes
  // average = this * average + (1 - this) * parameter; the average begins as the parameter. 0 <= this < 1; 0 = off
  double average = 0.0;
  // The metric that stop_after and keep_best look at; "loss" or a metric of the model
  std::string metric = "loss";
  Better better = Better::kAuto;  // of `metric`
  // After so many evaluations in a row without a better value of `metric`, the job finishes early; 0 = never
  std::uint32_t stop_after = 0;
  // How many of the best evaluated checkpoints retention doesn't remove, at most kMaxKeptBest. The best one is also
  // exported as best.safetensors. 0 = none
  std::uint32_t keep_best = 0;
};

struct JobConfig {
  JobSection job;
  ModelSection model;
  DataSection data;
  TrainSection train;
  CheckpointSection checkpoint;
  EvaluateSection evaluate;
};

// The settings of a job, with all defaults filled in by the chief. Shared, because messages that carry it are copied.
// Never null.
using SharedJobConfig = std::shared_ptr<const JobConfig>;

}  // namespace disttrain
