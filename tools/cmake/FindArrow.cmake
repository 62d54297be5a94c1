# Apache Arrow with Parquet, out of the wheel pyarrow: the target Arrow::parquet. Debian 12 has no package of it.
#
# DISTTRAIN_ARROW: the folder "pyarrow" of a Python site-packages; by default the one that tools/setup installs.

set(DISTTRAIN_ARROW "" CACHE PATH "Arrow: the folder pyarrow of a site-packages; empty: what tools/setup installed")

set(_arrow "${DISTTRAIN_ARROW}")
if(NOT _arrow)
  set(_arrow_cache "$ENV{XDG_CACHE_HOME}")
  if(NOT _arrow_cache)
    set(_arrow_cache "$ENV{HOME}/.cache")
  endif()
  set(_arrow_pattern "${_arrow_cache}/disttrain/arrow-26.0.1/lib/python3*/site-packages/pyarrow")
  file(GLOB _arrow_found LIST_DIRECTORIES true "${_arrow_pattern}")
  list(POP_FRONT _arrow_found _arrow)
  if(NOT _arrow)
    set(_arrow "${_arrow_pattern}")
  endif()
endif()

file(GLOB Arrow_RUNTIME_LIBRARIES ${_arrow}/libarrow.so.[0-9]* ${_arrow}/libparquet.so.[0-9]*)
list(LENGTH Arrow_RUNTIME_LIBRARIES _arrow_count)
if(NOT _arrow_count EQUAL 2)
  message(FATAL_ERROR "Arrow not found: expected libarrow.so and libparquet.so in ${_arrow}. Run tools/setup, or set "
                      "DISTTRAIN_ARROW to the folder pyarrow of a site-packages that has them.")
endif()

if(NOT TARGET Arrow::parquet)
  add_library(Arrow::parquet INTERFACE IMPORTED)
  target_include_directories(Arrow::parquet SYSTEM INTERFACE ${_arrow}/include)
  target_link_libraries(Arrow::parquet INTERFACE ${Arrow_RUNTIME_LIBRARIES})
endif()
cmake_path(GET _arrow PARENT_PATH _arrow_site_packages)
file(GLOB Arrow_LICENSES ${_arrow_site_packages}/pyarrow-*.dist-info/licenses/*)
