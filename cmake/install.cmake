# What others build against: the header of back ends, the runtime for programs, the binary, and a package for CMake:
#   find_package(Tenon REQUIRED)
#   Tenon::backend  the header that a plugin needs, nothing to link
#   Tenon::runtime  what a program links that loads compiled models
#   Tenon::tenon    the compiler
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(FILES ${PROJECT_SOURCE_DIR}/include/tenon/backend.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon)
install(FILES ${PROJECT_SOURCE_DIR}/src/tenon/runtime/abi.h ${PROJECT_SOURCE_DIR}/src/tenon/runtime/tenon_runtime.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon/runtime)
install(TARGETS tenon tenon-plugin-host tenon_runtime RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Beside the program in the archive of releases (package.cmake), else where they were found when it was linked.
set_target_properties(tenon tenon-plugin-host PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/tenon/lib" INSTALL_RPATH_USE_LINK_PATH ON)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TenonConfig.cmake.in ${PROJECT_BINARY_DIR}/TenonConfig.cmake
                              INSTALL_DESTINATION ${package}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TenonConfig.cmake ${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake DESTINATION ${package})
