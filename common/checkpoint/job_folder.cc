// The chief's mark shows that each ps sees the same folder before the ps makes a shard. So if each host has a folder of
// its own, this is found at the job's start instead of at the first restore. The mark needn't be secret. Another proof
// was tried and dropped: a ps accepted a folder if it found the lock that the chief holds there. But a ps on another
// host accepted the folder of a different cluster, because it found a chief's lock there too.
#include "common/checkpoint/job_folder.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/checkpoint/checksum.h"
#include "common/checkpoint/shard_file.h"
#include "common/mutant.h"

namespace disttrain::checkpoint {
namespace {

constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{1} << 30;
constexpr std::size_t kStepDigits = 20;
constexpr const char* kAttempt = ".tmp-";
constexpr const char* kGoing = ".del-";
constexpr const char* kBroken = ".broken-";
constexpr const char* kToken = ".token";
constexpr const char* kTokenBeside = ".token-new";
constexpr const char* kLock = ".lock";
constexpr const char* kStray = ".stray-";
constexpr std::uint32_t kMostStrays = 1000;  // of one name

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string name_in(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// True if the folder has a folder in it. An attempt leaves none.
bool holds_folder(Files& files, const std::string& path) {
  const Result<std::vector<std::string>> names = files.list(path);
  if (!names) return false;
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    return files.kind_of(path + "/" + name).value_or(EntryKind::kNone) == EntryKind::kFolder;
  });
}

// Accepts only names that attempt_path() makes.
bool is_attempt(const std::string& name) {
  if (!name.starts_with(kAttempt)) return false;
  const std::string numbers = name.substr(std::string_view(kAttempt).size());
  const std::size_t middle = numbers.find('-');
  if (middle == std::string::npos) return false;
  const auto generation = number_of(numbers.substr(0, middle));
  const auto attempt = number_of(numbers.substr(middle + 1));
  return generation && attempt && numbers == std::to_string(*generation) + "-" + std::to_string(*attempt);
}

// Accepts only names that remove_checkpoint() makes.
bool is_going(const std::string& name) {
  return name.starts_with(kGoing) && parse_checkpoint_name(name.substr(std::string_view(kGoing).size()));
}

// The kind that our entry with this name has. None: the name isn't ours.
std::optional<EntryKind> kind_of_ours(const std::string& name, const std::vector<std::string>& more_files) {
  if (name == kCurvesName) return EntryKind::kFolder;
  const bool is_file = name == kLock || name == kToken || name == kTokenBeside;
  if (is_file || std::ranges::find(more_files, name) != more_files.end()) return EntryKind::kFile;
  return is_attempt(name) || is_going(name) || parse_checkpoint_name(name) ? std::optional(EntryKind::kFolder)
                                                                           : std::nullopt;
}

const char* text_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return "a file";
    case EntryKind::kFolder:
      return "a folder";
    case EntryKind::kLink:
      return "a symbolic link";
    default:
      return "neither a file nor a folder";
  }
}

// The kind of a link's target, or of the entry itself if it isn't a link. kLink: a link without a target.
Result<EntryKind> kind_behind(Files& files, const std::string& path) {
  const Result<EntryKind> kind = files.kind_of(path);
  if (!kind || *kind != EntryKind::kLink) return kind;
  const Result<std::string> target = files.follow_links(path);
  if (target) return files.kind_of(*target);
  if (target.error().code == ErrorCode::kNoInput) return EntryKind::kLink;
  return tl::unexpected(target.error());
}

// Renames an entry that isn't ours. `new_name` is set once it is renamed.
Status set_stray_aside(Files& files, const std::string& job_folder, const std::string& name, std::string& new_name) {
  const std::string begin = kStray + name.substr(name.starts_with(".") ? 1 : 0);
  for (std::uint32_t number = 1; number <= kMostStrays; ++number) {
    const std::string aside = begin + (number == 1 ? "" : "-" + std::to_string(number));
    const Result<EntryKind> kind = files.kind_of(job_folder + "/" + aside);
    if (!kind) return tl::unexpected(kind.error());
    if (*kind != EntryKind::kNone) continue;
    if (Status renamed = files.rename(job_folder + "/" + name, job_folder + "/" + aside); !renamed) return renamed;
    new_name = aside;
    return {};
  }
  return fail(ErrorCode::kConfig,
              job_folder + " has " + std::to_string(kMostStrays) + " entries " + begin + "-... already: remove them");
}

