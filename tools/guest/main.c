/* A guest to test with: it counts on the serial port, dirties memory, checks it, and does as the power button says. */
#include "machine.h"
#include "memory.h"
#include "settings.h"
#include "text.h"

struct start_information { /* of PVH */
  uint32_t magic, version, flags, module_count;
  uint64_t modules, command_line, root_pointer, memory_map;
  uint32_t memory_map_entries, reserved;
};
struct memory_range {
  uint64_t start, size;
  uint32_t kind, reserved;
};

enum { SLICE = CLOCK_HERTZ / 50, AT_ONCE = 16, CHECKED_PER_TICK = 64, PANIC_PORT = 0x505 };
extern char end[];

static uint32_t ticks;
static uint64_t next_tick;

static void say_memory(const struct start_information *start) {
  const struct memory_range *range = (const struct memory_range *)(uint32_t)start->memory_map;
  uint64_t usable = 0;
  uint32_t taken = 0;
  for (uint32_t left = start->memory_map_entries; left; left--, range++) {
    if (range->kind != 1) continue;
    usable += range->size;
    if (range->start <= (uint32_t)end && range->start + range->size > (uint32_t)end) taken = (uint32_t)(range->start + range->size);
  }
  /* The firmware keeps some of the last MiB for itself. */
  say("ram=%uM usable=%uK\n", (uint32_t)((usable + 0xfffff) >> 20), (uint32_t)(usable >> 10));
  memory_start((uint32_t)end, taken);
}

static void stop_here(void) {
  console_drain();
  for (;;) {
    interrupts_off();
    __asm__ volatile("hlt");
  }
}

static void end_by(enum ending kind) {
  say("%s\n", ending_names[kind]);
  if (kind == EXIT) switch_off();
  console_drain();
  if (kind == CRASH) crash_hard();
  if (kind == PANIC) out8(PANIC_PORT, 1);
  if (kind == REBOOT) out8(0xcf9, 6);
  stop_here();
}

static void answer(const char *line) {
  for (unsigned kind = 0; kind < ENDINGS; kind++)
    if (same(line, ending_names[kind])) end_by((enum ending)kind);
  if (same(line, "check")) {
    uint32_t checked = check_all();
    say("checked %u pages errors=%u\n", checked, memory_errors());
  } else if (same(line, "corrupt")) {
    corrupt_page();
  } else if (starts_with(line, "dirty=") || starts_with(line, "rate=")) {
    read_setting(line);
    say_settings();
  } else {
    say("you said: %s\n", line);
  }
}

static void answer_the_console(void) {
  static char line[256];
  while (console_line(line, sizeof line)) answer(line);
}

static void answer_the_power_button(void) {
  if (!power_button_seen()) return;
  say(settings.power_button ? "powerdown\n" : "powerdown ignored\n");
  if (!settings.power_button) return;
  switch_off();
  say("complaint: switching off did not work\n");
  stop_here();
}

static void end_if_due(void) {
  for (unsigned kind = 0; kind < ENDINGS; kind++)
    if (ticks >= settings.after[kind]) end_by((enum ending)kind);
}

static void tick(void) {
  if (!settings.dirty) recheck_pages(CHECKED_PER_TICK);
  uint32_t errors = memory_errors();
  say("tick %u %s errors=%u dirtied=%uM\n", ++ticks, errors ? "BAD" : "ok", errors, memory_rewritten());
  next_tick += CLOCK_HERTZ / settings.rate;
  end_if_due();
}

/* As many pages as the time since the last call is worth. A guest that gets too little CPU dirties less, and goes on ticking. */
static bool dirty(uint64_t now) {
  static uint64_t last, credit;
  uint64_t passed = now - last > SLICE * 2 ? SLICE * 2 : now - last;
  last = now;
  credit += passed * (settings.dirty / 4);
  uint64_t most = (uint64_t)(settings.dirty / 4) * SLICE * 2;
  if (credit > most) credit = most;
  for (unsigned page = 0; page < AT_ONCE && credit >= CLOCK_HERTZ; page++, credit -= CLOCK_HERTZ) rewrite_page();
  return credit >= CLOCK_HERTZ;
}

/* The alarm is set with interrupts off: one that rang before the sleep would never end it. */
static void sleep_until(uint64_t now, uint64_t then) {
  uint32_t duration = (uint32_t)(then - now);
  interrupts_off();
  wake_up_in(settings.dirty && duration > SLICE ? SLICE : duration);
  if (console_waiting() || power_button_waiting()) interrupts_on();
  else sleep_with_interrupts_on();
}

void guest_main(const struct start_information *start) {
  console_start();
  say("\nboot %x%x\n", chance(1), chance(2));
  acpi_start((uint32_t)start->root_pointer);
  if (!clock_port) {
    say("complaint: this machine has no ACPI clock, without which the guest cannot count: use q35 or pc\n");
    stop_here();
  }
  read_settings((const char *)(uint32_t)start->command_line);
  say_memory(start);
  say_cpu();
  say_disks();
  say_settings();
  interrupts_start();
  end_if_due();
  next_tick = clock_now() + CLOCK_HERTZ / settings.rate;
  for (;;) {
    uint64_t now = clock_now();
    if (now >= next_tick) tick();
    answer_the_console();
    answer_the_power_button();
    if (!dirty(now) && now < next_tick) sleep_until(now, next_tick);
  }
}
