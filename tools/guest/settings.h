/* What the kernel command line sets, and what is typed on the console. */
#pragma once
#include "hardware.h"

enum ending { EXIT, CRASH, PANIC, HANG, REBOOT, ENDINGS };
extern const char *const ending_names[ENDINGS];

#define NEVER UINT32_MAX

struct settings {
  uint32_t rate;             /* ticks a second */
  uint32_t dirty;            /* KiB a second */
  uint32_t working_set;      /* KiB */
  uint32_t after[ENDINGS];   /* ticks */
  bool power_button;
};
extern struct settings settings;

void read_settings(const char *words);
void read_setting(const char *word);
void say_settings(void);
