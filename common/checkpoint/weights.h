// Reads ranges of named variables as float or double, from a checkpoint or from safetensors files of other programs.
//
//   Result<Weights> weights = Weights::open(files, "/models/mlp");
//   weights->read(*weights->find("fc1.weight"), 0, values);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/verified_file.h"

namespace disttrain::checkpoint {

// Keeps its files open, and keeps a checkpoint locked so that retention doesn't remove it. For each shard file of a
// checkpoint it takes the memory of one chunk. Use it from one thread at a time. `files` must outlive it.
class Weights {
 public:
  struct Variable {
    std::string name;
    std::vector<std::uint64_t> shape;
    DType dtype = DType::kF32;  // as stored
    std::uint64_t elements = 0;
  };

  // `path` is the folder of a checkpoint, the folder of a job (opens the newest checkpoint in it), a safetensors file,
  // or a folder with model.safetensors or model.safetensors.index.json. Fails with kNoInput if none of these is there,
  // with kData if the file is damaged, and with kConfig if its format is too new for this version. Calls `is_cancelled`
  // while it reads the headers of safetensors files (read_header()); fails with kTemporary if it returned true.
  static Result<Weights> open(Files& files, const std::string& path, const IsCancelled& is_cancelled = {});

  enum class Slots { kNone, kToo, kAverage };
  // Opens the parameters and state variables of a checkpoint, and the frozen variables of its step program if it has
  // one (kProgramName). Slots::kToo adds the optimizer's slots as variables "slot0/NAME", "slot1/NAME" and so on.
  // Slots::kAverage opens the moving averages in place of the parameters, under the same names; fails with kConfig if
  // the checkpoint has none.
  static Result<Weights> of_checkpoint(Files& files, OpenCheckpoint checkpoint, Slots slots = Slots::kNone);

  // The path of what was opened. If open() got a job's folder, this is the path of the checkpoint in it.
  const std::string& path() const { return path_; }
  // A checkpoint has its variables in the model's order. A safetensors file has them in the order of their bytes.
  const std::vector<Variable>& variables() const { return variables_; }
  // Index into variables().
  std::optional<std::size_t> find(const std::string& name) const;

  // Fills `out` with the elements of the variable from `begin` on, rounded to float32 (numbers.h). The range must lie
  // within the variable. Verifies the bytes if they are from a checkpoint. Fails with kConfig if the dtype isn't
  // convertible, and with kData if the file is damaged.
  Status read(std::size_t variable, std::uint64_t begin, std::span<float> out);
  // The same for doubles. F64 values aren't rounded, and all others as above.
  Status read(std::size_t variable, std::uint64_t begin, std::span<double> out);
  // The same for the elements as they are stored. `out` has a whole number of elements.
  Status read_stored(std::size_t variable, std::uint64_t begin, MutableBytes out);

 private:
  struct PlainFile {
    std::unique_ptr<InputFile> file;
    Status read(std::uint64_t offset, MutableBytes out) { return file->read_at(offset, out); }
  };
  // A contiguous run of a variable's elements.
  struct Piece {
    std::uint64_t begin = 0;  // within the variable
    std::uint64_t elements = 0;
    std::size_t file = 0;
    std::uint64_t offset = 0;  // bytes, within the file
  };

  explicit Weights(std::string path) : path_(std::move(path)) {}
  // `wanted` names the tensors to read, all of which must be in the file. A null `wanted` means all tensors of the
  // file.
  Status add_file(Files& files, const std::string& path, const std::set<std::string>* wanted,
                  const IsCancelled& is_cancelled);
  static Result<Weights> of_index(Files& files, const std::string& folder, const IsCancelled& is_cancelled);
  void add(Variable variable, std::vector<Piece> pieces);
  // Adds the frozen variables that a checkpoint keeps.
  Status add_program(Files& files);

  std::string path_;
  std::vector<Variable> variables_;
  std::vector<std::vector<Piece>> pieces_;  // the pieces of each variable, ascending and without gaps
  std::map<std::string, std::size_t> by_name_;
  // on the heap, so that pointers to its manifest stay valid when this object moves
  std::unique_ptr<OpenCheckpoint> checkpoint_;
  std::vector<std::variant<PlainFile, VerifiedFile>> files_;
};

}  // namespace disttrain::checkpoint