// `new_name` is set once it is renamed, also if the folder can't be synced then.
Status set_aside_as_broken(Files& files, const std::string& path, std::string& new_name) {
  const std::string folder = parent_of(path);
  const Result<std::vector<std::string>> there = list_set_aside(files, folder);
  if (!there) return tl::unexpected(there.error());
  // The name may be taken: a job that starts again from step 0 reuses the names of its checkpoints.
  std::string aside = folder + "/" + kBroken + name_in(path);
  for (int n = 2; std::find(there->begin(), there->end(), aside) != there->end(); ++n)
    aside = folder + "/" + kBroken + name_in(path) + "-" + std::to_string(n);
  if (Status renamed = files.rename(path, aside); !renamed) return renamed;
  new_name = name_in(aside);
  return files.sync_directory(folder);
}

Status clear_leftovers(Files& files, const std::string& job_folder) {
  const Result<std::vector<std::string>> names = files.list(job_folder);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!is_attempt(name) && !is_going(name)) continue;
    const std::string path = job_folder + "/" + name;
    const Result<EntryKind> kind = files.kind_of(path);
    if (!kind) return tl::unexpected(kind.error());
    // The renaming of a checkpoint that is being removed may not be synced (see remove_checkpoint).
    if (is_going(name))
      if (Status synced = files.sync_directory(job_folder); !synced) return synced;
    const Status removed = *kind == EntryKind::kFolder ? remove_all(files, path) : Status();
    if (!removed && !holds_folder(files, path)) return removed;
    if (removed && *kind == EntryKind::kFolder) continue;
    std::string new_name;
    if (Status aside = set_stray_aside(files, job_folder, name, new_name); !aside) return aside;
  }
  return {};
}

// Returns the index that readers of sharded safetensors use. It maps each variable to its file. Returns none if a
// variable is spread over several files, because the index can name only one file per variable.
std::optional<std::string> index_of(const Manifest& manifest) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  std::uint64_t bytes = 0;
  for (const VariableEntry& variable : manifest.variables) {
    if (variable.slices.size() != 1) return std::nullopt;
    // An assignment by key would compare the name with all others, which takes quadratic time.
    map.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(variable.name,
                                                                  manifest.files[variable.slices.front().shard].name);
    bytes += variable.slices.front().words * sizeof(float);
  }
  return nlohmann::ordered_json{{"metadata", {{"total_size", bytes}}}, {"weight_map", map}}.dump(1) + "\n";
}

FileEntry entry_of_text(const std::string& name, const std::string& text) {
  FileEntry entry;
  entry.name = name;
  entry.bytes = text.size();
  const Bytes bytes = std::as_bytes(std::span(text));
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes)
    entry.chunks.push_back(checksum_of(bytes.subspan(at, std::min<std::size_t>(kChunkBytes, bytes.size() - at))));
  entry.checksum = checksum_of(entry.chunks);
  return entry;
}

// False: the checkpoint is damaged or incomplete. An error: that can't be found out now, for example because a disk
// fails to read.
Result<bool> is_intact(Files& files, const std::string& path) {
  const Result<OpenCheckpoint> open = open_checkpoint(files, path);
  const Status verified = open ? verify_files(files, path, open->manifest) : tl::unexpected(open.error());
  if (verified) return true;
  const ErrorCode code = verified.error().code;
  if (code == ErrorCode::kData || code == ErrorCode::kNoInput) return false;
  return tl::unexpected(verified.error());
}

bool has_its_sizes(Files& files, const std::string& path) {
  const Result<OpenCheckpoint> open = open_checkpoint(files, path);
  if (!open) return false;
  return std::all_of(open->manifest.files.begin(), open->manifest.files.end(), [&](const FileEntry& entry) {
    const auto file = files.open(path + "/" + entry.name);
    return file && (*file)->size() == entry.bytes;
  });
}

