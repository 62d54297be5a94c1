// A package of step programs: a file that disttrain.export or disttrain.export_jax wrote. It holds the programs, the
// sidecar and the initial values. This class reads all but the programs themselves.
//
//   Result<Package> package = Package::open(files, "/models/step.pt2");
//   package->sidecar().model;
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/safetensors.h"
#include "common/layout.h"
#include "common/program/package_file.h"
#include "common/program/sidecar.h"
#include "common/result.h"

namespace disttrain::program {

// One thread at a time. `files` must outlive it.
class Package {
 public:
  // Opens a package and checks that its parts fit together. Reads no values yet. Fails with kNoInput if the file
  // doesn't exist, with kData if it is damaged or no package of ours, and with kConfig if it is too new.
  static Result<Package> open(checkpoint::Files& files, const std::string& path);

  const std::string& path() const { return file_.path(); }
  const Sidecar& sidecar() const { return sidecar_; }
  // The member disttrain.json, which sidecar() was read from.
  const std::string& sidecar_text() const { return sidecar_text_; }
  PackageFile& file() { return file_; }

  // The initial values of ModelSpec::variables, in the order of a layout of this model. Fails with kData if a value is
  // NaN or infinite, or if the file is damaged.
  Result<std::vector<float>> initial_values(const Layout& layout);

  // Compares the checksum of all values. Fails with kData if they are damaged.
  Status verify_values() { return file_.verify(*values_); }

  // A variable's entry in the table of values. `variable` is an index into Sidecar::variables, here and below.
  const checkpoint::Tensor& tensor(std::size_t variable) const { return tensors_[variable]; }

  // The bytes of a variable as a program takes them. Compares no checksum.
  Result<std::vector<std::byte>> read(std::size_t variable);

 private:
  Package(PackageFile file, Sidecar sidecar, std::string sidecar_text)
      : file_(std::move(file)), sidecar_(std::move(sidecar)), sidecar_text_(std::move(sidecar_text)) {}
  Status match_tensors();

  PackageFile file_;
  Sidecar sidecar_;
  std::string sidecar_text_;
  const Member* values_ = nullptr;           // in file_: the safetensors file
  std::vector<checkpoint::Tensor> tensors_;  // in the order of Sidecar::variables
  std::uint64_t data_begin_ = 0;             // of the tensors, in the safetensors file
};

}  // namespace disttrain::program
