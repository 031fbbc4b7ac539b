#include "settings.h"

#include "text.h"

enum { FASTEST = 1000, LONGEST = 64 };

const char *const ending_names[ENDINGS] = {"exit", "crash", "panic", "hang", "reboot"};
struct settings settings = {
    .rate = 10, .dirty = 0, .working_set = 4096, .after = {NEVER, NEVER, NEVER, NEVER, NEVER}, .power_button = true};

/* A number, as far as it goes; moves `text` behind it. */
static bool read_number(const char **text, uint32_t *number) {
  const char *start = *text;
  uint64_t value = 0;
  for (; **text >= '0' && **text <= '9' && value < NEVER; (*text)++) value = value * 10 + (uint32_t)(**text - '0');
  *number = (uint32_t)value;
  return *text > start && value < NEVER;
}

static bool read_count(const char *text, uint32_t *count) {
  return read_number(&text, count) && !*text;
}

/* 4096K, 16M, 1G, each with or without `ending`, and a plain 0. The answer is in KiB. */
static bool read_size(const char *text, const char *ending, uint32_t *kibibytes) {
  uint32_t number;
  if (!read_number(&text, &number)) return false;
  uint32_t shift = *text == 'G' ? 20 : *text == 'M' ? 10 : 0;
  if (*text == 'G' || *text == 'M' || *text == 'K') text++;
  else if (number) return false;
  if (*text && !same(text, ending)) return false;
  if ((uint64_t)number << shift >= NEVER) return false;
  *kibibytes = number << shift;
  return true;
}

static void complain(const char *word, const char *right) { say("complaint: %s is not understood: %s\n", word, right); }

static void read_rate(const char *word, const char *value) {
  uint32_t rate;
  if (read_count(value, &rate) && rate >= 1 && rate <= FASTEST) settings.rate = rate;
  else complain(word, "rate is a number of ticks a second from 1 to 1000");
}

static void read_dirty(const char *word, const char *value) {
  if (!read_size(value, "/s", &settings.dirty)) complain(word, "dirty is an amount a second such as 0, 512K/s or 64M/s");
}

static void read_working_set(const char *word, const char *value) {
  uint32_t size;
  if (read_size(value, "", &size) && size >= 4) settings.working_set = size & ~3u;
  else complain(word, "working-set is an amount of memory such as 512K or 16M, and 4K at least");
}

static void read_power_button(const char *word, const char *value) {
  bool ignored = same(value, "ignore");
  if (ignored || same(value, "obey")) settings.power_button = !ignored;
  else complain(word, "power-button is obey or ignore");
}

static bool read_ending(const char *word) {
  for (unsigned kind = 0; kind < ENDINGS; kind++) {
    if (!starts_with(word, ending_names[kind])) continue;
    const char *value = word;
    while (*value && *value != '-') value++;
    if (!starts_with(value, "-after=")) return false;
    uint32_t ticks;
    if (read_count(value + 7, &ticks)) settings.after[kind] = ticks;
    else complain(word, "that takes a number of ticks");
    return true;
  }
  return false;
}

void read_setting(const char *word) {
  if (starts_with(word, "rate=")) read_rate(word, word + 5);
  else if (starts_with(word, "dirty=")) read_dirty(word, word + 6);
  else if (starts_with(word, "working-set=")) read_working_set(word, word + 12);
  else if (starts_with(word, "power-button=")) read_power_button(word, word + 13);
  else if (!read_ending(word))
    complain(word, "known are rate, dirty, working-set, power-button and exit-, crash-, panic-, hang-, reboot-after");
}

void read_settings(const char *words) {
  while (*words) {
    char word[LONGEST];
    size_t length = 0;
    for (; *words && *words != ' '; words++)
      if (length + 1 < LONGEST) word[length++] = *words;
    word[length] = 0;
    if (length) read_setting(word);
    while (*words == ' ') words++;
  }
}

void say_settings(void) {
  say("settings rate=%u dirty=%m/s working-set=%m", settings.rate, settings.dirty, settings.working_set);
  for (unsigned kind = 0; kind < ENDINGS; kind++)
    if (settings.after[kind] != NEVER) say(" %s-after=%u", ending_names[kind], settings.after[kind]);
  say(settings.power_button ? "\n" : " power-button=ignore\n");
}