// Returns false while a process reads the checkpoint.
Result<bool> remove_checkpoint(Files& files, const std::string& path) {
  const std::string going = parent_of(path) + "/" + kGoing + name_in(path);
  // A checkpoint without a manifest has no readers.
  const Result<std::unique_ptr<InputFile>> manifest = files.open(path + "/" + kManifestName);
  if (manifest) {
    const Result<bool> locked = (*manifest)->try_lock(LockKind::kExclusive);
    if (!locked.has_value()) return tl::unexpected(locked.error());
    if (!*locked) return false;
  }
  if (Status renamed = files.rename(path, going); !renamed) return tl::unexpected(renamed.error());
  // Sync the new name before removing any file. Otherwise a crash could bring back an incomplete checkpoint under the
  // old name.
  if (Status synced = files.sync_directory(parent_of(path)); !synced) return tl::unexpected(synced.error());
  if (Status removed = remove_all(files, going); !removed) return tl::unexpected(removed.error());
  return true;
}

}  // namespace

std::string checkpoint_name(Generation generation, Step step) {
  std::string digits = std::to_string(step.value);
  digits.insert(0, kStepDigits - digits.size(), '0');
  return "gen-" + std::to_string(generation.value) + "-step-" + digits;
}

std::optional<Found> parse_checkpoint_name(const std::string& name) {
  const std::string begin = "gen-";
  const std::string middle = "-step-";
  const std::size_t at = name.find(middle);
  if (!name.starts_with(begin) || at == std::string::npos) return std::nullopt;
  const auto generation = number_of(name.substr(begin.size(), at - begin.size()));
  const auto step = number_of(name.substr(at + middle.size()));
  if (!generation || !step) return std::nullopt;
  Found found{Generation(*generation), Step(*step), ""};
  if (checkpoint_name(found.generation, found.step) != name) return std::nullopt;
  return found;
}

Result<std::unique_ptr<InputFile>> lock_job_folder(Files& files, const std::string& directory, const std::string& job) {
  const std::string folder = directory + "/" + job;
  const std::string path = folder + "/" + kLock;
  for (const std::string& one : {directory, folder}) {
    const Result<EntryKind> kind = kind_behind(files, one);
    if (!kind) return tl::unexpected(kind.error());
    if (*kind != EntryKind::kNone && *kind != EntryKind::kFolder)
      return fail(ErrorCode::kConfig, "checkpoint.directory: " + one + " is " + text_of(*kind) +
                                          ", but a folder is needed under this name: move it away, or set " +
                                          (one == directory ? "checkpoint.directory to a folder"
                                                            : "another checkpoint.directory or job.name"));
  }
  if (Status made = files.make_directory(folder); !made) {
    if (made.error().code != ErrorCode::kNoInput) return tl::unexpected(made.error());
    return fail(ErrorCode::kNoInput,
                "checkpoint.directory " + directory +
                    " doesn't exist on this host: make it with mkdir, mount it, or correct the key");
  }
  Result<std::unique_ptr<InputFile>> lock = files.open(path);
  if (!lock && lock.error().code == ErrorCode::kNoInput) {
    // Nobody else may open the file, because whoever can open it can hold its lock.
    if (const auto made = files.create_private(path); !made) return tl::unexpected(made.error());
    lock = files.open(path);
  }
  if (!lock) return lock;
  const Result<bool> locked = (*lock)->try_lock(LockKind::kExclusive);
  if (!locked.has_value()) return tl::unexpected(locked.error());
  if (!*locked)
    return fail(ErrorCode::kConfig, folder +
                                        " is in use by another running job: give this job another job.name or "
                                        "checkpoint.directory");
  // Older versions let everybody open the file. If it is another user's or on a read-only file system, its lock still
  // works, and its permissions stay.
  (void)(*lock)->make_private();
  return lock;
}

