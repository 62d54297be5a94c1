#include "workerd/predict/predict.h"

#include <asio/io_context.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/placement.h"
#include "common/checkpoint/disk_files.h"
#include "common/checkpoint/kept_csv.h"
#include "common/checkpoint/weights.h"
#include "common/config/columns.h"
#include "common/config/reader/reader.h"
#include "common/counted.h"
#include "common/daemon/signals.h"
#include "common/memory_plan.h"
#include "input/evaluation_batches.h"
#include "input/fits.h"
#include "input/keep_fitted.h"
#include "input/numbered_dataset.h"
#include "input/parquet/parquet_functions.h"
#include "input/unlabelled_dataset.h"
#include "workerd/predict/outputs_file.h"
#include "workerd/predict/single_computation.h"
#include "workerd/predict/stored_parameters.h"

namespace disttrain::workerd {

namespace {

using checkpoint::Weights;

// The job, its engine and the records to predict.
struct Subject {
  explicit Subject(ArenaKind kind) : arena(kind) {}

  Arena arena;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<input::Dataset> records;
};

Result<std::unique_ptr<input::Dataset>> load_records(const input::Source& source) {
  if (source.files.empty())
    return fail(ErrorCode::kConfig,
                "the checkpoint's job has no [evaluate], so there are no records to predict: name them with --files");
  Result<std::unique_ptr<input::Dataset>> records = input::load_dataset(input::without_labels(source));
  if (!records) return records;
  return input::with_zero_labels(std::move(*records), source.columns);
}

// A trainer without [data] has the records to predict itself. Options that name other records would be ignored.
Status check_options(const JobConfig& job, const std::vector<std::string>& sets) {
  if (!job.data.files.empty()) return {};
  const std::pair<const char*, const char*> options[] = {
      {"evaluate.files=", "--files"}, {"evaluate.path=", "--data"}, {"evaluate.labels=", "--labels"}};
  for (const std::string& set : sets)
    for (const auto& [key, option] : options)
      if (set.starts_with(key))
        return fail(ErrorCode::kConfig,
                    std::string(option) +
                        " can't choose the records to predict, because the checkpoint's job has no section [data]: its "
                        "trainer predicts the records of its own evaluation data set, or of its training set if it has "
                        "none. Leave the option out, and change job.on_evaluate(dataset=...) in the script instead");
  return {};
}

// A trainer must know the columns of the data first, and a transformer its tokens. For other models the data is read as
// the model wants it. `kept` is the content of the checkpoint's columns.cbor: columns of [data.columns], or the labels
// and the header of csv files.
Result<std::unique_ptr<Subject>> make_subject(const JobConfig& job, const std::vector<checkpoint::KeptColumn>& kept,
                                              const EngineFactory& make_engine, const EngineWorld& world) {
  const bool has_trainer = !job.model.trainer.empty();
  const bool has_data = !job.data.files.empty();
  const bool has_columns = has_data && !job.data.columns.empty();
  auto subject = std::make_unique<Subject>(has_trainer ? ArenaKind::kShared : ArenaKind::kPrivate);
  input::Source source = input::evaluation_source(job.data, job.evaluate);
  source.parquet = &input::parquet_functions();
  source.path_key = "--data (" + source.path_key + ")";
  source.files_key = "--files (" + source.files_key + ")";
  source.labels_key = "--labels (" + source.labels_key + ")";
  JobConfig sized = job;
  if (has_columns) {
    Result<std::shared_ptr<const input::FittedColumns>> fitted = input::fitted_from(job.data.columns, kept);
    if (!fitted) return tl::unexpected(fitted.error());
    source.fitted = std::move(*fitted);
  }
  if (!has_columns)
    if (const std::optional<checkpoint::KeptCsv> csv = checkpoint::csv_of(kept)) source.header = csv->header;
  // Older checkpoints don't keep the vocabularies, means and deviations of the training set.
  if (has_columns && source.fitted == nullptr) {
    input::Source fitted = input::training_source(job.data);
    fitted.bucket_by.clear();  // no lengths are needed
    fitted.parquet = &input::parquet_functions();
    fitted.target_taker = input::target_taker(job.model);
    const Result<std::unique_ptr<input::Dataset>> training = input::load_dataset(fitted);
    if (!training) return tl::unexpected(training.error());
    source.fitted = (*training)->fitted_columns();
  }
  if (has_columns) input::size_model(*source.fitted, job.data, sized.model);
  std::vector<ColumnSpec> columns;
  if (has_data && (has_trainer || takes_vocabulary(job))) {
    Result<std::unique_ptr<input::Dataset>> records = load_records(source);
    if (!records) return tl::unexpected(records.error());
    subject->records = std::move(*records);
    columns = input::columns_of(*subject->records, job.data.scale);
    if (takes_vocabulary(job)) input::size_vocabulary(*subject->records, sized.model);
  }
  Result<MadeEngine> made = make_engine(sized, columns, subject->arena, world);
  if (!made) return tl::unexpected(made.error());
  subject->engine = std::move(made->engine);
  const ModelSpec& model = subject->engine->describe();
  if (!model.programs.predicts)
    return fail(ErrorCode::kConfig,
                "the job's model doesn't predict: give a trainer a function by job.on_predict(), or export the program "
                "with predict_fn");
  if (!has_data) {
    subject->records =
        input::make_numbered_dataset(made->evaluation_records > 0 ? made->evaluation_records : made->training_records);
    return subject;
  }
  if (subject->records == nullptr) {
    input::keep_types_of(model, source);
    Result<std::unique_ptr<input::Dataset>> records = load_records(source);
    if (!records) return tl::unexpected(records.error());
    subject->records = std::move(*records);
  }
  if (Status ok = input::fits(*subject->records, model, job.model, source); !ok) return tl::unexpected(ok.error());
  return subject;
}

Status write_outputs(Subject& subject, const JobConfig& job, asio::io_context& loop, const std::string& path) {
  const std::uint64_t batch_records = evaluation_batch_records(job);
  int stops = 0;
  const daemon::StopSignals signals(loop, [&stops](int) { ++stops; });
  Result<OutputsFile> file = OutputsFile::open(path, subject.records->records());
  if (!file) return tl::unexpected(file.error());
  input::EvaluationBatches batches(*subject.records, batch_records, subject.engine->describe().columns);
  SingleComputation computation(*subject.engine, loop);
  for (;;) {
    const Result<const input::BatchBuffer*> records = batches.next();
    if (!records.has_value()) return tl::unexpected(records.error());
    if (*records == nullptr) break;
    const Result<EngineOutput> output = computation.run(Program::kPredict, (*records)->batch());
    if (!output) return tl::unexpected(output.error());
    loop.restart();
    loop.poll();
    if (stops > 0) return fail(ErrorCode::kTemporary, "a signal ended the work; no file was written");
    if (Status ok = file->add(output->outputs, output->outputs.size() / output->examples); !ok) return ok;
  }
  if (Status ok = file->finish(); !ok) return ok;
  const std::string notice = input::notice_of_unknown(*subject.records, job.data.columns);
  if (!notice.empty()) std::cerr << "warning: " << notice << '\n';
  std::cout << path << ": " << counted(subject.records->records(), "record") << ", "
            << counted(file->columns(), "output") << " each";
  return {};
}

Status predict_with(const PredictOptions& options, const EngineFactory& make_engine,
                    const std::function<void(const std::string&)>& on_line) {
  checkpoint::DiskFiles files;
  Result<checkpoint::OpenCheckpoint> open = checkpoint::open_named(files, options.checkpoint);
  if (!open) return tl::unexpected(open.error());
  const std::string path = open->path;
  const Result<JobConfig> job = config::read_job(open->manifest.job_toml, path + "'s job", options.sets);
  if (!job) return tl::unexpected(job.error());
  if (Status ok = check_options(*job, options.sets); !ok) return tl::unexpected(ok.error());
  const auto kept = checkpoint::kept_columns(files, *open);
  if (!kept.has_value()) return tl::unexpected(kept.error());
  const bool averages = job->evaluate.average > 0.0 && open->manifest.has_average;
  Result<Weights> weights =
      Weights::of_checkpoint(files, std::move(*open), averages ? Weights::Slots::kAverage : Weights::Slots::kNone);
  if (!weights) return tl::unexpected(weights.error());

  asio::io_context loop(1);
  const auto never = [] { return false; };
  const EngineWorld world{
      .loop = loop,
      .threads = options.threads,
      .is_cancelled = never,
      .on_line = on_line,
      .on_checkpoint = [] {},
      .worker_count = [] { return 1u; },
  };
  const Result<std::unique_ptr<Subject>> subject =
      make_subject(*job, kept->value_or(std::vector<checkpoint::KeptColumn>()), make_engine, world);
  if (!subject) return tl::unexpected(subject.error());
  Engine& engine = *(*subject)->engine;
  const Result<Layout> layout = chiefd::place(engine.describe(), Placement::kBalanced, 1);
  if (!layout) return tl::unexpected(layout.error());
  // An engine needs both arrays, but a prediction doesn't touch the gradients. So they take no memory.
  const std::uint64_t bytes = word_count(layout->model) * sizeof(float);
  Memory parameters((*subject)->arena, bytes, Paging::kOnDemand);
  Memory gradients((*subject)->arena, bytes, Paging::kOnDemand);
  if (Status ok = read_parameters(*weights, *layout, parameters.floats()); !ok) return ok;
  if (Status ok = engine.open(*layout, parameters.floats(), gradients.floats()); !ok) return ok;
  if (Status ok = write_outputs(**subject, *job, loop, options.out); !ok) return ok;
  std::cout << (averages ? ", from the averages of " : ", from ") << path << '\n';
  return {};
}

}  // namespace

Status predict(const PredictOptions& options, const EngineFactory& make_engine) {
  std::string last_line;
  Status done = predict_with(options, make_engine, [&last_line](const std::string& line) {
    std::cerr << "trainer: " << line << '\n';
    last_line = line;
  });
  if (done) return done;
  // A trainer's error ends with the lines that the trainer has printed (RunningTrainer). They are on stderr already.
  std::string& message = done.error().message;
  const std::size_t lines = message.find("; its last lines:\n");
  if (lines != std::string::npos && message.ends_with("\n  " + last_line))
    message = message.substr(0, lines) + "; its output is above";
  return done;
}

}  // namespace disttrain::workerd
