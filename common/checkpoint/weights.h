// Named values as float32, in any ranges, from a checkpoint of ours or from foreign safetensors files.
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

// Keeps its files open, and a checkpoint's lock. Takes one chunk of memory for each shard file, none for other files.
// One thread at a time. `files` outlives it.
class Weights {
 public:
  struct Variable {
    std::string name;
    std::vector<std::uint64_t> shape;
    DType dtype = DType::kF32;  // as stored
    std::uint64_t elements = 0;
  };

  // `path`: the folder of a checkpoint or of a job (its newest); a safetensors file; a folder with model.safetensors or
  // model.safetensors.index.json. kNoInput: none of these is there; kData: it is damaged; kConfig: it has a newer
  // format.
  static Result<Weights> open(Files& files, const std::string& path);

  enum class Slots { kNone, kToo };
  // Parameters and state of a checkpoint; with kToo also the optimizer's slots, as "slot0/NAME".
  static Result<Weights> of_checkpoint(Files& files, OpenCheckpoint checkpoint, Slots slots = Slots::kNone);

  // The actual path: for a job's folder, that of the checkpoint in it.
  const std::string& path() const { return path_; }
  // In the model's order, or in the order of the bytes.
  const std::vector<Variable>& variables() const { return variables_; }
  // Index into variables().
  std::optional<std::size_t> find(const std::string& name) const;

  // Fills `out` with the variable's elements from `begin` on, all within it. Verifies bytes of a checkpoint. kConfig:
  // the dtype isn't F32, F16 or BF16; kData: the file is damaged.
  Status read(std::size_t variable, std::uint64_t begin, std::span<float> out);

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
  // `wanted`: names of tensors that must be in the file, others are ignored; null: all.
  Status add_file(Files& files, const std::string& path, const std::set<std::string>* wanted);
  static Result<Weights> of_index(Files& files, const std::string& folder);
  void add(Variable variable, std::vector<Piece> pieces);
  Status read_piece(DType dtype, const Piece& piece, std::uint64_t skip, std::span<float> out);

  std::string path_;
  std::vector<Variable> variables_;
  std::vector<std::vector<Piece>> pieces_;  // of each variable; ascending, without gaps
  std::map<std::string, std::size_t> by_name_;
  std::unique_ptr<OpenCheckpoint> checkpoint_;  // verified files refer to its manifest's entries
  std::vector<std::variant<PlainFile, VerifiedFile>> files_;
};

}  // namespace disttrain::checkpoint
