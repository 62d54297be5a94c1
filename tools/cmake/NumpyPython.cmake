# DISTTRAIN_NUMPY_PYTHON: a Python with NumPy and safetensors, for tests. It is in the venv of safetensors that tools/setup
# makes. "" if it isn't installed.
set(_cache "$ENV{XDG_CACHE_HOME}")
if(NOT _cache)
  set(_cache "$ENV{HOME}/.cache")
endif()
file(GLOB _found ${_cache}/disttrain/safetensors-*/bin/python3)
list(POP_BACK _found DISTTRAIN_NUMPY_PYTHON)
