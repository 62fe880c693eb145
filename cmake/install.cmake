# What others build against: the header of back ends, the runtime for programs, the binary, and a package for CMake:
#   find_package(Tenon REQUIRED)
#   Tenon::backend  the header that a plugin needs, nothing to link
#   Tenon::runtime  what a program links that loads compiled models; Tenon::shared the same as libtenon.so
#   Tenon::tenon    the compiler
# and, for everyone else, a file for pkg-config: `pkg-config --cflags --libs tenon`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(FILES ${PROJECT_SOURCE_DIR}/include/tenon/backend.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon)
install(FILES ${PROJECT_SOURCE_DIR}/src/tenon/runtime/abi.h ${PROJECT_SOURCE_DIR}/src/tenon/runtime/dltensor.h
              ${PROJECT_SOURCE_DIR}/src/tenon/runtime/tenon_runtime.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon/runtime)
install(TARGETS tenon tenon-plugin-host tenon_runtime tenon_shared RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Beside the program in the archive of releases (package.cmake), else where they were found when it was linked.
set_target_properties(tenon tenon-plugin-host PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/tenon/lib" INSTALL_RPATH_USE_LINK_PATH ON)

# It says where it is by where it lies, so that the prefix may move.
file(RELATIVE_PATH TENON_PREFIX_FROM_PKGCONFIG /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tenon.pc.in ${PROJECT_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What the archive of the runtime was built with besides.
set(TENON_RUNTIME_NEEDS "")
if(TENON_RE2 AND TENON_RE2_INCLUDE AND NOT CMAKE_CROSSCOMPILING)
  set(TENON_RUNTIME_NEEDS ";re2")
endif()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TenonConfig.cmake.in ${PROJECT_BINARY_DIR}/TenonConfig.cmake
                              INSTALL_DESTINATION ${package}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TenonConfig.cmake ${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake DESTINATION ${package})

if(TARGET tenon_image)
  install(TARGETS tenon_image LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
