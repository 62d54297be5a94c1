#include "common/config/reader/reader.h"

#include <algorithm>
#include <filesystem>

#include "common/bounds.h"
#include "common/config/columns.h"
#include "common/config/reader/job_text.h"
#include "common/config/reader/keys.h"
#include "common/config/reader/text_file.h"
#include "common/config/reader/toml_bounds.h"

namespace disttrain::config {

namespace {

Result<std::string> read_text(const std::string& path) {
  return read_text_file(path, kMaxTomlBytes, "a TOML file");
}

Result<TomlValue> parse(const std::string& text, const std::string& name) {
  auto tree = parse_toml(std::make_shared<const TomlSource>(TomlSource{name, text}));
  if (tree) return std::move(*tree);
  return tl::unexpected<Error>(to_error({Problem{tree.error().at, "", "", "", "", tree.error().what, false}}));
}

// Refuses control characters, which no valid setting needs. A NUL would end a path early, and the others could reach
// logs and terminals.
void refuse_control_characters(const TomlValue& value, const std::string& path, Reading& reading) {
  const auto refuse_in = [&reading](const std::string& text, const TomlPosition& at, const std::string& key) {
    std::size_t i = 0;
    while (i < text.size() && control_character_at(text, i) == 0) ++i;
    if (i < text.size())
      reading.refuse(at, key,
                     key + " has a control character at byte " + std::to_string(i + 1) + "; expected text without any");
  };
  if (const auto* text = value.as<std::string>()) {
    refuse_in(*text, value.at, path);
  } else if (const auto* items = value.as<TomlValue::Array>()) {
    for (std::size_t i = 0; i < items->size(); ++i)
      refuse_control_characters((*items)[i], path + "[" + std::to_string(i) + "]", reading);
  } else if (const auto* entries = value.as<TomlValue::Table>()) {
    for (const TomlEntry& entry : *entries) {
      const std::string key = path.empty() ? entry.key : path + "." + entry.key;
      refuse_in(entry.key, entry.key_at, "the key " + quoted(entry.key));
      refuse_control_characters(entry.value, key, reading);
    }
  }
}

tl::unexpected<Error> all_problems(Reading reading) {
  return tl::unexpected<Error>(to_error(std::move(reading.problems), reading.left_out));
}

// A job is submitted as TOML text. The chief refuses a text that exceeds its bounds, so check them here first.
Result<JobFile> job_file(JobConfig config, const TomlValue& tree) {
  JobFile file{std::move(config), to_toml_document(*tree.as<TomlValue::Table>())};
  if (file.toml.size() > kMaxJobTomlBytes)
    return fail(ErrorCode::kConfig, "the job has " + std::to_string(file.toml.size()) +
                                        " bytes of TOML when it is submitted; expected at most " +
                                        std::to_string(kMaxJobTomlBytes));
  if (const auto excess = find_excess(file.toml))
    return fail(ErrorCode::kConfig, "the job can't be submitted: " + excess->what);
  return file;
}

Result<ClusterConfig> cluster_of(const TomlValue& tree) {
  ClusterConfig cluster;
  Reading reading;
  reading.given[""] = tree.at;
  const Keys keys = cluster_keys(cluster);
  read_table(keys, tree, "", reading);
  suggest_other_sections(names_of(keys), reading);
  refuse_control_characters(tree, "", reading);
  check_cluster_rules(cluster, reading);
  if (!reading.problems.empty()) return all_problems(std::move(reading));
  cluster.hash = hash_of(cluster);
  return cluster;
}

// Whether the file sets this key of [model] to a bad value, or misspells the key.
bool is_model_key_wrong(const Reading& reading, const std::string& key) {
  return reading.is_refused("model." + key) ||
         std::any_of(reading.problems.begin(), reading.problems.end(), [&key](const Problem& problem) {
           return problem.is_unknown && problem.key.starts_with("model.") && problem.nearest == key;
         });
}

Result<JobConfig> job_of(const TomlValue& tree) {
  JobConfig job;
  Reading first;  // finds the keys on which other defaults and keys depend; the second reading reports the problems
  read_table(job_keys(job), tree, "", first);
  set_dependent_defaults(job);
  // A job whose trainer or program is named in a wrong way has that problem alone, and doesn't lack a builtin model.
  // The first reading refuses trainer = [] also beside another model, where the second reading accepts it.
  const bool has_other = !job.model.builtin.empty() || !job.model.program.empty();
  if (!has_other && is_model_key_wrong(first, "trainer")) job.model.trainer = {"refused"};
  if (is_model_key_wrong(first, "program")) job.model.program = "refused";
  const Keys keys = job_keys(job);
  Reading reading;
  reading.given[""] = tree.at;
  read_table(keys, tree, "", reading);
  suggest_other_sections(names_of(keys), reading);
  refuse_control_characters(tree, "", reading);
  check_job_rules(job, reading);
  if (!reading.problems.empty()) return all_problems(std::move(reading));
  if (!job.evaluate.files.empty() && job.evaluate.path.empty()) job.evaluate.path = job.data.path;
  job.model.has_soft_labels = job.data.mix > 0.0 && job.model.loss == Loss::kSoftmaxCrossEntropy;
  job.model.has_weights = std::any_of(job.data.columns.begin(), job.data.columns.end(), is_weight);
  return job;
}

// Applies each of `sets` in order. Relative paths in a set start at the current folder.
Status apply_job_sets(TomlValue& tree, const std::vector<std::string>& sets) {
  for (const std::string& set : sets) {
    if (Status applied = apply_set(tree, set); !applied) return applied;
    make_paths_absolute(tree, std::filesystem::current_path());  // only paths from this set are still relative
  }
  return {};
}

}  // namespace

Result<ClusterConfig> parse_cluster(const std::string& text, const std::string& name,
                                    const std::vector<std::string>& sets) {
  auto tree = parse(text, name);
  if (!tree) return tl::unexpected<Error>(std::move(tree.error()));
  for (const std::string& set : sets)
    if (Status applied = apply_set(*tree, set); !applied) return tl::unexpected<Error>(std::move(applied.error()));
  return cluster_of(*tree);
}

Result<ClusterConfig> read_cluster(const std::string& path) {
  auto text = read_text(path);
  if (!text) return tl::unexpected<Error>(std::move(text.error()));
  return parse_cluster(*text, path);
}

Result<JobConfig> read_job(const std::string& toml, const std::string& name, const std::vector<std::string>& sets) {
  auto tree = parse(toml, name);
  if (!tree) return tl::unexpected<Error>(std::move(tree.error()));
  if (Status applied = apply_job_sets(*tree, sets); !applied) return tl::unexpected<Error>(std::move(applied.error()));
  return job_of(*tree);
}

Result<JobFile> read_job_file(const std::string& path, const std::vector<std::string>& sets,
                              const std::vector<std::string>& defaults) {
  auto text = read_text(path);
  if (!text) return tl::unexpected<Error>(std::move(text.error()));
  auto tree = parse(*text, path);
  if (!tree) return tl::unexpected<Error>(std::move(tree.error()));
  make_paths_absolute(*tree, std::filesystem::absolute(path).parent_path());
  if (Status applied = apply_job_sets(*tree, sets); !applied) return tl::unexpected<Error>(std::move(applied.error()));
  for (const std::string& set : defaults)
    if (!has_key_of(*tree, set))
      if (Status applied = apply_set(*tree, set); !applied) return tl::unexpected<Error>(std::move(applied.error()));
  auto config = job_of(*tree);
  if (!config) return tl::unexpected<Error>(std::move(config.error()));
  return job_file(std::move(*config), *tree);
}

Status check_ranges(const JobConfig& job) {
  JobConfig copy = job;
  TomlValue tree;
  tree.value = write_table(job_keys(copy));
  JobConfig read;
  read.model = job.model;  // other keys depend on it
  Reading reading;
  read_table(job_keys(read), tree, "", reading);
  refuse_control_characters(tree, "", reading);
  // check_job_rules() refuses each key in `given` that the job doesn't use. `tree` has such keys, so `given` must not
  // have the keys of `tree`. But `given` needs [train], because otherwise the rules of [train] aren't checked.
  reading.given = {{"train", {}}};
  check_job_rules(job, reading);
  if (!reading.problems.empty()) return all_problems(std::move(reading));
  return {};
}

Status check_job_fits(const JobConfig& job, const ClusterConfig& cluster) {
  const std::size_t workers = cluster.workers.size();
  const auto refuse = [&job](const std::string& key, std::size_t found, const std::string& has) {
    return fail(ErrorCode::kConfig, "job " + job.job.name + ": " + key + " is " + std::to_string(found) +
                                        ", but the cluster has " + has + "; lower it or add tasks");
  };
  const std::string has = std::to_string(workers) + (workers == 1 ? " worker" : " workers");
  if (job.train.aggregate > workers) return refuse("train.aggregate", job.train.aggregate, has);
  if (job.job.min_workers > workers) return refuse("job.min_workers", job.job.min_workers, has);
  return {};
}

bool is_cluster_key(const std::string& set) {
  ClusterConfig cluster;
  const std::string section = set.substr(0, set.find_first_of(".="));
  for (const Key& key : cluster_keys(cluster))
    if (key.name == section) return true;
  return false;
}

Result<FileKind> kind_of_file(const std::string& path) {
  auto text = read_text(path);
  if (!text) return tl::unexpected<Error>(std::move(text.error()));
  auto tree = parse(*text, path);
  if (!tree) return tl::unexpected<Error>(std::move(tree.error()));
  ClusterConfig cluster;
  JobConfig job;
  std::size_t of_cluster = 0;
  std::size_t of_job = 0;
  for (const TomlEntry& entry : *tree->as<TomlValue::Table>()) {
    for (const Key& key : cluster_keys(cluster)) of_cluster += key.name == entry.key ? 1 : 0;
    for (const Key& key : job_keys(job)) of_job += key.name == entry.key ? 1 : 0;
  }
  if (of_cluster != of_job) return of_cluster > of_job ? FileKind::kCluster : FileKind::kJob;
  return fail(ErrorCode::kConfig,
              path +
                  " has neither the sections of a cluster file ([cluster], [chief], [[ps]], [[worker]], ...) nor those "
                  "of a job file ([job], [model], [data], [train], ...)");
}

std::string cluster_toml(const ClusterConfig& cluster) {
  ClusterConfig copy = cluster;  // a copy, because the rows need variables that they can write to
  return to_toml_document(write_table(cluster_keys(copy)));
}

std::uint64_t hash_of(const ClusterConfig& cluster) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a, 64 bits
  ClusterConfig file = cluster;
  file.workers.resize(file.workers.size() - file.unlisted);
  for (unsigned char c : cluster_toml(file)) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

std::string job_toml(const JobConfig& job) {
  JobConfig copy = job;
  return to_toml_document(write_table(job_keys(copy)));
}

}  // namespace disttrain::config