Status set_strays_aside(Files& files, const std::string& job_folder, std::vector<std::string>& said,
                        const std::vector<std::string>& more_files) {
  const Result<std::vector<std::string>> names = files.list(job_folder);
  if (!names && names.error().code == ErrorCode::kNoInput) return {};
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    const std::optional<EntryKind> ours = kind_of_ours(name, more_files);
    if (!ours) continue;
    // A file or a checkpoint may lie elsewhere, behind a link. An attempt's folder may not, because it will be removed.
    const std::string path = job_folder + "/" + name;
    const bool is_removed = is_attempt(name) || is_going(name);
    const Result<EntryKind> kind = is_removed ? files.kind_of(path) : kind_behind(files, path);
    if (!kind && name == kCurvesName) {
      said.push_back(path + " can't be used, so the job has no curves: " + kind.error().message);
      continue;
    }
    if (!kind) return tl::unexpected(kind.error());
    if (*kind == *ours || *kind == EntryKind::kNone) continue;
    const std::string what = path + " is " + text_of(*kind) + "; expected " + text_of(*ours);
    // It counts as a damaged checkpoint. Otherwise the job would begin anew, as if the folder had never had one.
    std::string new_name;
    const Status aside = parse_checkpoint_name(name) ? set_aside_as_broken(files, path, new_name)
                                                     : set_stray_aside(files, job_folder, name, new_name);
    if (!new_name.empty()) said.push_back(what + ": it was renamed to " + new_name);
    if (aside) continue;
    if (!new_name.empty()) return aside;
    if (name == kCurvesName) {  // the job goes on without curves
      said.push_back(what + ", so the job has no curves, and it can't be set aside: " + aside.error().message);
      continue;
    }
    // A folder that can't be changed stays as it is, so there is no use in trying again.
    return fail(aside.error().code == ErrorCode::kFailed ? ErrorCode::kFailed : ErrorCode::kConfig,
                what + ", and it can't be set aside: " + aside.error().message);
  }
  return {};
}

Status write_token(Files& files, const std::string& job_folder, std::uint64_t token) {
  const std::string path = job_folder + "/" + kToken;
  const std::string beside = job_folder + "/" + kTokenBeside;
  if (Status left = files.remove_file(beside); !left && left.error().code != ErrorCode::kNoInput) return left;
  if (Status written = write_text(files, beside, std::to_string(token)); !written) return written;
  return files.replace(beside, path);
}

Status check_token(Files& files, const std::string& job_folder, std::uint64_t token) {
  const Result<std::string> found = read_text(files, job_folder + "/" + kToken, 32);
  if (found && *found == std::to_string(token)) return {};
  if (!found && found.error().code == ErrorCode::kFailed) return tl::unexpected(found.error());
  return fail(ErrorCode::kConfig,
              "checkpoint.directory: " + job_folder + " isn't the folder that the chief sees under this name (" +
                  (found ? "its " + std::string(kToken) + " holds another number" : found.error().message) +
                  "): put it on a file system that the chief and every ps share");
}

Result<std::uint64_t> read_token(Files& files, const std::string& job_folder) {
  const std::string path = job_folder + "/" + kToken;
  const Result<std::string> found = read_text(files, path, 32);
  if (!found) return tl::unexpected(found.error());
  std::uint64_t token = 0;
  const auto [end, error] = std::from_chars(found->data(), found->data() + found->size(), token);
  if (error != std::errc() || end != found->data() + found->size())
    return fail(ErrorCode::kData, path + " holds no number");
  return token;
}

Result<std::vector<Found>> list_checkpoints(Files& files, const std::string& job_folder) {
  const Result<std::vector<std::string>> names = files.list(job_folder);
  if (!names && names.error().code == ErrorCode::kNoInput) return std::vector<Found>();
  if (!names) return tl::unexpected(names.error());
  std::vector<Found> found;
  for (const std::string& name : *names) {
    std::optional<Found> checkpoint = parse_checkpoint_name(name);
    if (!checkpoint) continue;
    checkpoint->path = job_folder + "/" + name;
    found.push_back(std::move(*checkpoint));
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    if (DISTTRAIN_MUTANT(kNewestByStep)) return a.step > b.step;
    return std::tie(a.generation, a.step) > std::tie(b.generation, b.step);
  });
  return found;
}

Result<OpenCheckpoint> open_checkpoint(Files& files, const std::string& path) {
  const std::string manifest_path = path + "/" + kManifestName;
  Result<std::unique_ptr<InputFile>> lock = files.open(manifest_path);
  if (!lock) return tl::unexpected(lock.error());
  const Result<bool> locked = (*lock)->try_lock(LockKind::kShared);
  if (!locked.has_value()) return tl::unexpected(locked.error());
  if (!*locked) return fail(ErrorCode::kNoInput, path + " is being removed");
  const Result<std::string> text = read_text(files, manifest_path, kMaxManifestBytes);
  if (!text) return tl::unexpected(text.error());
  Result<Manifest> manifest = parse_manifest(*text, manifest_path);
  if (!manifest) return tl::unexpected(manifest.error());
  return OpenCheckpoint{path, std::move(*manifest), std::move(*lock)};
}

