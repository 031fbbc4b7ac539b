#include "memory.h"

#include "settings.h"
#include "text.h"

enum { WORDS = PAGE / 4, SHOWN = 5 };

static uint32_t *pages;
static uint32_t count;
static uint32_t cursor;     /* the page that is rewritten next: those before it are of this generation, others of the last */
static uint32_t generation = 1;
static uint32_t check_cursor;
static uint32_t errors;
static uint64_t rewritten;

/* Every word of every page in every generation differs from its neighbours: a page that is stale, torn or misplaced shows. */
static uint32_t stamp_of(uint32_t page, uint32_t of_generation) { return page * 2654435761u ^ of_generation * 2246822519u; }

static uint32_t expected(uint32_t page) { return stamp_of(page, page < cursor ? generation : generation - 1); }

static void fill(uint32_t page, uint32_t stamp) {
  uint32_t *words = pages + page * WORDS;
  for (uint32_t word = 0; word < WORDS; word++) words[word] = stamp + word;
}

static void check(uint32_t page) {
  const uint32_t *words = pages + page * WORDS;
  uint32_t stamp = expected(page), word = 0;
  while (word < WORDS && words[word] == stamp + word) word++;
  if (word == WORDS) return;
  if (errors++ < SHOWN)
    say("bad page %u of generation %u: word %u is %x and not %x\n", page, generation, word, words[word], stamp + word);
  fill(page, stamp); /* counted once */
}

void memory_start(uint32_t first_free, uint32_t first_taken) {
  first_free = (first_free + PAGE - 1) & ~(PAGE - 1);
  uint32_t room = first_taken > first_free ? (first_taken - first_free) / PAGE : 0;
  if (settings.working_set / 4 > room) {
    say("complaint: working-set=%m does not fit: using the %m that are free\n", settings.working_set, room * 4);
    settings.working_set = room * 4;
  }
  pages = (uint32_t *)first_free;
  count = settings.working_set / 4;
  for (uint32_t page = 0; page < count; page++) fill(page, expected(page));
}

void rewrite_page(void) {
  if (!count) return;
  check(cursor);
  fill(cursor, stamp_of(cursor, generation));
  rewritten++;
  if (++cursor == count) {
    cursor = 0;
    generation++;
  }
}

void recheck_pages(uint32_t wanted) {
  for (; wanted && count; wanted--) {
    check(check_cursor);
    if (++check_cursor == count) check_cursor = 0;
  }
}

uint32_t check_all(void) {
  for (uint32_t page = 0; page < count; page++) check(page);
  return count;
}

void corrupt_page(void) {
  if (count) pages[count / 2 * WORDS + WORDS / 2] ^= 1;
}

uint32_t memory_errors(void) { return errors; }
uint32_t memory_rewritten(void) { return (uint32_t)(rewritten >> 8); }
