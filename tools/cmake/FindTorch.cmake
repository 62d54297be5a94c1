# libtorch for the CPU: the target Torch::cpu links only libtorch_cpu and libc10. libtorch.so and libtorch_cuda can't be
# loaded from the small install that tools/setup makes.
#
# DISTTRAIN_TORCH: the folder "torch" of a Python site-packages; by default the one that tools/setup installs.

set(DISTTRAIN_TORCH "" CACHE PATH "libtorch: the folder torch of a site-packages; empty: what tools/setup installed")

set(_torch "${DISTTRAIN_TORCH}")
if(NOT _torch)
  set(_torch_cache "$ENV{XDG_CACHE_HOME}")
  if(NOT _torch_cache)
    set(_torch_cache "$ENV{HOME}/.cache")
  endif()
  set(_torch_pattern "${_torch_cache}/disttrain/torch-2.11.0/lib/python3*/site-packages/torch")
  file(GLOB _torch_found LIST_DIRECTORIES true "${_torch_pattern}")
  list(POP_FRONT _torch_found _torch)
  if(NOT _torch)
    set(_torch "${_torch_pattern}")
  endif()
endif()

find_library(Torch_cpu_LIBRARY torch_cpu PATHS ${_torch}/lib NO_DEFAULT_PATH NO_CACHE)
find_library(Torch_c10_LIBRARY c10 PATHS ${_torch}/lib NO_DEFAULT_PATH NO_CACHE)
if(NOT Torch_cpu_LIBRARY OR NOT Torch_c10_LIBRARY)
  message(FATAL_ERROR "libtorch not found: expected libtorch_cpu.so and libc10.so in ${_torch}/lib. "
                      "Run tools/setup, or set DISTTRAIN_TORCH to the folder torch of a site-packages that has them.")
endif()

if(NOT TARGET Torch::cpu)
  # libtorch_cpu finds its own libraries by its RPATH, so the linker must not look for them. A program finds libtorch by
  # CMake's RPATH in the build folder, and by its INSTALL_RPATH when it is installed.
  add_library(Torch::cpu INTERFACE IMPORTED)
  target_include_directories(Torch::cpu SYSTEM INTERFACE ${_torch}/include)
  target_link_libraries(Torch::cpu INTERFACE ${Torch_cpu_LIBRARY} ${Torch_c10_LIBRARY})
  target_link_options(Torch::cpu INTERFACE LINKER:--allow-shlib-undefined)
endif()

# The parts of libtorch to install on a host without Python: libraries and their licences.
cmake_path(GET _torch PARENT_PATH _site_packages)
set(Torch_RUNTIME_LIBRARIES ${Torch_cpu_LIBRARY} ${Torch_c10_LIBRARY})
foreach(_name cudart cupti)  # libtorch_cpu doesn't start without them; on a CPU it calls neither
  file(GLOB _found ${_site_packages}/nvidia/cu*/lib/lib${_name}.so.*)
  list(APPEND Torch_RUNTIME_LIBRARIES ${_found})
endforeach()
file(GLOB Torch_LICENSES ${_site_packages}/torch-*.dist-info/licenses/* ${_site_packages}/torch-*.dist-info/LICENSE
     ${_site_packages}/torch-*.dist-info/NOTICE)
file(GLOB Torch_CUDA_LICENSES ${_site_packages}/nvidia_cuda_runtime-*.dist-info/licenses/License.txt)