Result<OpenCheckpoint> open_named(Files& files, const std::string& path) {
  const Result<std::vector<Found>> found = list_checkpoints(files, path);
  if (!found) return tl::unexpected(found.error());
  for (const Found& newest : *found) {
    Result<OpenCheckpoint> open = open_checkpoint(files, newest.path);
    // Retention has removed this checkpoint since the listing. Go on with the next checkpoint in the list, because
    // retention always leaves an intact one.
    if (!open && open.error().code == ErrorCode::kNoInput && !files.list(newest.path)) continue;
    return open;
  }
  Result<OpenCheckpoint> open = open_checkpoint(files, path);
  if (open || open.error().code != ErrorCode::kNoInput) return open;
  const std::string instead = holds_folders_of_jobs(files, path);
  return fail(ErrorCode::kNoInput,
              "no checkpoint in " + path + ": " +
                  (instead.empty() ? "expected the folder of one checkpoint, with its " + std::string(kManifestName) +
                                         ", or a job's folder of checkpoints"
                                   : instead));
}

std::string holds_folders_of_jobs(Files& files, const std::string& path) {
  Result<std::vector<std::string>> names = files.list(path);
  if (!names) return "";
  if (names->size() > kMostJobFolders) names->resize(kMostJobFolders);
  std::size_t jobs = 0;
  std::string newest;
  std::int64_t newest_created = 0;
  for (const std::string& name : *names) {
    const Result<std::vector<Found>> found = list_checkpoints(files, path + "/" + name);
    if (!found || found->empty()) continue;
    ++jobs;
    const Result<OpenCheckpoint> open = open_checkpoint(files, found->front().path);
    const std::int64_t created = open ? open->manifest.created : 0;
    if (!newest.empty() && created <= newest_created) continue;
    newest = found->front().path;
    newest_created = created;
  }
  if (jobs == 0) return "";
  return (jobs == 1 ? "it holds the folder of a job" : "it holds the folders of " + std::to_string(jobs) + " jobs") +
         "; name a job's folder or one checkpoint, such as the newest, " + newest;
}

Result<std::optional<OpenCheckpoint>> open_newest(Files& files, const std::string& job_folder,
                                                  std::vector<std::string>& broken, std::set<std::string>& damaged) {
  const Result<std::vector<Found>> found = list_checkpoints(files, job_folder);
  if (!found) return tl::unexpected(found.error());
  for (const Found& checkpoint : *found) {
    if (damaged.count(checkpoint.path) != 0) continue;
    Result<OpenCheckpoint> open = open_checkpoint(files, checkpoint.path);
    if (open) return std::optional(std::move(*open));
    if (open.error().code != ErrorCode::kData && open.error().code != ErrorCode::kNoInput)
      return tl::unexpected(open.error());
    const Status aside = set_aside(files, checkpoint.path);
    // Then the others may be gone, too, and none of them is damaged.
    if (!aside && aside.error().code == ErrorCode::kNoInput)
      return fail(ErrorCode::kFailed, checkpoint.path + " went away while the chief read " + job_folder +
                                          ": is its file system still mounted?");
    broken.push_back(open.error().message);
    if (!aside) damaged.insert(checkpoint.path);
  }
  return std::optional<OpenCheckpoint>();
}

Status set_aside(Files& files, const std::string& path) {
  std::string new_name;
  return set_aside_as_broken(files, path, new_name);
}

Result<std::vector<std::string>> list_set_aside(Files& files, const std::string& job_folder) {
  const Result<std::vector<std::string>> names = files.list(job_folder);
  if (!names && names.error().code == ErrorCode::kNoInput) return std::vector<std::string>();
  if (!names) return tl::unexpected(names.error());
  std::vector<std::string> paths;
  for (const std::string& name : *names)
    if (name.starts_with(kBroken)) paths.push_back(job_folder + "/" + name);
  return paths;
}

bool is_set_aside(Files& files, const std::string& path) {
  const auto names = files.list(parent_of(path));
  return names && std::ranges::find(*names, kBroken + name_in(path)) != names->end();
}

std::string attempt_path(const std::string& job_folder, Generation generation, std::uint64_t attempt) {
  return job_folder + "/" + kAttempt + std::to_string(generation.value) + "-" + std::to_string(attempt);
}

Status begin_attempt(Files& files, const std::string& job_folder, Generation generation, std::uint64_t attempt) {
  if (Status cleared = clear_leftovers(files, job_folder); !cleared) return cleared;
  return files.make_directory(attempt_path(job_folder, generation, attempt));
}

