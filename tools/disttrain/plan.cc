// disttrain plan JOB: shows what the chief would decide for a job, without starting anything. It prints the number of
// shards and the reason for it, the ps of each shard, the memory of each task, and the bytes that a step sends. With
// --bandwidth it also simulates the job, to predict how long a step takes (scale/cluster_run.h).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "chiefd/core/memory_fit.h"
#include "chiefd/core/placement.h"
#include "common/checkpoint/disk_files.h"
#include "common/checkpoint/warm_start.h"
#include "common/config/columns.h"
#include "common/config/reader/reader.h"
#include "common/counted.h"
#include "common/daemon/clock.h"
#include "common/daemon/host.h"
#include "common/daemon/startup.h"
#include "common/daemon/threads.h"
#include "common/memory_plan.h"
#include "common/update/update_rule.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/model_of_job.h"
#include "tools/disttrain/scale/link_options.h"
#include "tools/disttrain/scale/report_text.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/units.h"
#include "tools/disttrain/up/runtime_folder.h"
#include "tools/disttrain/verbs.h"

namespace disttrain::cli {

namespace {

struct Tasks {
  std::string described;  // where the list of tasks comes from, in words
  std::vector<chiefd::Offer> offers;
  std::map<TaskId, std::uint64_t> memory;  // bytes that each ps may use, as far as this host can know
  std::uint32_t workers = 0;
  bool takes_unlisted = false;
  std::uint32_t credits = 0;
};

struct ShardPlan {
  TaskId ps;
  std::uint64_t buckets = 0;
  std::uint64_t parameter_bytes = 0;
  ShardMemory memory;
};

struct Plan {
  JobConfig job;
  Tasks tasks;
  Layout layout;
  std::string why;  // why there are this many shards
  std::vector<ShardPlan> shards;
  std::uint64_t parameters = 0;
  std::uint64_t parameter_bytes = 0;
  // why this host couldn't check checkpoint.init_from, or which of its variables are ignored; "" = it is all right
  std::string init_from;
  std::uint32_t places = 0;        // the number of workers for which the ps tasks reserve memory
  std::string too_many_workers{};  // why there can't be more; "" = memory suffices for all workers
  bool fits = true;                // true: the chief would take the job
};

// Returns the number of threads of a ps. shards = 0 means one thread per core that psd may use. If the cluster file
// doesn't name the ps's cores, the function returns the number of this host's cores. That is right only if the ps runs
// on this host.
std::uint32_t threads_of(const PsConfig& ps) {
  if (ps.shards != 0) return ps.shards;
  return ps.cores.empty() ? daemon::cores_given() : static_cast<std::uint32_t>(ps.cores.size());
}

// An address that this host can't resolve counts as the address of another host.
bool is_own_address(const std::string& address) {
  return daemon::is_own_address(address).value_or(false);
}

Tasks tasks_of(const ClusterConfig& cluster, const std::string& described) {
  Tasks tasks{described,
              {},
              {},
              static_cast<std::uint32_t>(cluster.workers.size()),
              cluster.allow_unlisted_workers,
              cluster.transport.credits};
  for (std::uint32_t i = 0; i < cluster.ps.size(); ++i) {
    tasks.offers.push_back({TaskId{Role::kPs, i}, threads_of(cluster.ps[i])});
    if (cluster.ps[i].memory_bytes != 0)
      tasks.memory[TaskId{Role::kPs, i}] = cluster.ps[i].memory_bytes;
    else if (is_own_address(cluster.ps[i].address))
      tasks.memory[TaskId{Role::kPs, i}] = daemon::memory_given();
    if (cluster.ps[i].shards == 0 && cluster.ps[i].cores.empty() && !is_own_address(cluster.ps[i].address))
      tasks.described += "; ps/" + std::to_string(i) + " is assumed to have as many cores as this host";
  }
  return tasks;
}

Result<Tasks> find_tasks(const PlanOptions& options) {
  const bool is_made_up = options.ps || options.workers;
  if (is_made_up && !options.cluster.empty())
    return fail(ErrorCode::kUsage, "--ps and --workers can't be combined with a cluster file: " + options.cluster +
                                       " already lists the tasks");
  const auto file = is_made_up ? fail(ErrorCode::kNoInput, "") : find_cluster(options.cluster);
  if (file) {
    const auto cluster = config::read_cluster(*file);
    if (!cluster) return tl::unexpected<Error>(cluster.error());
    return tasks_of(*cluster, "the cluster of " + *file);
  }
  if (file.error().code != ErrorCode::kNoInput) return tl::unexpected<Error>(file.error());
  ClusterConfig cluster;
  cluster.ps.resize(options.ps.value_or(1));
  cluster.workers.resize(options.workers.value_or(2));
  for (PsConfig& ps : cluster.ps) ps.address = "127.0.0.1:1";  // `up` starts its tasks on this host
  return tasks_of(cluster, "a cluster as `disttrain up` would make it: " + std::to_string(cluster.ps.size()) + " ps, " +
                               counted(cluster.workers.size(), "worker"));
}

std::string why_so_many(const JobConfig& job, const Layout& layout, std::uint64_t bytes, std::uint32_t workers,
                        std::uint32_t offered) {
  if (job.job.shards != 0) return "job.shards asks for " + std::to_string(job.job.shards);
  const std::uint32_t wanted = chiefd::auto_shards(bytes, workers, offered);
  std::string why = "auto: one per MiB of parameters, and more if there are more than 8 workers, but at most the " +
                    std::to_string(offered) + " that the ps tasks offer";
  if (layout.shards < wanted) why += ", but the model can't be cut into more pieces";
  return why;
}

// Checks whether the parameters in checkpoint.init_from fit the model. Only the ps tasks read this file, so it is no
// error if this host doesn't have it.
Status check_init_from(Plan& plan) {
  const CheckpointSection& section = plan.job.checkpoint;
  if (section.init_from.empty()) return {};
  checkpoint::DiskFiles files;
  const Status fits = checkpoint::check_parameters(files, section.init_from, section.init_map, plan.layout.model);
  if (fits) {
    plan.init_from =
        checkpoint::ignored_parameters(files, section.init_from, section.init_map, plan.layout.model).value_or("");
    return {};
  }
  if (fits.error().code != ErrorCode::kNoInput)
    return fail(fits.error().code, "checkpoint.init_from: " + fits.error().message);
  plan.init_from = "checkpoint.init_from wasn't checked, because its file isn't on this host; the ps tasks need it: " +
                   fits.error().message;
  return {};
}

// Returns why this user can't use the folder on this host. "": it can.
std::string problem_with(const std::string& folder) {
  std::error_code ignored;
  if (::access(folder.c_str(), F_OK) != 0)
    return errno == ENOENT ? " doesn't exist" : " can't be read: " + std::string(std::strerror(errno));
  if (!std::filesystem::is_directory(folder, ignored)) return " isn't a folder";
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
    return " can't be written by this user: " + std::string(std::strerror(errno));
  return "";
}

// Returns a note if checkpoint.directory can't be used on this host. This is no error, because only the chief and the
// ps tasks use the directory.
std::string note_on_directory(const JobConfig& job) {
  const std::string& directory = job.checkpoint.directory;
  if (directory.empty()) return "";
  const std::string of_job = directory + "/" + job.job.name;
  const std::string& used = ::access(of_job.c_str(), F_OK) == 0 ? of_job : directory;
  const std::string problem = problem_with(used);
  if (problem.empty()) return "";
  return "checkpoint.directory can't be used on this host: " + used + problem +
         "; on the hosts of the chief and of every ps, this path must be a folder that they can write to";
}

// Counts for how many workers the ps tasks reserve memory, by the same rule as GenerationPlan::make_places() in
// chiefd/core/job/facts/generation.h.
void count_places(Plan& plan, const std::vector<TaskId>& owners) {
  const Tasks& tasks = plan.tasks;
  const chiefd::MemoryFit fit(plan.layout, owners, plan.job, tasks.credits, tasks.memory);
  const std::uint32_t wanted = chiefd::wanted_places(tasks.workers, tasks.workers, tasks.takes_unlisted);
  plan.places = std::max(fit.most_workers(wanted), tasks.workers);
  plan.fits = fit.why_not(tasks.workers).empty();
  plan.too_many_workers =
      plan.fits && plan.places == wanted ? "" : fit.why_not(plan.fits ? plan.places + 1 : plan.places);
}

Result<Plan> make_plan(const PlanOptions& options) {
  auto file = config::read_job_file(options.job, options.sets);
  if (!file) return tl::unexpected<Error>(std::move(file.error()));
  auto tasks = find_tasks(options);
  if (!tasks) return tl::unexpected<Error>(std::move(tasks.error()));
  Plan plan;
  plan.job = std::move(file->config);
  plan.tasks = std::move(*tasks);
  ClusterConfig counted;
  counted.workers.resize(plan.tasks.workers);
  if (Status fits = config::check_job_fits(plan.job, counted); !fits)
    return tl::unexpected<Error>(std::move(fits.error()));
  const auto known = model_of_job(plan.job);
  if (!known.has_value()) return tl::unexpected<Error>(known.error());
  if (!*known && takes_vocabulary(plan.job))
    return fail(
        ErrorCode::kConfig,
        options.job +
            ": the number of tokens of the model follows from the tokenizer, so its memory and placement can't be "
            "planned before; set model.transformer.vocabulary");
  if (!*known && plan.job.model.trainer.empty())
    return fail(
        ErrorCode::kConfig,
        options.job +
            ": the sizes of the model follow from the words of the data files, so its memory and placement can't "
            "be planned before; give each category of data.columns a vocabulary or a hash, or set "
            "model.wide_deep.categories");
  if (!*known)
    return fail(ErrorCode::kConfig,
                options.job +
                    ": the model of a job with model.trainer is known only when its trainer runs, so its memory "
                    "and placement can't be planned before; `disttrain status` shows them later");
  const std::optional<ModelSpec>& model = *known;
  std::uint32_t offered = 0;
  for (const chiefd::Offer& offer : plan.tasks.offers) offered += offer.threads;
  auto layout =
      chiefd::place_on(*model, chiefd::placement_of(plan.job), plan.job.job.shards, plan.tasks.workers, offered);
  if (!layout) return tl::unexpected<Error>(std::move(layout.error()));
  plan.layout = std::move(*layout);
  if (Status fits = check_init_from(plan); !fits) return tl::unexpected<Error>(fits.error());
  plan.parameters = element_count(*model);
  plan.parameter_bytes = word_count(*model) * sizeof(float);
  plan.why = why_so_many(plan.job, plan.layout, plan.parameter_bytes, plan.tasks.workers, offered);
  const auto slots = static_cast<std::uint32_t>(update::slots_of(plan.job));
  const std::vector<TaskId> owners = chiefd::assign_owners(plan.tasks.offers, plan.layout.shards);
  count_places(plan, owners);
  for (std::uint32_t s = 0; s < plan.layout.shards; ++s) {
    const ShardId shard(s);
    plan.shards.push_back({owners[s], buckets_of(plan.layout, shard).size(),
                           shard_words(plan.layout, shard) * sizeof(float),
                           bytes_per_shard(plan.layout, shard, plan.job, slots, plan.places, plan.tasks.credits)});
  }
  return plan;
}

std::uint64_t ps_memory(const Plan& plan, TaskId ps) {
  std::uint64_t bytes = 0;
  for (const ShardPlan& shard : plan.shards)
    if (shard.ps == ps) bytes += shard.memory.total();
  return bytes;
}

// Returns how many bytes a worker needs for parameters and gradients (both twice with pipeline = 1), for the sum of the
// gradients with accumulate > 1, and for the batches that it reads ahead. The worker needs more memory for its engine
// and the data set.
std::uint64_t worker_memory(const Plan& plan) {
  const std::uint64_t buffers = (plan.job.train.pipeline != 0 ? 4 : 2) + (plan.job.train.accumulate > 1 ? 1 : 0);
  const std::uint64_t batch = plan.job.train.step_records() * record_bytes(plan.layout.model);
  const std::uint64_t evaluation =
      plan.job.evaluate.files.empty() ? 0 : evaluation_batch_records(plan.job) * record_bytes(plan.layout.model);
  return buffers * plan.parameter_bytes + batches_ahead(plan.job.data, batch) * batch + evaluation;
}

// Says how much memory a worker needs for the records of [data.columns]. worker_memory() doesn't count it.
std::string note_on_records(const DataSection& data) {
  const std::string most =
      data.memory == 0 ? "a quarter of its free memory" : bytes_text(data.memory) + " (data.memory)";
  return "for the training records each worker needs up to " + most +
         ", and as much for those of [evaluate]; of larger data sets it keeps only some records in memory";
}

std::vector<std::string> notes_of(const Plan& plan) {
  std::vector<std::string> notes;
  if (!plan.job.data.columns.empty()) notes.push_back(note_on_records(plan.job.data));
  if (plan.job.train.clip.kind == ClipKind::kGlobalNorm && plan.job.train.mode != Mode::kSync)
    notes.push_back(
        "with clip.kind = global_norm a worker sends no gradient before it has computed and clipped all of them");
  if (chiefd::placement_of(plan.job) != plan.job.job.placement)
    notes.push_back("the update rule needs each variable whole, so job.placement = \"balanced\" deals whole variables");
  if (!plan.job.checkpoint.directory.empty())
    notes.push_back(
        "COPY is memory for a copy of parameters and slots, so that training goes on while a checkpoint is written");
  if (const std::string note = note_on_directory(plan.job); !note.empty()) notes.push_back(note);
  if (!plan.init_from.empty()) notes.push_back(plan.init_from);
  if (!plan.fits) notes.push_back("the chief would refuse the job: " + plan.too_many_workers);
  if (plan.fits && !plan.too_many_workers.empty())
    notes.push_back("at most " + counted(plan.places, "worker") + " can take part: " + plan.too_many_workers);
  return notes;
}

Json to_json(const Plan& plan) {
  Json json = {{"job", plan.job.job.name},
               {"cluster", plan.tasks.described},
               {"shards", plan.layout.shards},
               {"why", plan.why},
               {"parameters", plan.parameters},
               {"parameter_bytes", plan.parameter_bytes},
               {"buckets", plan.layout.buckets.size()},
               {"bytes_per_step", 2 * plan.parameter_bytes},
               {"worker_bytes", worker_memory(plan)},
               {"places", plan.places},
               {"notes", notes_of(plan)}};
  for (const ShardPlan& shard : plan.shards)
    json["placement"].push_back({{"shard", json.value("placement", Json::array()).size()},
                                 {"task", to_string(shard.ps)},
                                 {"buckets", shard.buckets},
                                 {"parameter_bytes", shard.parameter_bytes},
                                 {"slot_bytes", shard.memory.slots},
                                 {"receive_bytes", shard.memory.receive},
                                 {"send_bytes", shard.memory.send},
                                 {"copy_bytes", shard.memory.copy},
                                 {"fixed_bytes", shard.memory.fixed},
                                 {"total_bytes", shard.memory.total()}});
  for (const chiefd::Offer& offer : plan.tasks.offers)
    json["ps"].push_back(
        {{"task", to_string(offer.ps)}, {"threads", offer.threads}, {"bytes", ps_memory(plan, offer.ps)}});
  return json;
}

void print(const Plan& plan) {
  std::cout << "job " << plan.job.job.name << " on " << plan.tasks.described << '\n'
            << with_commas(static_cast<double>(plan.parameters)) << ' ' << noun_for(plan.parameters, "parameter")
            << " (" << bytes_text(plan.parameter_bytes) << ") in " << plan.layout.buckets.size()
            << (plan.layout.buckets.size() == 1 ? " bucket on " : " buckets on ") << plan.layout.shards
            << (plan.layout.shards == 1 ? " shard" : " shards") << " (" << plan.why << ")\n\n";
  const bool has_copies = !plan.job.checkpoint.directory.empty();
  std::vector<std::string> heads = {"SHARD", "PS", "BUCKETS", "PARAMETERS", "SLOTS", "RECEIVE", "SEND"};
  if (has_copies) heads.push_back("COPY");
  heads.insert(heads.end(), {"FIXED", "MEMORY"});
  Table table(heads);
  for (std::size_t s = 0; s < plan.shards.size(); ++s) {
    const ShardPlan& shard = plan.shards[s];
    const ShardMemory& memory = shard.memory;
    std::vector<std::string> row = {std::to_string(s),
                                    to_string(shard.ps),
                                    std::to_string(shard.buckets),
                                    bytes_text(shard.parameter_bytes),
                                    bytes_text(memory.slots),
                                    bytes_text(memory.receive),
                                    bytes_text(memory.send)};
    if (has_copies) row.push_back(bytes_text(memory.copy));
    row.insert(row.end(), {bytes_text(memory.fixed), bytes_text(memory.total())});
    table.add(row);
  }
  std::cout << table.text() << '\n';
  for (const chiefd::Offer& offer : plan.tasks.offers)
    std::cout << to_string(offer.ps) << " needs " << bytes_text(ps_memory(plan, offer.ps)) << " of memory, for up to "
              << plan.places << (plan.places == 1 ? " worker\n" : " workers\n");
  std::cout << (plan.tasks.workers == 1 ? "the worker" : "each of " + counted(plan.tasks.workers, "worker"))
            << " needs " << bytes_text(worker_memory(plan)) << " besides its data set and its engine\n"
            << "in each step a worker sends " << bytes_text(plan.parameter_bytes) << " and receives as much\n";
  for (const std::string& note : notes_of(plan)) std::cout << "note: " << note << '\n';
}

constexpr std::uint64_t kPredictedSteps = 10;

struct Prediction {
  scale::RunOptions options;
  scale::RunReport report;
};

// Predicts the job's steps on the plan's tasks, each on a host of its own, with the links that the options describe.
Result<Prediction> predict(const Plan& plan, const PlanOptions& options) {
  Prediction prediction;
  scale::RunOptions& run = prediction.options;
  run.workers = plan.tasks.workers;
  run.ps_threads.clear();
  for (const chiefd::Offer& offer : plan.tasks.offers) run.ps_threads.push_back(offer.threads);
  run.job = plan.job;
  run.model = plan.layout.model;
  run.speed = link_speed(options.bandwidth, options.latency);
  if (!options.compute.empty()) run.compute = parse_time(options.compute, kMostCompute).value();
  run.steps = kPredictedSteps;
  run.clock = +[] { return daemon::thread_time(); };
  auto report = scale::run(run);
  if (!report) return tl::unexpected<Error>(std::move(report.error()));
  prediction.report = std::move(*report);
  return prediction;
}

void print(const Prediction& prediction, const PlanOptions& options) {
  std::cout << "\nwith each task on a host of its own, " << options.bandwidth << "bit/s and " << options.latency
            << ":\n";
  print_step(std::cout, prediction.options, prediction.report);
  if (options.compute.empty())
    std::cout
        << "note: computing isn't counted; give its time for one step by --compute, as `disttrain bench` measures "
           "it with one worker\n";
}

}  // namespace

int plan(const PlanOptions& options) {
  const auto made = make_plan(options);
  if (!made) return daemon::report("disttrain plan", made.error());
  std::optional<Prediction> prediction;
  if (!options.bandwidth.empty()) {
    auto predicted = predict(*made, options);
    if (!predicted) return daemon::report("disttrain plan", predicted.error());
    prediction = std::move(*predicted);
  }
  if (options.json) {
    Json json = to_json(*made);
    if (prediction) json["prediction"] = to_json(prediction->options, prediction->report);
    std::cout << line_of(json) << '\n';
    return 0;
  }
  print(*made);
  if (prediction) print(*prediction, options);
  return 0;
}

}  // namespace disttrain::cli
