// Runs the programs of a .pt2 package, which AOTInductor has compiled to shared libraries.
#pragma once

#include <cstdint>
#include <memory>

#include "common/program/package.h"
#include "common/result.h"
#include "engine/computation.h"

namespace disttrain::workerd {

// As make_program(), for a package of Kind::kPt2.
Result<std::unique_ptr<Computation>> make_pt2(std::shared_ptr<program::Package> package, std::uint32_t threads);

}  // namespace disttrain::workerd