Result<std::string> commit(Files& files, const std::string& job_folder, Manifest manifest) {
  const std::string attempt = attempt_path(job_folder, manifest.generation, manifest.attempt);
  const std::string path = job_folder + "/" + checkpoint_name(manifest.generation, manifest.step);
  const Result<EntryKind> there = files.kind_of(path);
  if (!there) return tl::unexpected(there.error());
  // It may be a folder that has lost its manifest, or no folder at all. The rename would fail because of either.
  if (*there != EntryKind::kNone) {
    const bool may_be_folder = *there == EntryKind::kFolder || *there == EntryKind::kLink;
    const Result<bool> intact = may_be_folder ? is_intact(files, path) : Result<bool>(false);
    if (!intact.has_value()) return tl::unexpected(intact.error());
    if (*intact) {
      // The commit that renamed it may have ended before its name was durable: the sync failed, or the process died.
      if (Status synced = files.sync_directory(job_folder); !synced) return tl::unexpected(synced.error());
      if (Status removed = remove_all(files, attempt); !removed) return tl::unexpected(removed.error());
      return path;
    }
    if (Status aside = set_aside(files, path); !aside) return tl::unexpected(aside.error());
  }
  Status done;
  if (const std::optional<std::string> index = index_of(manifest)) {
    manifest.files.push_back(entry_of_text(kIndexName, *index));
    done = write_text(files, attempt + "/" + kIndexName, *index);
  }
  if (done) done = write_text(files, attempt + "/" + kManifestName, to_json(manifest));
  if (done) done = files.sync_directory(attempt);
  if (done) done = files.rename(attempt, path);
  if (done && !DISTTRAIN_MUTANT(kCommitNotSynced)) done = files.sync_directory(job_folder);
  if (!done) return tl::unexpected(done.error());
  return path;
}

Result<std::vector<std::string>> retain(Files& files, const std::string& job_folder, const Retention& retention) {
  const Result<std::vector<Found>> found = list_checkpoints(files, job_folder);
  if (!found) return tl::unexpected(found.error());
  std::vector<bool> keep(found->size(), false);
  // Returns true if checkpoint i is the first at or after a multiple of keep_every_steps. `found` has the newest first,
  // so i + 1 is the checkpoint before i. The oldest checkpoint is compared with step 0.
  const auto passes_a_multiple = [&](std::size_t i) {
    const std::uint64_t every = retention.keep_every_steps;
    if (every == 0) return false;
    const std::uint64_t before = i + 1 < found->size() ? (*found)[i + 1].step.value : 0;
    return (*found)[i].step.value / every > before / every;
  };
  const auto is_pinned = [&](std::size_t i) {
    return std::find(retention.pinned.begin(), retention.pinned.end(), (*found)[i].path) != retention.pinned.end();
  };
  for (std::size_t i = 0; i < found->size(); ++i) keep[i] = i < retention.keep || passes_a_multiple(i) || is_pinned(i);
  if (DISTTRAIN_MUTANT(kLastOneRemoved)) keep[0] = false;
  std::vector<std::string> removed;
  if (std::find(keep.begin(), keep.end(), false) == keep.end()) return removed;
  // At least one of the checkpoints that stay must be intact. If none of them is, look through the others, and keep the
  // newest one that is intact.
  std::size_t good = 0;
  const auto is_good = [&](const std::string& path) {
    return path == retention.just_committed ? has_its_sizes(files, path) : is_intact(files, path).value_or(false);
  };
  while (good < found->size() && !(keep[good] && is_good((*found)[good].path))) ++good;
  for (std::size_t i = 0; good == found->size() && i < found->size(); ++i)
    if (!keep[i] && is_intact(files, (*found)[i].path).value_or(false)) {
      good = i;
      keep[i] = true;
    }
  if (good == found->size()) return removed;  // none is intact: keep them all, since they may still be of use
  for (std::size_t i = found->size(); i-- > 0;) {
    if (keep[i]) continue;
    const Result<bool> gone = remove_checkpoint(files, (*found)[i].path);
    if (!gone.has_value()) return tl::unexpected(gone.error());
    if (*gone) removed.push_back((*found)[i].path);
  }
  return removed;
}

}  // namespace disttrain::checkpoint
