#include "chiefd/folder_work.h"

#include <algorithm>
#include <utility>

#include "chiefd/kept_evaluations.h"
#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/kept_columns.h"
#include "common/checkpoint/kept_csv.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/warm_start.h"
#include "common/checkpoint/weights_file.h"
#include "common/printable.h"
#include "common/program/exported_tensors.h"
#include "common/program/kept_program.h"
#include "common/update/update_rule.h"

namespace disttrain::chiefd {
namespace {

constexpr const char* kBeside = ".new";  // follows the name of a file that will replace another

// The chief's own files in a job's folder.
std::vector<std::string> own_files() {
  std::vector<std::string> names;
  for (const std::string name : {kBestName, kEvaluationsName}) names.insert(names.end(), {name, name + kBeside});
  return names;
}

checkpoint::Manifest manifest_of(const CommitAttempt& work, std::int64_t created) {
  checkpoint::Manifest manifest;
  manifest.job = work.config.job.name;
  manifest.generation = work.generation;
  manifest.attempt = work.attempt;
  manifest.created = created;
  manifest.job_toml = work.job_toml;
  manifest.seed = work.config.job.seed;
  manifest.records = work.records;
  manifest.own_batch = work.config.data.sharding == Sharding::kNone ? work.config.train.step_records() : 0;
  manifest.rule = update::name_of(work.config.train.optimizer.rule);
  manifest.slots = static_cast<std::uint32_t>(update::slots_of(work.config));
  manifest.has_average = work.config.evaluate.average > 0.0;
  manifest.variables = checkpoint::variables_of(work.layout);
  for (const ShardWritten& shard : work.shards) {
    manifest.shards.push_back(shard.entry);
    manifest.files.push_back(shard.file);
  }
  const PacerReport& pacer = *work.shards.front().pacer;
  manifest.step = pacer.global_step;
  manifest.pacer = {pacer.examples, pacer.late, pacer.skipped, pacer.complete_epochs, pacer.ledger};
  return manifest;
}

// The words of [data.columns] and the labels of csv files have numbers, on which the parameters depend. So a job can't
// go on with other words. A damaged file of columns doesn't keep a job from training: then the result is a warning.
// Otherwise it is "".
Result<std::string> check_columns(checkpoint::Files& files, const checkpoint::OpenCheckpoint& open,
                                  const std::string& columns) {
  if (columns.empty()) return std::string();
  const auto kept = checkpoint::kept_columns(files, open);
  const auto found = checkpoint::decode_columns(columns, "the job's data");
  if (!kept.has_value() || !found)
    return "the job goes on from " + open.path +
           ", but whether its training files still have the values of data.columns, or the labels of csv files, with "
           "which the checkpoint was trained couldn't be checked: " +
           (kept.has_value() ? found.error().message : kept.error().message) +
           "; make sure that the files are the same, or go on from another checkpoint";
  if (!kept->has_value()) return std::string();
  const std::optional<checkpoint::KeptCsv> csv = checkpoint::csv_of(**kept);
  const std::optional<checkpoint::KeptCsv> csv_now = checkpoint::csv_of(*found);
  if (csv && csv_now)
    if (const std::optional<std::string> what = checkpoint::difference(*csv, *csv_now))
      return fail(ErrorCode::kConfig,
                  open.path + " was trained with other labels or columns than the csv files have now: " + *what +
                      ": restore the files, or begin anew under another job.name");
  // A job that got [data.columns], or lost it, is compared by its model only.
  if (csv || csv_now) return std::string();
  const std::optional<std::string> other = checkpoint::differing_column(**kept, *found);
  if (!other) return std::string();
  return fail(ErrorCode::kConfig,
              open.path + " was trained with other values of data.columns." + printable(*other) +
                  " than the training files have now: restore the files, give the column's "
                  "vocabulary, mean and deviation in job.toml, or begin anew under another job.name");
}

RestorePoint restore_point(const checkpoint::OpenCheckpoint& open) {
  RestorePoint point;
  point.path = open.path;
  point.generation = open.manifest.generation;
  point.step = open.manifest.step;
  point.pacer = checkpoint::report_of(open.manifest);
  point.records = open.manifest.records;
  point.own_batch = open.manifest.own_batch;
  for (const auto& file : open.manifest.files) point.bytes += file.bytes;
  for (const WorkerEntry& worker : open.manifest.shards.front().workers)
    point.batches[worker.worker.task] = worker.batches;
  return point;
}

void append_sentence(std::string& text, const std::string& sentence) {
  text += (text.empty() ? "" : "; ") + sentence;
}

// The workers have packages of their own, so a chief without one is no reason to fail the job.
std::string without_program(const std::string& why) {
  return "checkpoints don't keep the job's program, so their exports will lack its frozen variables, aliases and "
         "dtypes: " +
         why + "; copy the package to the same path on the chief's host";
}

}  // namespace

// Fails if a checkpoint was committed to this folder, but the folder holds no checkpoint now, not even a damaged one.
// The folder may then be a mount point whose file system isn't mounted. The job must not start over in it, and the
// chief must not write into it.
Status JobFolder::check_mounted(const std::string& folder, const std::string& committed) const {
  if (committed.empty()) return {};
  const auto found = checkpoint::list_checkpoints(files_, folder);
  if (!found) return tl::unexpected(found.error());
  const auto aside = checkpoint::list_set_aside(files_, folder);
  if (!aside) return tl::unexpected(aside.error());
  if (!found->empty() || !aside->empty()) return {};
  return fail(ErrorCode::kFailed,
              "checkpoint " + committed + " was committed, but " + folder +
                  " has no checkpoint: is its file system mounted? To start over, end the job and submit it again");
}

Status JobFolder::mark(std::uint64_t token) {
  if (Status written = checkpoint::write_token(files_, path_, token); !written) return written;
  token_ = token;
  // Make the name of the job's folder durable, because a crash that loses this folder also loses the checkpoints in it.
  return files_.sync_directory(directory_);
}

Result<std::uint64_t> JobFolder::mark_or_read(std::uint64_t token) {
  const Status marked = mark(token);
  if (marked) return token;
  if (marked.error().code == ErrorCode::kNoInput) return tl::unexpected(marked.error());
  const Result<std::uint64_t> there = checkpoint::read_token(files_, path_);
  if (!there) return tl::unexpected(marked.error());
  token_ = *there;
  return there;
}

// A commit to the folder has just succeeded: the ps tasks see the folder that the chief sees. If somebody has removed
// the folder and made another one, it has no token, so the chief would list, evaluate and keep nothing in it.
std::string JobFolder::mark_again() {
  const Result<std::uint64_t> there = checkpoint::read_token(files_, path_);
  if (there || there.error().code != ErrorCode::kNoInput) return "";
  const Status marked = mark(token_);
  return path_ + " was removed and made again while the job ran, so its earlier checkpoints are gone" +
         (marked ? "" : "; it couldn't be marked as the job's folder: " + marked.error().message);
}

Result<FolderAnswer> JobFolder::find(std::uint64_t mark, const std::string& committed, const std::string& columns) {
  FolderAnswer answer;
  answer.mark = mark;
  const auto found = checkpoint::list_checkpoints(files_, path_);
  if (!found) return tl::unexpected(found.error());
  for (const checkpoint::Found& checkpoint : *found)
    answer.newest_generation = std::max(answer.newest_generation, checkpoint.generation);
  const auto is_committed = [&committed](const checkpoint::Found& there) { return there.path == committed; };
  const auto newest = checkpoint::open_newest(files_, path_, broken_, damaged_);
  if (!newest.has_value()) return tl::unexpected(newest.error());
  if (newest->has_value()) {
    Result<std::string> unchecked = check_columns(files_, **newest, columns);
    if (!unchecked) return tl::unexpected(unchecked.error());
    answer.warning = std::move(*unchecked);
    answer.newest = restore_point(**newest);
  }
  answer.broken = std::exchange(broken_, {});
  if (!committed.empty() && std::ranges::none_of(*found, is_committed) && !checkpoint::is_set_aside(files_, committed))
    answer.broken.insert(answer.broken.begin(), committed + " was committed, but is gone");
  answer.kept = list();  // only now, because a damaged checkpoint may have been set aside
  if (answer.newest || !answer.broken.empty()) return answer;
  const auto aside = checkpoint::list_set_aside(files_, path_);
  if (!aside) return tl::unexpected(aside.error());
  for (const std::string& path : *aside) answer.broken.push_back(path + " was damaged and set aside earlier");
  for (const std::string& path : damaged_) answer.broken.push_back(path + " is damaged");
  return answer;
}

Result<FolderAnswer> JobFolder::carry_out(const OpenFolder& work) {
  if (Status mounted = check_mounted(work.directory + "/" + work.name, work.committed); !mounted)
    return tl::unexpected(mounted.error());
  if (!lock_) {
    directory_ = work.directory;
    path_ = directory_ + "/" + work.name;
    std::vector<std::string> said;
    const Status aside = checkpoint::set_strays_aside(files_, path_, said, own_files());
    for (std::string& stray : said)
      if (std::ranges::find(strays_, stray) == strays_.end()) strays_.push_back(std::move(stray));
    if (!aside) return tl::unexpected(aside.error());
    auto lock = checkpoint::lock_job_folder(files_, work.directory, work.name);
    if (!lock) return tl::unexpected(lock.error());
    lock_ = std::move(*lock);
  }
  if (work.must_be_empty) {
    const auto found = checkpoint::list_checkpoints(files_, path_);
    if (!found) return tl::unexpected(found.error());
    if (!found->empty())
      return fail(ErrorCode::kConfig, path_ +
                                          " has checkpoints, but checkpoint.restore is \"none\": set it to \"newest\" "
                                          "to continue from them, or give the job another name");
  }
  // A job without a committed checkpoint fails at once if the chief can't write to the folder. A job with a committed
  // checkpoint goes on, because it can still be restored from that checkpoint.
  Result<std::uint64_t> marked = work.mark;
  if (!work.committed.empty())
    marked = mark_or_read(work.mark);
  else if (Status done = mark(work.mark); !done)
    marked = tl::unexpected(done.error());
  if (!marked) return tl::unexpected(marked.error());
  FolderAnswer evaluations;
  if (Status read = read_evaluations(evaluations, !work.committed.empty()); !read) return tl::unexpected(read.error());
  Result<FolderAnswer> answer = find(*marked, work.committed, work.columns);
  if (!answer) return answer;
  answer->program_warning = open_program(work.program);
  answer->evaluations = std::move(evaluations.evaluations);
  strays_.push_back(answer->warning);
  strays_.push_back(evaluations.warning);
  std::string warning;
  for (const std::string& said : std::exchange(strays_, {}))
    if (!said.empty()) append_sentence(warning, said);
  answer->warning = std::move(warning);
  return answer;
}

// A folder without the file is new, or was made by an older version. If it has best.safetensors nevertheless, a worse
// checkpoint mustn't take the place of that one. A file that is there and can't be read isn't lost, so a job that
// begins in the folder waits for it or fails.
Status JobFolder::read_evaluations(FolderAnswer& answer, bool was_used) const {
  const Result<std::string> text = checkpoint::read_text(files_, path_ + "/" + kEvaluationsName, kMaxEvaluationsBytes);
  const bool is_gone = !text && text.error().code == ErrorCode::kNoInput;
  const auto unreadable = [was_used](const Error& why) { return was_used ? Status() : tl::unexpected(why); };
  if (!text && !is_gone && text.error().code != ErrorCode::kData) return unreadable(text.error());
  Result<KeptEvaluations> kept = text ? decode_evaluations(*text, path_) : tl::unexpected(text.error());
  if (kept) {
    answer.evaluations = std::move(*kept);
    return {};
  }
  const std::string path = path_ + "/" + kBestName;
  const Result<std::unique_ptr<checkpoint::InputFile>> best = files_.open(path);
  if (!best && best.error().code == ErrorCode::kNoInput && is_gone) return {};
  if (!best && best.error().code != ErrorCode::kNoInput) return unreadable(best.error());
  const std::string lost = is_gone ? path_ + "/" + kEvaluationsName + " is gone" : kept.error().message;
  const auto table = best ? checkpoint::read_header(**best, path) : tl::unexpected(best.error());
  if (best && !table && table.error().code != ErrorCode::kData) return unreadable(table.error());
  Result<KeptEvaluations> of_best = table ? evaluations_of_best(table->metadata, path_) : tl::unexpected(table.error());
  if (!of_best) {
    if (was_used) return {};
    append_sentence(answer.warning,
                    "the job compares its evaluations anew, because those of the earlier job in its "
                    "folder are lost: " +
                        lost);
    return {};
  }
  answer.evaluations = std::move(*of_best);
  if (was_used) return {};
  append_sentence(answer.warning,
                  "of the evaluations of the earlier job in its folder, the job knows only the best one, "
                  "from " +
                      path + ": " + lost);
  return {};
}

Status JobFolder::keep_evaluations(KeptEvaluations kept, const std::string& exported) const {
  // A mount point whose file system is away isn't the job's folder.
  if (Status is_ours = checkpoint::check_token(files_, path_, token_); !is_ours) return is_ours;
  if (!exported.empty()) kept.found.exported = exported;
  const std::string path = path_ + "/" + kEvaluationsName;
  const std::string beside = path + kBeside;
  (void)files_.remove_file(beside);  // a crash may have left it
  Status done = checkpoint::write_text(files_, beside, encode_evaluations(kept));
  if (done) done = files_.replace(beside, path);
  if (!done) {
    (void)files_.remove_file(beside);
    return done;
  }
  return files_.sync_directory(path_);
}

std::string JobFolder::open_program(const std::string& path) {
  if (path.empty() || program_) return "";
  Result<program::Package> package = program::Package::open(files_, path);
  const Status usable = package ? package->verify_values() : Status(tl::unexpected(package.error()));
  if (!usable) return without_program(usable.error().message);
  program_ = std::move(*package);
  return "";
}

Result<std::string> JobFolder::keep_program(const CommitAttempt& work, checkpoint::Manifest& manifest) {
  if (!program_) return std::string();
  if (program_->sidecar().model.variables != work.layout.model.variables) {
    const std::string path = program_->path();
    program_.reset();
    return without_program(path + " has other variables on the chief's host than on the workers' hosts");
  }
  const std::string attempt = checkpoint::attempt_path(path_, work.generation, work.attempt);
  const Result<checkpoint::FileEntry> entry = program::keep_program(files_, attempt, *program_);
  if (!entry) return tl::unexpected(entry.error());
  manifest.files.push_back(*entry);
  return std::string();
}

Result<FolderAnswer> JobFolder::carry_out(const FindNewest& work) {
  if (Status mounted = check_mounted(path_, work.committed); !mounted) return tl::unexpected(mounted.error());
  const Result<std::uint64_t> marked = mark_or_read(work.mark);
  return marked ? find(*marked, work.committed, work.columns) : tl::unexpected(marked.error());
}

Result<FolderAnswer> JobFolder::carry_out(const FindInit& work) {
  FolderAnswer answer;
  answer.path = work.path;
  // Follow symbolic links here, once for all shards. Otherwise a link could change between the reads of two shards.
  const Result<std::string> path = files_.follow_links(work.path);
  if (path) answer.path = *path;
  auto named = checkpoint::open_named(files_, answer.path);
  if (!named && named.error().code != ErrorCode::kNoInput) return tl::unexpected(named.error());
  if (named) {
    answer.path = named->path;
    init_lock_ = std::move(named->lock);
  }
  // If the chief can't read the file, the ps tasks may read it, or report what is wrong.
  if (!work.model.variables.empty())
    answer.ignored = checkpoint::ignored_parameters(files_, answer.path, work.init_map, work.model).value_or("");
  return answer;
}

Result<FolderAnswer> JobFolder::carry_out(const SetAside& work) {
  const Status aside = checkpoint::set_aside(files_, work.path);
  const bool stays = !aside && aside.error().code != ErrorCode::kNoInput;
  // Its manifest may be readable, so the chief would choose it again.
  if (stays) damaged_.insert(work.path);
  if (stays && aside.error().code != ErrorCode::kNoPermission) return tl::unexpected(aside.error());
  const Result<std::uint64_t> marked = mark_or_read(work.mark);
  return marked ? find(*marked, "", "") : tl::unexpected(marked.error());
}

Result<FolderAnswer> JobFolder::carry_out(const BeginAttempt& work) {
  if (Status begun = checkpoint::begin_attempt(files_, path_, work.generation, work.attempt); !begun)
    return tl::unexpected(begun.error());
  FolderAnswer answer;
  answer.path = checkpoint::attempt_path(path_, work.generation, work.attempt);
  return answer;
}

Result<FolderAnswer> JobFolder::carry_out(const CommitAttempt& work) {
  checkpoint::Manifest manifest = manifest_of(work, wall_seconds_());
  const Result<std::string> kept = keep_program(work, manifest);
  if (!kept) return tl::unexpected(kept.error());
  if (!work.columns.empty()) {
    const std::string attempt = checkpoint::attempt_path(path_, work.generation, work.attempt);
    const Result<checkpoint::FileEntry> columns = checkpoint::keep_columns(files_, attempt, work.columns);
    if (!columns) return tl::unexpected(columns.error());
    manifest.files.push_back(*columns);
  }
  const auto path = checkpoint::commit(files_, path_, std::move(manifest));
  if (!path) return tl::unexpected(path.error());
  damaged_.erase(*path);  // the commit has set the damaged one aside
  FolderAnswer answer;
  answer.path = *path;
  answer.program_warning = *kept;
  answer.warning = mark_again();
  const CheckpointSection& section = work.config.checkpoint;
  const auto retained = checkpoint::retain(files_, path_, {section.keep, section.keep_every_steps, *path, work.pinned});
  if (!retained) append_sentence(answer.warning, "older checkpoints couldn't be removed: " + retained.error().message);
  answer.kept = list();
  return answer;
}

std::optional<std::vector<KeptCheckpoint>> JobFolder::list() const {
  const auto found = checkpoint::list_checkpoints(files_, path_);
  // The mark is read after the listing. So a file system that went away during the listing is noticed.
  if (!found || !checkpoint::check_token(files_, path_, token_)) return std::nullopt;
  std::vector<KeptCheckpoint> kept;
  for (const checkpoint::Found& one : *found)
    if (damaged_.count(one.path) == 0) kept.push_back({one.generation, one.step, one.path});
  std::sort(kept.begin(), kept.end());
  return kept;
}

Result<FolderAnswer> JobFolder::carry_out(const KeepBest& work) {
  FolderAnswer answer;
  (void)files_.remove_file(path_ + "/" + kBestName + kBeside);  // a crash or an abandoned export may have left it
  if (!work.best.empty()) {
    const Status exported = export_best(work);
    if (exported)
      answer.exported = work.best;
    else
      answer.warning = exported.error().message;
  }
  if (work.evaluations)
    if (const Status kept = keep_evaluations(*work.evaluations, answer.exported); !kept && answer.warning.empty())
      answer.warning = kept.error().message;
  answer.kept = list();
  return answer;
}

Status JobFolder::export_best(const KeepBest& work) const {
  Result<checkpoint::OpenCheckpoint> open = checkpoint::open_checkpoint(files_, work.best);
  if (!open) return tl::unexpected(open.error());
  const auto sidecar = program::kept_program(files_, *open);
  if (!sidecar.has_value()) return tl::unexpected(sidecar.error());
  const bool averages = work.has_average && open->manifest.has_average;
  Result<checkpoint::Weights> weights = checkpoint::Weights::of_checkpoint(
      files_, std::move(*open), averages ? checkpoint::Weights::Slots::kAverage : checkpoint::Weights::Slots::kNone);
  if (!weights) return tl::unexpected(weights.error());
  const auto tensors = program::exported_tensors(*weights, *sidecar);
  if (!tensors) return tl::unexpected(tensors.error());
  const std::string path = path_ + "/" + kBestName;
  const std::string beside = path + kBeside;
  Status done = checkpoint::write_weights(files_, beside, *weights, *tensors, {}, work.metadata);
  if (done) done = files_.replace(beside, path);
  if (!done) {
    (void)files_.remove_file(beside);
    return done;
  }
  return files_.sync_directory(path_);
}

}  // namespace disttrain::chiefd
