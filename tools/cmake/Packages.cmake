# CPack's settings: a .deb for each component of install(). tools/package runs CPack; packaging/ has scripts and texts.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME disttrain)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The disttrain developers <disttrain@users.noreply.github.com>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL disttrain-common chiefd psd workerd disttrain disttrain-libtorch)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # xz makes packages a third smaller, but takes ten times as long
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)  # programs are stripped; NAME-dbgsym turns addresses of a crash into lines
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)

# disttrain_package(NAME SUMMARY text TEXT text [DEPENDS package...] [COPYRIGHT file] [SCRIPTS prefix] [PURGE command])
# Adds packaging/PREFIX.{postinst,prerm,postrm,conffiles,lintian-overrides} to the package. SCRIPTS gives the prefix, by
# default the package's name. In these files @daemon@ becomes the package's name, @purge@ the command, and @more_units@
# the patterns of further units that the package has.
function(disttrain_package name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SUMMARY;TEXT;COPYRIGHT;SCRIPTS;PURGE" "DEPENDS")
  if(NOT arg_SCRIPTS)
    set(arg_SCRIPTS ${name})
  endif()
  set(daemon ${name})
  set(purge "${arg_PURGE}")
  set(more_units "")
  if(name STREQUAL workerd)
    set(more_units " evaluator.service 'evaluator@*.service'")
  endif()
  string(TOUPPER ${name} component)
  list(JOIN arg_DEPENDS ", " depends)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${component}_DESCRIPTION "${arg_SUMMARY}\n${arg_TEXT}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)

  set(control "")
  foreach(file postinst prerm postrm conffiles)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPTS}.${file})
      configure_file(${arg_SCRIPTS}.${file} control/${name}/${file} @ONLY)
      if(file STREQUAL conffiles)
        file(CHMOD ${CMAKE_CURRENT_BINARY_DIR}/control/${name}/${file} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
      endif()
      list(APPEND control ${CMAKE_CURRENT_BINARY_DIR}/control/${name}/${file})
    endif()
  endforeach()
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA "${control}" PARENT_SCOPE)

  set(docs ${CMAKE_INSTALL_DATADIR}/doc/${name})
  if(NOT arg_COPYRIGHT)
    set(arg_COPYRIGHT copyright)
  endif()
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${arg_COPYRIGHT} DESTINATION ${docs} RENAME copyright COMPONENT ${name})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/changelog.gz DESTINATION ${docs} COMPONENT ${name})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPTS}.lintian-overrides)
    configure_file(${arg_SCRIPTS}.lintian-overrides overrides/${name} @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/overrides/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
            COMPONENT ${name})
  endif()
endfunction()

# The daemons depend on procps for /bin/kill, which the units use to reload.
set(same_version "(= ${PROJECT_VERSION})")
set(about "disttrain trains one neural network on many machines: parameter servers
(psd) hold the parameters, workers (workerd) compute gradients, a chief
(chiefd) keeps the cluster together.
")
disttrain_package(disttrain-common
  SUMMARY "distributed training: configuration, user and manual pages"
  TEXT "${about}
This package has what every host of a cluster needs: the file
/etc/disttrain/cluster.toml, the user of the daemons, the unit
disttrain.target, the manual pages, and what Prometheus and Grafana need."
  DEPENDS "systemd | systemd-standalone-sysusers" "systemd | systemd-standalone-tmpfiles")
set(CPACK_DEBIAN_DISTTRAIN-COMMON_PACKAGE_ARCHITECTURE all)
disttrain_package(chiefd
  SUMMARY "distributed training: the chief of a cluster"
  TEXT "${about}
This package has the chief, for one host of a cluster."
  SCRIPTS daemon
  PURGE "  rm -rf /var/lib/disttrain/chief\n  rmdir /var/lib/disttrain 2>/dev/null || true"
  DEPENDS "disttrain-common ${same_version}" procps)
disttrain_package(psd
  SUMMARY "distributed training: parameter server"
  TEXT "${about}
This package has the parameter server."
  SCRIPTS daemon
  DEPENDS "disttrain-common ${same_version}" procps)
disttrain_package(workerd
  SUMMARY "distributed training: worker"
  TEXT "${about}
This package has the worker, which computes gradients with libtorch on CPUs."
  SCRIPTS daemon
  DEPENDS "disttrain-common ${same_version}" procps "disttrain-libtorch ${same_version}")
disttrain_package(disttrain
  SUMMARY "distributed training: the command line"
  TEXT "${about}
This package has the command line, which submits and watches jobs."
  DEPENDS "disttrain-common ${same_version}")
disttrain_package(disttrain-libtorch
  SUMMARY "distributed training: libtorch and Arrow for workers"
  TEXT "${about}
This package has the libraries of PyTorch that the worker's engine needs, and
those of Apache Arrow that read Parquet files, in a folder that only the worker
uses."
  COPYRIGHT copyright.libtorch)
if(TARGET wheel)
  list(APPEND CPACK_COMPONENTS_ALL python3-disttrain)
  disttrain_package(python3-disttrain
    SUMMARY "distributed training: Python package"
    TEXT "${about}
This package has the Python package disttrain, with which a training loop of
PyTorch, JAX or NumPy runs on the workers."
    DEPENDS "python3 (>= 3.10)" python3-numpy)
  set(CPACK_DEBIAN_PYTHON3-DISTTRAIN_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_PYTHON3-DISTTRAIN_PACKAGE_SECTION python)
endif()
# dpkg-shlibdeps finds no package with libtorch or Arrow, so it must read the libraries that were linked.
foreach(library IN LISTS Torch_RUNTIME_LIBRARIES Arrow_RUNTIME_LIBRARIES)
  cmake_path(GET library PARENT_PATH folder)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${folder})
endforeach()
list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/engine/program)  # its libtorch.so
list(REMOVE_DUPLICATES CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS)

include(CPack)
