// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/command_line.h"

int main(int argc, char** argv) { return tenon::command_line(argc, argv); }
